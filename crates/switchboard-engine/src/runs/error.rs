//! How a run goes wrong: for the agent's author, and for the client. These are two texts; only the second leaves.

use std::fmt;
use std::sync::Arc;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::{FAILED_UNTOLD, Json, Message, Task, TaskState};

/// Why an agent's run failed.
///
/// Whatever a boxed error can be made of converts into one with `?` or `.into()`: any [`std::error::Error`], a boxed one,
/// an `anyhow::Error`, a text. It goes to the log, and the client is told only that the agent failed.
/// [`AgentError::told`] makes one whose text the client may read.
pub struct AgentError {
    pub(crate) told: Option<String>,
    pub(crate) cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AgentError {
    /// A failure with a reason for the client.
    pub fn told(reason: impl Into<String>) -> Self {
        Self { told: Some(reason.into()), cause: None }
    }

    /// What the client may read.
    #[must_use]
    pub fn client_text(&self) -> &str {
        self.told.as_deref().unwrap_or(FAILED_UNTOLD)
    }
}

// Bounded by `Into`, not by `Error`, because neither a text, nor a boxed error, nor `anyhow::Error` is an `Error` itself.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for AgentError {
    fn from(error: E) -> Self {
        Self { told: None, cause: Some(error.into()) }
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}: {cause}", self.client_text()),
            None => f.write_str(self.client_text()),
        }
    }
}

/// Why a turn could not write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnError {
    /// The task has ended, or another run has taken over: stop working.
    Stopped,
    /// What was written makes no sense here, or exceeds a limit.
    Refused(ProtocolError),
    /// The store did not take it; it is not known to be recorded.
    Unavailable,
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the task has ended or moved to another run"),
            Self::Refused(error) => fmt::Display::fmt(error, f),
            Self::Unavailable => f.write_str("the store is unavailable"),
        }
    }
}

impl std::error::Error for TurnError {}

/// The name in the metadata of a failure's message that tells how the agent answered wrongly.
const INVALID_RESPONSE: &str = "switchboard.invalidAgentResponse";

/// Marks the message of a failure whose cause is that the agent did what the protocol forbids.
pub(super) fn mark_invalid_response(mut message: Arc<Message>, error: &AgentError) -> Arc<Message> {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<TurnError>());
    if let Some(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason })) = cause {
        let mark = serde_json::json!({ INVALID_RESPONSE: reason });
        Arc::make_mut(&mut message).metadata = Some(Json::from_trusted(mark.to_string()));
    }
    message
}

/// How the agent of a failed task answered wrongly, if that is why it failed.
pub(crate) fn invalid_response(task: &Task) -> Option<ProtocolError> {
    let metadata = task.status.message.as_ref().filter(|_| task.state() == TaskState::Failed)?.metadata.as_ref()?;
    if !metadata.as_str().contains(INVALID_RESPONSE) {
        return None;
    }
    let parsed: serde_json::Value = serde_json::from_str(metadata.as_str()).ok()?;
    let reason = parsed.get(INVALID_RESPONSE)?.as_str()?.to_owned();
    Some(ProtocolError::InvalidAgentResponse { reason })
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
