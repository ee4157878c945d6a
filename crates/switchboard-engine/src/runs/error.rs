//! How a run goes wrong: for the agent's author, and for the client. These are two texts; only the second leaves.

use std::fmt;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::FAILED_UNTOLD;

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

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
