//! Runs that are started by a request which the server posts to itself, for hosts that give each request its own time to work
//! ([`Dispatch`]). An asynchronous send then only enqueues its task and posts; only the request that arrives starts the
//! run ([`process`]). If none arrives, the sweeper posts again, at growing intervals, and never starts such a run itself
//! ([`SelfFire::hold_back`]). A task that was not started in time is failed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::{TaskId, TaskState};

use super::recovery::{ClaimedRun, End, end_run, resume_claimed};
use super::run_time::queued_too_long;
use crate::commit::Record;
use crate::engine_state::EngineState;
use crate::ports::Dispatch;
use crate::ports::store::{DueRun, Scope, StoreError};
use crate::supervisor::Kind;

/// How long a send waits for its post to be answered.
const POST_WAIT_MAX: Duration = Duration::from_millis(250);
/// How long a task is left alone before the sweeper posts again; each later pause is twice as long.
const POST_AGAIN_MS_MIN: i64 = 10_000;
/// The longest pause between two posts.
const POST_AGAIN_MS_MAX: i64 = 60_000;
/// How long a task may wait to be started, unless [`Limits::queued_s_max`](crate::limits::Limits::queued_s_max) says
/// otherwise.
const QUEUED_S_MAX: u32 = 180;
/// How many enqueued tasks are remembered; others are found in the store.
const REMEMBERED_MAX: usize = 10_000;
/// How many due runs are searched for a task that is not remembered.
const SEARCHED_RUNS_MAX: usize = 1_024;

/// What the engine needs to start runs by posts.
pub(crate) struct SelfFire {
    dispatch: Arc<dyn Dispatch>,
    queued: Mutex<HashMap<TaskId, Queued>>,
}

/// A task that waits for its post.
struct Queued {
    scope: Scope,
    /// Whether this process has enqueued the task, so that no other can have begun with it.
    is_fresh: bool,
    /// When the sweeper posts again.
    again_at_ms: i64,
    pause_ms: i64,
}

impl SelfFire {
    pub(crate) fn new(dispatch: Arc<dyn Dispatch>) -> Self {
        Self { dispatch, queued: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TaskId, Queued>> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: TaskId, queued: Queued) {
        let mut known = self.lock();
        if known.len() < REMEMBERED_MAX {
            known.insert(id, queued);
        }
    }

    /// Posts for a task that was just enqueued, and waits a moment for the answer. The post goes on after that.
    pub(crate) async fn fire(&self, engine: &EngineState, record: &Record) {
        let again_at_ms = engine.now().as_ms() + POST_AGAIN_MS_MIN;
        let queued = Queued { scope: record.scope.clone(), is_fresh: true, again_at_ms, pause_ms: POST_AGAIN_MS_MIN };
        self.remember(record.id.clone(), queued);
        let (answered, answer) = tokio::sync::oneshot::channel();
        let post = self.dispatch.post(&record.id);
        engine.supervisor.spawn(Kind::Delivery, async move {
            post.await;
            let _ = answered.send(());
        });
        let _ = tokio::time::timeout(POST_WAIT_MAX, answer).await;
    }

    /// Posts for a call that nobody waits for.
    pub(crate) fn fire_call(&self, engine: &EngineState, call: &str) {
        engine.supervisor.spawn(Kind::Delivery, self.dispatch.post_call(call));
    }

    /// Takes the runs out of a list of due ones that only a post may start: posts for those whose pause is over, and ends those
    /// that have waited too long. Returns the others, which the sweeper claims.
    pub(super) async fn hold_back(
        &self,
        engine: &Arc<EngineState>,
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
                self.lock().remove(&head.id);
                let runs = engine.agents.get(&run.stored.scope.agent).map(|agent| agent.source.runs());
                let runs = runs.unwrap_or(&engine.counters.unserved_runs);
                let record = Record::stored(run.stored);
                end_run(engine, &record, false, End::Failed(queued_too_long(max_s)), runs).await?;
            } else if self.is_time_to_post(&run, now.as_ms()) {
                tracing::debug!(task = %head.id, age_ms, "posted again for a task that was not started");
                let post = self.dispatch.post(&head.id);
                engine.supervisor.spawn(Kind::Delivery, post);
            }
        }
        Ok(due)
    }

    fn is_time_to_post(&self, run: &DueRun, now_ms: i64) -> bool {
        let head = &run.stored.head;
        let mut known = self.lock();
        if known.len() >= REMEMBERED_MAX {
            known.retain(|_, queued| queued.is_fresh || queued.again_at_ms > now_ms - POST_AGAIN_MS_MAX);
        }
        let queued = known.entry(head.id.clone()).or_insert_with(|| Queued {
            scope: run.stored.scope.clone(),
            is_fresh: false,
            again_at_ms: head.status_at.as_ms() + POST_AGAIN_MS_MIN,
            pause_ms: POST_AGAIN_MS_MIN,
        });
        let is_time = queued.again_at_ms <= now_ms;
        if is_time {
            queued.pause_ms = (queued.pause_ms * 2).min(POST_AGAIN_MS_MAX);
            queued.again_at_ms = now_ms + queued.pause_ms;
        }
        is_time
    }

    /// The owner and agent of a task that waits to be started, and whether no process can have begun with it.
    async fn find(&self, engine: &EngineState, id: &TaskId) -> Result<Option<(Scope, bool)>, StoreError> {
        if let Some(queued) = self.lock().get(id) {
            return Ok(Some((queued.scope.clone(), queued.is_fresh)));
        }
        let due = engine.store.due_runs(&engine.served, SEARCHED_RUNS_MAX).await?;
        Ok(due.into_iter().find(|run| run.stored.head.id == *id).map(|run| (run.stored.scope, false)))
    }
}

/// Starts the run of a task that was enqueued. False if there is nothing to start: the task has been started, has ended, or does not
/// exist.
pub(crate) async fn process(engine: &Arc<EngineState>, id: &TaskId) -> Result<bool, StoreError> {
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
    self_fire.lock().remove(id);
    let claimed = ClaimedRun { record: Arc::new(record), interrupted: false, is_fresh };
    if let Some(release) = resume_claimed(engine, claimed, claimed_at).await? {
        engine.store.release_leases(vec![release]).await?;
    }
    Ok(true)
}
