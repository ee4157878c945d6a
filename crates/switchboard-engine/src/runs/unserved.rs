//! Runs that wait for an agent which this process does not serve. Another process may serve it, so they are not claimed
//! but checked at intervals. The operator gets a log line, and a run that was canceled, is out of time or has waited
//! too long is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use switchboard_core::lifecycle::Head;
use switchboard_core::model::{AgentName, TaskState, Timestamp};
use tokio::time::Instant;

use super::RunEnd;
use super::recovery::{End, end_claimed, is_over, queued_too_long};
use crate::commit::Record;
use crate::engine_state::EngineState;
use crate::limits::Limits;
use crate::ports::store::{DueRun, StoreError, TaskKey};

/// How often runs of agents that are not served are checked. A run that is due at two consecutive checks was claimed by
/// no other process, so probably none serves its agent.
const UNSERVED_LOOK: Duration = Duration::from_secs(60);
/// How many runs are checked at once; the others are checked later.
const UNSERVED_LOOK_RUNS: usize = 256;

/// The progress of these checks.
#[derive(Default)]
pub(super) struct UnservedAgents {
    looked: Option<Instant>,
    /// Where the page begins that is checked.
    after: Option<TaskKey>,
    /// The runs of the page at the previous check, with the versions of their tasks; none at the first check of a page.
    waiting: Option<BTreeMap<TaskKey, u64>>,
    /// Agents that an operator has been told of.
    told: BTreeSet<AgentName>,
}

impl UnservedAgents {
    /// Checks some of the runs, if the interval has passed.
    pub(super) async fn check(&mut self, engine: &EngineState) -> Result<(), StoreError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < UNSERVED_LOOK) || engine.supervisor.is_draining() {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let due = engine.store.due_runs_of_others(&engine.served, self.after, UNSERVED_LOOK_RUNS).await?;
        match self.waiting.take() {
            None => {
                let waiting = due.iter().map(|run| (run.stored.key, run.stored.head.version));
                self.waiting = Some(waiting.collect());
            }
            Some(waiting) => {
                self.after = due.last().filter(|_| due.len() >= UNSERVED_LOOK_RUNS).map(|run| run.stored.key);
                let still = |run: &DueRun| waiting.get(&run.stored.key) == Some(&run.stored.head.version);
                for run in due.into_iter().filter(still) {
                    self.settle(engine, run).await?;
                }
            }
        }
        Ok(())
    }

    /// Handles a run that has waited since the previous check.
    async fn settle(&mut self, engine: &EngineState, run: DueRun) -> Result<(), StoreError> {
        let (head, agent) = (&run.stored.head, &run.stored.scope.agent);
        let Some(end) = judge(head, &engine.limits, !engine.clock_is_held(), engine.now()) else {
            if self.told.insert(agent.clone()) {
                tracing::warn!(task = %head.id, %agent, "a task waits for an agent that is not served");
            }
            return Ok(());
        };
        let interrupted = run.interrupted;
        let record = Record::stored(run.stored);
        match end_run(engine, &record, interrupted, end).await {
            // The store has put the task into quarantine.
            Err(StoreError::Damaged(_)) => Ok(()),
            ended => ended,
        }
    }
}

async fn end_run(engine: &EngineState, record: &Record, interrupted: bool, end: End) -> Result<(), StoreError> {
    if !engine.claim(record, interrupted).await? {
        return Ok(());
    }
    let Some(stored) = engine.stored_task(&record.scope, &record.id).await? else { return Ok(()) };
    if let Some(inbound) = stored.folded.open_turns.first().cloned() {
        end_claimed(engine, record, inbound, end, &engine.counters.unserved_runs, RunEnd::Unserved).await;
    }
    Ok(())
}

/// How a run must end that waits for an agent which is not served; none if it goes on waiting. After a jump of the wall
/// clock ages are ignored for a while, and no run is ended because of its age.
fn judge(head: &Head, limits: &Limits, ages_count: bool, now: Timestamp) -> Option<End> {
    if let Some(end) = is_over(head, now) {
        return Some(end);
    }
    let age_ms = if ages_count { now.ms_since(head.status_at) } else { 0 };
    let is_queued = head.state == TaskState::Submitted && head.attempt <= 1;
    if let Some(max) = limits.queued_s_max.filter(|max| is_queued && age_ms >= i64::from(*max) * 1000) {
        return Some(End::Failed(queued_too_long(max)));
    }
    let is_forgotten = age_ms >= i64::from(limits.unserved_s_max) * 1000;
    is_forgotten.then(|| End::Failed(format!("The agent {} is not served here any more", head.agent)))
}

#[cfg(test)]
mod tests {
    use switchboard_core::lifecycle::Head;
    use switchboard_core::model::{TaskState, Timestamp};

    use super::{End, judge};
    use crate::limits::Limits;

    #[test]
    fn a_task_whose_agent_is_not_served_waits_and_not_for_ever() {
        let now = Timestamp::from_ms(1_000_000_000);
        let limits = Limits { queued_s_max: Some(180), ..Limits::default() };
        let judge = |attempt, state, age_s: i64, ages_count| {
            let mut head = Head::unopened("task".into(), "context".into(), "agent".into());
            (head.attempt, head.running, head.state) = (attempt, true, state);
            head.status_at = now.plus_ms(-age_s * 1000);
            judge(&head, &limits, ages_count, now)
        };
        let failed = |reason: &str| Some(End::Failed(reason.to_owned()));
        let (submitted, working) = (TaskState::Submitted, TaskState::Working);
        assert_eq!(judge(1, submitted, 179, true), None);
        assert_eq!(judge(1, submitted, 180, true), failed("Task timed out: it was not started within 180 s"));
        assert_eq!(judge(1, submitted, 180, false), None, "the clock has jumped");
        assert_eq!(judge(1, working, 180, true), None);
        assert_eq!(judge(2, submitted, 400, true), None);
        assert_eq!(judge(2, working, 7 * 86_400 - 1, true), None);
        assert_eq!(judge(2, working, 7 * 86_400, true), failed("The agent agent is not served here any more"));
    }
}
