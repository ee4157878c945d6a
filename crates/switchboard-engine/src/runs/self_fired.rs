//! Runs that are started by a request which the server posts to itself. An asynchronous send only enqueues its task and posts
//! ([`SelfFire::fire`]); only the request that arrives starts the run ([`process`]). If none arrives, the sweeper posts again, at growing
//! intervals, and never starts such a run itself ([`SelfFire::hold_back`]). A task that was not started in time is failed.

use std::sync::Arc;

use switchboard_core::model::{TaskId, TaskState};

use super::agent::Agents;
use super::recovery::{ClaimedRun, End, end_run, resume_claimed};
use super::run_time::queued_too_long;
use crate::ports::store::{DueRun, Scope, StoreError};
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::SelfFire;

/// How long a task may wait to be started, unless [`Limits::queued_s_max`](crate::limits::Limits::queued_s_max) says
/// otherwise.
const QUEUED_S_MAX: u32 = 180;
/// How many due runs are searched for a task that is not remembered.
const SEARCHED_RUNS_MAX: usize = 1_024;

impl SelfFire {
    /// Takes the runs out of a list of due ones that only a post may start: posts for those whose pause is over, and ends those
    /// that have waited too long. Returns the others, which the sweeper claims.
    pub(super) async fn hold_back(
        &self,
        engine: &Arc<EngineState>,
        agents: &Agents,
        mut due: Vec<DueRun>,
    ) -> Result<Vec<DueRun>, StoreError> {
        let waits = |run: &mut DueRun| {
            let head = &run.stored.head;
            !run.interrupted && head.attempt <= 1 && !head.cancel_requested
        };
        let held: Vec<DueRun> = due.extract_if(.., waits).collect();
        let max_s = engine.limits.queued_s_max.unwrap_or(QUEUED_S_MAX);
        let (now, ages_count) = (engine.now(), !engine.clock_is_held());
        for run in held {
            let head = &run.stored.head;
            let age_ms = now.ms_since(head.status_at);
            let is_queued = head.state == TaskState::Submitted;
            if ages_count && is_queued && age_ms >= i64::from(max_s) * 1000 {
                self.forget(&head.id);
                let runs = agents.get(&run.stored.scope.agent).map(|agent| agent.source.runs());
                let runs = runs.unwrap_or(&engine.counters.unserved_runs);
                let record = Record::stored(run.stored);
                end_run(engine, &record, false, End::Failed(queued_too_long(max_s)), runs).await?;
            } else if self.is_time_to_post(&run, now.as_ms()) {
                tracing::debug!(task = %head.id, age_ms, "posted again for a task that was not started");
                self.fire_again(&engine.supervisor, &head.id);
            }
        }
        Ok(due)
    }

    /// The owner and agent of a task that waits to be started, and whether no process can have begun with it.
    async fn find(&self, engine: &EngineState, id: &TaskId) -> Result<Option<(Scope, bool)>, StoreError> {
        if let Some(remembered) = self.remembered(id) {
            return Ok(Some(remembered));
        }
        let due = engine.store.due_runs(&engine.served, SEARCHED_RUNS_MAX).await?;
        Ok(due.into_iter().find(|run| run.stored.head.id == *id).map(|run| (run.stored.scope, false)))
    }
}

/// Starts the run of a task that was enqueued. False if there is nothing to start: the task has been started, has ended, or does not
/// exist.
pub(crate) async fn process(engine: &Arc<EngineState>, agents: &Agents, id: &TaskId) -> Result<bool, StoreError> {
    let Some(self_fire) = &engine.self_fire else { return Ok(false) };
    if engine.supervisor.is_draining() {
        return Ok(false);
    }
    let claimed_at = engine.now();
    let Some((scope, is_fresh)) = self_fire.find(engine, id).await? else { return Ok(false) };
    let Some(stored) = engine.store.head(&scope, id).await? else { return Ok(false) };
    if !stored.head.running || engine.runs.is_at_work(stored.key, stored.head.fence) {
        return Ok(false);
    }
    let record = Record::stored(stored);
    // Of several posts for one task, the commit of one succeeds.
    if !engine.claim(&record, false).await? {
        return Ok(false);
    }
    self_fire.forget(id);
    let claimed = ClaimedRun { record: Arc::new(record), interrupted: false, is_fresh };
    if let Some(release) = resume_claimed(engine, agents, claimed, claimed_at).await? {
        engine.store.release_leases(vec![release]).await?;
    }
    Ok(true)
}
