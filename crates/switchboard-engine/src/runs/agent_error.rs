//! Why agents fail, and why turns cannot write. [`AgentError`] is what an agent returns if it fails: it has two texts, one for the
//! agent's author, which stays in the log, and one that the client reads. A failure whose cause is that the agent broke the
//! protocol leaves a mark in the task, so that a caller who waits for the task is told so.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use switchboard_core::error::ProtocolError;
use switchboard_core::model::{FAILED_UNTOLD, Json, JsonError, Message, Task, TaskState};

use super::call_error::AgentCallError;
use crate::state::runs::{ErrorDetails, RunEnd};

type Cause = Box<dyn Error + Send + Sync>;

/// Why an agent's run failed.
///
/// Everything that converts into a boxed error converts into this type with `?` or `.into()`: any
/// [`std::error::Error`], a boxed one, an `anyhow::Error`, a text. The text goes to the log. The client reads that the
/// agent failed, and an incident id by which the operator finds the log line. Three constructors say more:
///
/// - [`AgentError::told`]: the client reads the whole text;
/// - [`AgentError::with_details`]: the client reads a summary and an incident id, the details go to the log;
/// - [`AgentError::timed_out`]: the client reads the text, and the run counts as one that took too long.
///
/// An [`AgentCallError`] is told as it is.
///
/// An agent that declares [`ErrorDetails::Full`] shows clients everything.
pub struct AgentError {
    kind: Kind,
    /// What the client may read.
    told: Option<String>,
    /// What only the log may contain.
    cause: Option<Cause>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Told,
    TimedOut,
    Hidden,
}

/// A chain of causes longer than this is a loop.
const CAUSES_MAX: usize = 16;

impl AgentError {
    /// A failure with a reason for the client.
    pub fn told(reason: impl Into<String>) -> Self {
        Self { kind: Kind::Told, told: Some(reason.into()), cause: None }
    }

    /// A failure that the agent did not choose. The client reads the summary and an incident id; the details, which may
    /// hold paths or secrets, go to the log under that id.
    pub fn with_details(summary: impl Into<String>, details: impl Into<Cause>) -> Self {
        Self { kind: Kind::Hidden, told: Some(summary.into()), cause: Some(details.into()) }
    }

    /// An end because time ran out, with a reason for the client.
    pub fn timed_out(reason: impl Into<String>) -> Self {
        Self { kind: Kind::TimedOut, told: Some(reason.into()), cause: None }
    }

    /// Adds details that only the log may contain.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// What the client may read.
    #[must_use]
    pub fn client_text(&self) -> &str {
        self.told.as_deref().unwrap_or(FAILED_UNTOLD)
    }

    /// Whether there is something to log besides what the client reads.
    pub(crate) fn is_incident(&self) -> bool {
        self.kind == Kind::Hidden || self.cause.is_some()
    }

    /// What the client reads of this failure.
    pub(crate) fn text_for_client(&self, details: ErrorDetails, incident: &str) -> String {
        let told = self.client_text();
        match (self.kind, details) {
            (Kind::Told | Kind::TimedOut, _) => told.to_owned(),
            (Kind::Hidden, ErrorDetails::Incident) => format!("{told} (incident {incident})"),
            (Kind::Hidden, ErrorDetails::Full) => match (&self.told, self.cause_text()) {
                (_, None) => told.to_owned(),
                (None, Some(cause)) => cause,
                (Some(summary), Some(details)) => format!("{summary}:\n{details}"),
            },
        }
    }

    /// The chain of causes as text, for the log.
    pub(crate) fn cause_text(&self) -> Option<String> {
        let mut text = String::new();
        for cause in self.causes() {
            let more = cause.to_string();
            // Many errors end with the text of their source.
            if text.ends_with(&more) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&more);
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// The ending under which a run with this error is counted.
    pub(crate) fn run_end(&self) -> RunEnd {
        let refused = |cause: &(dyn Error + 'static)| matches!(cause.downcast_ref(), Some(TurnError::Refused(_)));
        match self.kind {
            _ if self.causes().any(refused) => RunEnd::InvalidResponse,
            Kind::Told => RunEnd::Failed,
            Kind::TimedOut => RunEnd::TimedOut,
            Kind::Hidden => RunEnd::Error,
        }
    }

    /// The chain of causes, outermost first.
    fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        let mut next = self.cause.as_deref().map(|cause| -> &(dyn Error + 'static) { cause });
        let one = move || {
            let cause = next?;
            next = cause.source();
            Some(cause)
        };
        std::iter::from_fn(one).take(CAUSES_MAX)
    }
}

// Bounded by `Into`, not by `Error`, because neither a text, nor a boxed error, nor `anyhow::Error` is an `Error` itself.
impl<E: Into<Cause>> From<E> for AgentError {
    fn from(error: E) -> Self {
        let cause: Cause = error.into();
        // What went wrong with a call to another agent is made for the client.
        match cause.downcast_ref::<AgentCallError>().map(ToString::to_string) {
            Some(told) => Self { kind: Kind::Told, told: Some(told), cause: None },
            None => Self { kind: Kind::Hidden, told: None, cause: Some(cause) },
        }
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause_text() {
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
    /// The checkpoint cannot be written as JSON, such as a map whose keys are not texts; nothing was written.
    Checkpoint(JsonError),
    /// The store failed; whether the write was recorded is not known.
    Unavailable,
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the task has ended or moved to another run"),
            Self::Refused(error) => fmt::Display::fmt(error, f),
            Self::Checkpoint(error) => write!(f, "the checkpoint cannot be written as JSON: {error}"),
            Self::Unavailable => f.write_str("the store is unavailable"),
        }
    }
}

impl Error for TurnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Checkpoint(error) => Some(error),
            Self::Refused(error) => error.source(),
            Self::Stopped | Self::Unavailable => None,
        }
    }
}

/// The key in the metadata of a failure's message that says how the agent's answer broke the protocol.
const INVALID_RESPONSE: &str = "switchboard.invalidAgentResponse";

/// Marks the message of a failure whose cause is that the agent broke the protocol.
pub(super) fn mark_invalid_response(mut message: Arc<Message>, error: &AgentError) -> Arc<Message> {
    let cause = error.cause.as_ref().and_then(|cause| cause.downcast_ref::<TurnError>());
    if let Some(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason })) = cause {
        let mark = serde_json::json!({ INVALID_RESPONSE: reason });
        Arc::make_mut(&mut message).metadata = Some(Json::from_trusted(mark.to_string()));
    }
    message
}

/// How the agent of a failed task broke the protocol, if that is why the task failed.
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
mod tests {
    use super::AgentError;

    fn cause(error: AgentError) -> (Option<String>, Option<String>) {
        (error.told, error.cause.map(|cause| cause.to_string()))
    }

    #[test]
    fn whatever_a_boxed_error_can_be_made_of_fails_a_run_and_is_not_told() {
        type Boxed = Box<dyn std::error::Error + Send + Sync>;
        fn by_question_mark(error: Boxed) -> Result<(), AgentError> {
            Err(error)?
        }
        let logged = |text: &str| (None, Some(text.to_owned()));
        assert_eq!(cause("no ink".into()), logged("no ink"));
        assert_eq!(cause(String::from("no ink").into()), logged("no ink"));
        assert_eq!(cause(std::io::Error::other("no ink").into()), logged("no ink"));
        assert_eq!(cause(by_question_mark("no ink".into()).unwrap_err()), logged("no ink"));
        assert_eq!(cause(AgentError::told("no ink")), (Some("no ink".to_owned()), None));
    }
}
