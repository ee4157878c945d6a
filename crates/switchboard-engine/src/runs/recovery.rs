//! Decides about a claimed run: it is tried again at once or after a pause, or it is ended. The decision itself is the
//! pure function [`judge`], for a run of an agent that is not served here [`judge_unserved`].
//!
//! A run may also wait for an agent which this process does not serve. Another process may serve it, so such runs are
//! not claimed but checked at intervals. The operator gets a log line, and a run that was canceled, is out of time or
//! has waited too long is ended.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::lifecycle::{Command, Head, Inbound, RunCommand, TurnEnd};
use switchboard_core::model::{AgentName, Message, Part, Role, TIMED_OUT, TaskState, Timestamp};
use tokio::time::Instant;

use super::agent::{Agents, LeftOver, Registered};
use super::call_ending::cancel_calls;
use super::run_slots::Begun;
use super::run_time::queued_too_long;
use super::runner::caught;
use super::runner::{Run, RunStart};
use crate::commit::WriteError;
use crate::limits::Limits;
use crate::ports::store::{DueRun, Release, StoreError, StoredTask, TaskKey};
use crate::ports::{Hint, News};
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::{Backoff, HeldRun, Recovery, RunCounters, RunEnd};
use crate::supervisor::Kind;

/// A run that this process has claimed.
pub(super) struct ClaimedRun {
    pub(super) record: Arc<Record>,
    /// Whether the run had begun when its holder died or stopped renewing.
    pub(super) interrupted: bool,
    /// Whether no process can have begun with it.
    pub(super) is_fresh: bool,
}

/// Resumes a run that this process has claimed, at `claimed_at` or later. Returns a lease to release if the run is not
/// due yet.
pub(super) async fn resume_claimed(
    engine: &Arc<EngineState>,
    agents: &Agents,
    claimed: ClaimedRun,
    claimed_at: Timestamp,
) -> Result<Option<Release>, StoreError> {
    let ClaimedRun { record, interrupted, is_fresh } = claimed;
    let (fence, attempt) = record.with_head(|head| (head.fence, head.attempt));
    let Some(key) = record.key().filter(|key| !engine.runs.is_at_work(*key, fence)) else { return Ok(None) };
    let Some(agent) = agents.get(&record.scope.agent).cloned() else { return Ok(None) };
    let Some(stored) = engine.stored_task(&record.scope, &record.id).await? else { return Ok(None) };
    if stored.head.fence != fence {
        // Another process has claimed the run while this process was frozen, so this process must not run under that
        // fence.
        return Ok(None);
    }
    let Some(inbound) = stored.folded.open_turns.first().cloned() else { return Ok(None) };
    if let Some(checkpoint) = &stored.folded.checkpoint {
        let at_most = Duration::from_millis(u64::from(engine.limits.clean_up_ms_max));
        let clearing =
            caught(&agent, "clearing away after a dead run", agent.source.clean_up_after(checkpoint.clone()));
        if tokio::time::timeout(at_most, clearing).await.is_err() {
            tracing::warn!(task = %record.id, agent = %agent.name, "clearing away after a dead run took too long");
        }
    }
    let policy = &agent.source.traits().recovery;
    match judge(&stored.head, interrupted, policy, &engine.limits, engine.now()) {
        Verdict::Run => {
            if !is_fresh {
                agent.source.runs().recover();
            }
            tracing::debug!(task = %record.id, agent = %agent.name, attempt, "run taken up again");
            let background = engine.background(&agent, &record.scope, &stored).await;
            let held = engine.hold_accepted(&record.scope.owner, &stored.folded.task, true);
            let from = RunStart { begun: Begun::NotYet, leased_at: claimed_at, interrupted: !is_fresh, held };
            if let Some(run) = Run::begin(engine.clone(), agent, record, &stored, background, from) {
                run.spawn();
            }
            Ok(None)
        }
        Verdict::End(End::Canceled) => {
            // The agent may wait for others to end what is left, and the sweep must not wait for it: it renews leases.
            let (engine, supervisor) = (engine.clone(), engine.supervisor.clone());
            supervisor.spawn(Kind::Run, async move {
                cancel_left_over(&engine, &agent, &record.scope.owner, &stored).await;
                end_claimed(&engine, &record, inbound, End::Canceled, agent.source.runs(), RunEnd::Interrupted).await;
            });
            Ok(None)
        }
        Verdict::End(end) => {
            cancel_calls(engine, stored.key);
            end_claimed(engine, &record, inbound, end, agent.source.runs(), RunEnd::Interrupted).await;
            Ok(None)
        }
        Verdict::Wait { ms } => {
            tracing::debug!(task = %record.id, attempt, wait_ms = ms, "run put off");
            Ok(Some(Release { key, fence, pause_ms: ms }))
        }
    }
}

/// Lets an agent end what its runs have left at work outside, for a task that was canceled while no run was at work on it.
pub(crate) async fn cancel_left_over(
    engine: &Arc<EngineState>,
    agent: &Registered,
    owner: &Owner,
    stored: &StoredTask,
) {
    cancel_calls(engine, stored.key);
    let folded = &stored.folded;
    let Some(checkpoint) = folded.checkpoint.as_ref().or(folded.earlier_checkpoint.as_ref()) else { return };
    let left = LeftOver { checkpoint: checkpoint.clone(), owner: owner.clone(), callees: engine.callees.clone() };
    let at_most = Duration::from_millis(u64::from(engine.limits.clean_up_ms_max));
    let ending = agent.source.cancel_left_over(left);
    let ending = caught(agent, "ending what a canceled task left at work", ending);
    if tokio::time::timeout(at_most, ending).await.is_err() {
        tracing::warn!(task = %stored.head.id, agent = %agent.name, "ending what a canceled task left at work took too long");
    }
}

/// Ends a run that this process has claimed and that is not tried again. `failed` is how it is counted unless another
/// ending applies.
pub(super) async fn end_claimed(
    engine: &EngineState,
    record: &Record,
    inbound: Arc<Inbound>,
    end: End,
    runs: &RunCounters,
    failed: RunEnd,
) {
    let how = end.how(failed);
    record.trace.set(inbound.trace.as_ref());
    let fence = record.with_head(|head| head.fence);
    runs.recover();
    if let Err(error) = end_turn(engine, record, fence, inbound, end, how).await {
        tracing::warn!(task = %record.id, ?error, "an interrupted run could not be ended");
    } else {
        runs.end_unstarted(how);
    }
}

/// Releases the leases that this process still held when it was told to stop. An interrupted run that must not be
/// started twice fails. The others continue in the next process, where this does not count as another attempt.
pub(crate) async fn give_back(engine: &EngineState, agents: &Agents, held: Vec<HeldRun>) {
    let mut released = Vec::with_capacity(held.len());
    let mut one_of_them = None;
    for run in held {
        // Asked now that nothing runs any more: it may have begun since the list was made.
        let begun = run.has_begun();
        let HeldRun { key, fence, record, .. } = run;
        let agent = agents.get(&record.scope.agent);
        let how = match agent.map(|agent: &Arc<Registered>| &agent.source.traits().recovery) {
            // If the run cannot be ended now, its lease stays, and the process that finds the expired lease will end
            // it.
            Some(Recovery::Fail { reason }) if begun => {
                fail_cut_off(engine, &record, fence, reason).await;
                RunEnd::Interrupted
            }
            Some(_) | None => {
                released.push(Release { key, fence, pause_ms: 0 });
                one_of_them.get_or_insert_with(|| record.id.clone());
                RunEnd::Stopped
            }
        };
        if let Some(agent) = agent.filter(|_| begun) {
            agent.source.runs().end_unstarted(how);
        }
    }
    let Some(task) = one_of_them else { return };
    match engine.store.release_leases(released).await {
        Ok(()) => engine.hints.notify(Hint { task: &task, news: News::RunsReleased }),
        Err(error) => tracing::warn!(?error, "leases could not be released; they run out by themselves"),
    }
}

async fn fail_cut_off(engine: &EngineState, record: &Record, fence: u64, reason: &str) {
    let inbound = match engine.stored_task(&record.scope, &record.id).await {
        Ok(stored) => stored.and_then(|stored| stored.folded.open_turns.first().cloned()),
        Err(_) => None,
    };
    let Some(inbound) = inbound else { return };
    let end = End::Failed(reason.to_owned());
    if let Err(error) = end_turn(engine, record, fence, inbound, end, RunEnd::Interrupted).await {
        tracing::warn!(task = %record.id, ?error, "a run that was cut off could not be failed");
    }
}

async fn end_turn(
    engine: &EngineState,
    record: &Record,
    fence: u64,
    inbound: Arc<Inbound>,
    end: End,
    how: RunEnd,
) -> Result<(), WriteError> {
    let end = match end {
        End::Canceled => TurnEnd::Returned,
        End::Failed(reason) => {
            record.fails_by(how.word());
            let mut message = Message::new(Role::Agent, engine.uuid(), vec![Part::text(reason)]);
            message.context_id = Some(record.context_id.clone());
            message.task_id = Some(record.id.clone());
            TurnEnd::Failed { message: Some(Arc::new(message)) }
        }
    };
    let command = Command::Run { fence, inbound, command: RunCommand::EndTurn(end) };
    engine.write(record, command).await.map(drop)
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Run,
    /// Not yet: release the run until this time.
    Wait {
        ms: i64,
    },
    End(End),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Canceled, as requested.
    Canceled,
    /// Failed, with a reason for the client.
    Failed(String),
}

impl End {
    /// The ending under which the run is counted.
    fn how(&self, failed: RunEnd) -> RunEnd {
        match self {
            Self::Canceled => RunEnd::Canceled,
            Self::Failed(reason) if reason.starts_with(TIMED_OUT) => RunEnd::TimedOut,
            Self::Failed(_) => failed,
        }
    }
}

/// What to do with a claimed run of an agent with this policy.
fn judge(head: &Head, interrupted: bool, policy: &Recovery, limits: &Limits, now: Timestamp) -> Verdict {
    if let Some(end) = is_over(head, now) {
        return Verdict::End(end);
    }
    match policy {
        // The run has not begun, or was released. If an earlier process died in it, this is already a later attempt.
        Recovery::Fail { .. } if !interrupted && head.attempt <= 1 => Verdict::Run,
        Recovery::Fail { reason } => Verdict::End(End::Failed(reason.clone())),
        Recovery::Retry { attempts_max, backoff } => {
            let max = attempts_max.unwrap_or(limits.attempts_max);
            if head.attempt > max {
                let reason = format!("The agent was interrupted {max} times and is not tried again");
                return Verdict::End(End::Failed(reason));
            }
            let ms = backoff.map_or(
                (u64::from(limits.retry_backoff_ms_min), u64::from(limits.retry_backoff_ms_max)),
                |Backoff { min, max }| (whole_ms(min), whole_ms(max)),
            );
            match pause_ms(head, ms) {
                // A run that was released has had its pause.
                0 => Verdict::Run,
                _ if !interrupted => Verdict::Run,
                ms => Verdict::Wait { ms },
            }
        }
    }
}

/// How a run that no process holds must end, whatever its agent declares: it was canceled, or its time is over.
pub(super) fn is_over(head: &Head, now: Timestamp) -> Option<End> {
    if head.cancel_requested {
        return Some(End::Canceled);
    }
    let is_paused = head.state == TaskState::AuthRequired;
    let is_late = head.deadline.is_some_and(|deadline| deadline <= now) && !is_paused;
    is_late.then(|| End::Failed(TIMED_OUT.to_owned()))
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long to wait before the attempt that a head is at. The wait is spread over the upper half of the pause by the
/// task's id, so that tasks that died together are not all tried at the same time.
fn pause_ms(head: &Head, (min, max): (u64, u64)) -> i64 {
    let Some(doublings) = head.attempt.checked_sub(3) else { return 0 };
    let full = min.saturating_mul(1 << doublings.min(31)).min(max);
    let mut hasher = DefaultHasher::new();
    (head.id.as_str(), head.attempt).hash(&mut hasher);
    let half = full / 2;
    i64::try_from(full - half + hasher.finish() % (half + 1)).unwrap_or(i64::MAX)
}

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
        let Some(end) = judge_unserved(head, &engine.limits, !engine.clock_is_held(), engine.now()) else {
            if self.told.insert(agent.clone()) {
                tracing::warn!(task = %head.id, %agent, "a task waits for an agent that is not served");
            }
            return Ok(());
        };
        let interrupted = run.interrupted;
        let record = Record::stored(run.stored);
        let runs = &engine.counters.unserved_runs;
        match end_run(engine, &record, interrupted, end, runs).await {
            // The store has put the task into quarantine.
            Err(StoreError::Damaged(_)) => Ok(()),
            ended => ended,
        }
    }
}

/// Claims a run that nobody holds, and ends it. Nothing is done if another process has claimed it.
pub(super) async fn end_run(
    engine: &EngineState,
    record: &Record,
    interrupted: bool,
    end: End,
    runs: &RunCounters,
) -> Result<(), StoreError> {
    if !engine.claim(record, interrupted).await? {
        return Ok(());
    }
    let Some(stored) = engine.stored_task(&record.scope, &record.id).await? else { return Ok(()) };
    if let Some(inbound) = stored.folded.open_turns.first().cloned() {
        end_claimed(engine, record, inbound, end, runs, RunEnd::Unserved).await;
    }
    Ok(())
}

/// How a run must end that waits for an agent which is not served; none if it goes on waiting. After a jump of the wall
/// clock ages are ignored for a while, and no run is ended because of its age.
fn judge_unserved(head: &Head, limits: &Limits, ages_count: bool, now: Timestamp) -> Option<End> {
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
#[path = "recovery_tests.rs"]
mod tests;
