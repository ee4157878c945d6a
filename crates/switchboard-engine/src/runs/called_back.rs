//! What came of a call that nobody waited for, as the next turn of the task reads it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_core::model::{TaskId, TaskState};

use super::call_error::AgentCallError;
use super::turn::Turn;
use crate::ports::calls::CallRow;

/// The member of a message's metadata that says which call the message is the answer of. Callers do not see it.
pub(crate) const CALL_METADATA: &str = "switchboard.call";

/// How the ids of messages begin that deliver what came of a call.
const DELIVERY_PREFIX: &str = "a2a-continuation:";

/// What came of a call that nobody waited for ([`Turn::called_back`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CalledBack {
    /// The call: [`Call::id`](super::Call::id).
    pub call: String,
    /// The agent that was called.
    pub agent: String,
    /// Its task.
    pub task: Option<TaskId>,
    /// How that task ended, or that it waits for an answer. Failed if the agent did not respond in time.
    pub state: TaskState,
    /// The answer in words, or what went wrong.
    pub text: String,
}

/// What came of a call, as it is stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) state: String,
    pub(crate) text: String,
}

impl Outcome {
    pub(crate) fn new(state: TaskState, text: String) -> Self {
        Self { state: state.word().to_owned(), text }
    }
}

impl CalledBack {
    /// None if it is not known yet what came of the call.
    pub(crate) fn of(row: &CallRow) -> Option<Self> {
        let Outcome { state, text } = serde_json::from_str(row.outcome.as_deref()?).ok()?;
        let state = TaskState::from_word(&state)?;
        let CallRow { id, agent, remote_task, .. } = row;
        Some(Self { call: id.clone(), agent: agent.clone(), task: remote_task.clone(), state, text })
    }

    pub(crate) fn json(&self) -> Value {
        let Self { call, agent, task, state, text } = self;
        let task = task.as_ref().map(TaskId::as_str);
        json!({"call": call, "agent": agent, "taskId": task, "state": state.word(), "text": text})
    }
}

/// Names the delivery of a call: the same in every attempt, so that its receiver recognises repeats.
pub(crate) fn delivery_id(row: &CallRow) -> String {
    format!("{DELIVERY_PREFIX}{}", row.id)
}

impl Turn {
    /// What came of an earlier call, if the message of this turn is the answer to it. That a client cannot write such a message is seen
    /// to by looking the call up in the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn called_back(&self) -> Result<Option<CalledBack>, AgentCallError> {
        let Some(id) = self.message().message_id.as_str().strip_prefix(DELIVERY_PREFIX) else { return Ok(None) };
        let Some(calls) = self.engine_arc().store.calls() else { return Ok(None) };
        match calls.call(id).await {
            Ok(row) => Ok(row.filter(|row| row.parent_id == self.record().id).as_ref().and_then(CalledBack::of)),
            Err(error) => Err(self.call_not_kept(&error)),
        }
    }
}
