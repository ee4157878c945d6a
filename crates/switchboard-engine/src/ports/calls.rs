//! The calls that agents make to other agents, one row each. A row is there before the message leaves, and from then on says how far
//! the call has come, so that the next attempt of the run goes on with the same task of the other agent.
//!
//! A call that nobody waits for becomes a *continuation*: the process that claims its row looks at the other agent's task and delivers
//! what came of it. Which step may follow which is decided here, by [`CallRow::apply`] and [`CallRow::claim`]; stores only keep rows.

use std::sync::Arc;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ContextId, TaskId, Timestamp, TraceContext};

use super::common::{Scope, StoreError, TaskKey};
use super::storage::CALL_BYTES;

/// How often it is checked that the run is still at work which looks after a call.
pub const INLINE_LOOK_MS: i64 = 60_000;

/// The port for calls. A store may lack it; then its agents cannot call others.
pub trait Calls: Send + Sync {
    /// Records a call, unless there is one with this id, and returns what is stored.
    fn open_call(&self, call: CallRow) -> BoxFuture<'_, Result<CallRow, StoreError>>;

    /// Applies a step to a call. None if there is no such call, or the step may not follow.
    fn change_call(&self, id: &str, step: CallStep) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>>;

    /// One call.
    fn call(&self, id: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>>;

    /// The calls of a task, oldest first.
    fn calls_of(&self, parent: TaskKey) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>>;

    /// Claims continuations and calls of runs that are due, or only the one of this id; other processes do not get them for `claim_ms`.
    fn claim_calls(
        &self,
        only: Option<String>,
        limit: usize,
        claim_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>>;

    /// In how many milliseconds the next continuation is due, by the clock of the store, if any waits; none or fewer than none if it is due already.
    fn next_call_in(&self) -> BoxFuture<'_, Result<Option<i64>, StoreError>>;
}

/// Who looks after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStatus {
    /// The run that made it.
    Inline,
    /// Nobody; it is looked at when it is due.
    Pending,
    /// A process that has claimed it looks at the other agent's task.
    Processing,
    /// What came of it is known and recorded, and is being delivered.
    Delivering,
    /// What came of it has been used or delivered.
    Completed,
    /// Nothing came of it, or it could not be delivered.
    Failed,
}

impl CallStatus {
    pub const ALL: [Self; 6] =
        [Self::Inline, Self::Pending, Self::Processing, Self::Delivering, Self::Completed, Self::Failed];

    /// The word that stores and logs have for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Delivering => "delivering",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// Whether nothing more happens to the call.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// One call as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRow {
    /// Also the id of the message, and its `Idempotency-Key`.
    pub id: String,
    /// The task whose run made the call.
    pub parent: TaskKey,
    pub parent_id: TaskId,
    /// The owner and the agent of that task.
    pub scope: Scope,
    /// The turn of it.
    pub turn: u32,
    /// The agent that is called.
    pub agent: String,
    pub status: CallStatus,
    /// Whether the message may have left, to an agent that does not recognise repeats.
    pub has_left: bool,
    /// The task of the other agent, once it is known.
    pub remote_task: Option<TaskId>,
    pub remote_context: Option<ContextId>,
    /// How often it was claimed as a continuation.
    pub attempts: u32,
    /// When it may be claimed (again). Set while it is a continuation; also while a run waits for it, which may have died.
    pub due_at: Option<Timestamp>,
    /// Set while a process works on it.
    pub claimed_until: Option<Timestamp>,
    /// When the time for it is over. Set when it becomes a continuation.
    pub give_up_at: Option<Timestamp>,
    /// A URL that is told what came of it, in place of the parent task.
    pub deliver_to: Option<String>,
    /// What is delivered, as JSON.
    pub outcome: Option<String>,
    /// What the delivery was answered with.
    pub receipt: Option<String>,
    /// Why nothing came of it.
    pub error: Option<String>,
    /// The trace that it was made in, under the span of its run.
    pub trace: Option<Arc<TraceContext>>,
    pub created_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// What can happen to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallStep {
    /// The message may leave now; or it is known that it has not left.
    Left(bool),
    /// The other agent has a task for it.
    Remote { task: TaskId, context: Option<ContextId> },
    /// The run has what came of it.
    Used,
    /// The run has an answer, and the other agent's task goes on: it asks something back.
    Answered,
    /// Nothing will come of it.
    Failed { error: String },
    /// Nobody waits for it any more: it is looked at after `wait_ms`, and given up after `give_up_ms`.
    HandOver { wait_ms: i64, give_up_ms: i64, deliver_to: Option<String> },
    /// A step of the process that has claimed it until this time.
    Claimed { until: Timestamp, step: ClaimedStep },
}

/// What a process does with a continuation that it has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimedStep {
    /// Nothing has come of it yet: look again after `wait_ms`.
    Again { wait_ms: i64, error: Option<String> },
    /// What came of it is known. The claim goes on, so that it is delivered.
    Deliver { outcome: String, error: Option<String> },
    /// It was delivered, and this is the answer to that.
    Delivered { receipt: String },
    /// It cannot be delivered.
    Undeliverable { error: String },
}

impl CallRow {
    /// What it counts of the limits of stored bytes.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        CALL_BYTES + self.outcome.as_ref().map_or(0, |outcome| outcome.len() as u64)
    }

    /// Applies a step at this time; false if it may not follow, and then nothing is changed.
    pub fn apply(&mut self, step: &CallStep, now: Timestamp) -> bool {
        if self.status.is_over() {
            return false;
        }
        match step {
            CallStep::Left(has_left) => self.has_left = *has_left,
            CallStep::Remote { task, context } => {
                self.remote_task = Some(task.clone());
                self.remote_context.clone_from(context);
            }
            CallStep::Used if self.status == CallStatus::Inline => self.end(CallStatus::Completed, now),
            CallStep::Answered if self.status == CallStatus::Inline => (self.due_at, self.claimed_until) = (None, None),
            CallStep::Used | CallStep::Answered => return false,
            CallStep::Failed { error } => {
                self.error = Some(error.clone());
                self.end(CallStatus::Failed, now);
            }
            CallStep::HandOver { wait_ms, give_up_ms, deliver_to } => {
                if self.status != CallStatus::Inline || self.remote_task.is_none() {
                    return false;
                }
                self.status = CallStatus::Pending;
                (self.due_at, self.claimed_until) = (Some(now.plus_ms(*wait_ms)), None);
                self.give_up_at = Some(now.plus_ms(*give_up_ms));
                self.deliver_to.clone_from(deliver_to);
            }
            CallStep::Claimed { until, step } => {
                if self.claimed_until != Some(*until) {
                    return false;
                }
                return self.apply_claimed(step, now);
            }
        }
        true
    }

    fn apply_claimed(&mut self, step: &ClaimedStep, now: Timestamp) -> bool {
        match (step, self.status) {
            (
                ClaimedStep::Again { wait_ms, error },
                CallStatus::Inline | CallStatus::Processing | CallStatus::Delivering,
            ) => {
                if self.status == CallStatus::Processing {
                    self.status = CallStatus::Pending;
                }
                self.due_at = Some(now.plus_ms(*wait_ms));
                self.claimed_until = None;
                self.error.clone_from(error);
            }
            (ClaimedStep::Deliver { outcome, error }, CallStatus::Processing) => {
                self.status = CallStatus::Delivering;
                self.outcome = Some(outcome.clone());
                self.error.clone_from(error);
            }
            (ClaimedStep::Delivered { receipt }, CallStatus::Delivering) => {
                self.receipt = Some(receipt.clone());
                let status = if self.error.is_none() { CallStatus::Completed } else { CallStatus::Failed };
                self.end(status, now);
            }
            (ClaimedStep::Undeliverable { error }, CallStatus::Delivering) => {
                self.error = Some(error.clone());
                self.end(CallStatus::Failed, now);
            }
            (
                ClaimedStep::Again { .. }
                | ClaimedStep::Deliver { .. }
                | ClaimedStep::Delivered { .. }
                | ClaimedStep::Undeliverable { .. },
                _,
            ) => return false,
        }
        true
    }

    /// Claims a call that is due; false if it is not. Of a continuation, a claim that ran out is one more attempt, unless it is known
    /// already what is delivered.
    pub fn claim(&mut self, now: Timestamp, claim_ms: u32) -> bool {
        if self.due_at.is_none_or(|due_at| due_at > now) {
            return false;
        }
        match self.status {
            CallStatus::Pending | CallStatus::Processing => {
                self.status = CallStatus::Processing;
                self.attempts += 1;
            }
            CallStatus::Inline | CallStatus::Delivering => {}
            CallStatus::Completed | CallStatus::Failed => return false,
        }
        let until = now.plus_ms(claim_ms.into());
        (self.due_at, self.claimed_until) = (Some(until), Some(until));
        true
    }

    /// Makes a call due whose claim, or whose run, was in a process that is gone; false if there is none.
    pub fn void_claim(&mut self, now: Timestamp) -> bool {
        let has_run = self.status == CallStatus::Inline && self.due_at.is_some();
        if self.claimed_until.take().is_none() && !has_run {
            return false;
        }
        self.due_at = Some(now);
        true
    }

    /// Shifts the times of a call that waits after the clock was set back. The end of a claim stays, because the process that holds
    /// it names it by that.
    pub fn set_back(&mut self, back_ms: i64) -> bool {
        self.due_at = self.due_at.map(|at| at.plus_ms(-back_ms));
        self.give_up_at = self.give_up_at.map(|at| at.plus_ms(-back_ms));
        self.due_at.is_some()
    }

    fn end(&mut self, status: CallStatus, now: Timestamp) {
        self.status = status;
        (self.due_at, self.claimed_until, self.ended_at) = (None, None, Some(now));
    }
}
