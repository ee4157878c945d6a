//! What the protocol can refuse with, in the spec's names. Numbers (JSON-RPC codes, HTTP and gRPC statuses) live only
//! in `dialect/codes.rs`. The text here is what the client reads; causes that must not leave the house go to the log
//! under the same incident id.

use std::fmt;

use crate::model::{ConfigId, TaskId, TaskState};

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The agent failed at what it was asked. Only for dialects that answer a failed run with an error; others are
    /// answered with the failed task.
    AgentFailed {
        reason: String,
    },
    /// There is no such task, or it is not the caller's: the two must look the same.
    TaskNotFound {
        id: TaskId,
    },
    /// The task is there, and has no such push config. The spec has no error of its own for it, so it has the numbers of a
    /// task that is not there.
    PushConfigNotFound {
        task_id: TaskId,
        /// Empty if the request named none and the task has none at all.
        id: ConfigId,
    },
    TaskNotCancelable {
        id: TaskId,
        state: TaskState,
    },
    PushNotificationNotSupported,
    UnsupportedOperation {
        reason: String,
    },
    ContentTypeNotSupported {
        reason: String,
    },
    InvalidAgentResponse {
        reason: String,
    },
    ExtendedAgentCardNotConfigured,
    ExtensionSupportRequired {
        uri: String,
        /// The header to name it in.
        header: &'static str,
    },
    VersionNotSupported {
        requested: String,
        supported: Vec<&'static str>,
        /// What to do, where more is known than that the version is not served.
        fix: Option<String>,
    },

    /// The bytes are not JSON.
    ParseError {
        reason: String,
    },
    /// JSON, but not a request.
    InvalidRequest {
        reason: String,
    },
    MethodNotFound {
        method: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// A request whose fields are wrong; each violation names its field.
    InvalidParams {
        violations: Vec<Violation>,
    },
    /// Ours. The cause is in the log under this incident id.
    Internal {
        incident: String,
    },

    Unauthenticated {
        reason: String,
    },
    PermissionDenied {
        reason: String,
    },
    /// Temporary: try again after the given time.
    Unavailable {
        reason: String,
        retry_after_s: u32,
    },
    /// The body or one of its parts is larger than allowed.
    TooLarge {
        what: &'static str,
        bytes_max: u64,
    },
}

/// One wrong field: where, in dotted form (`message.parts[0].raw`), and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub field: String,
    pub description: String,
}

impl ProtocolError {
    /// The refusal of one wrong field.
    #[must_use]
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::InvalidParams { violations: vec![Violation { field: field.into(), description: description.into() }] }
    }

    #[must_use]
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Self::UnsupportedOperation { reason: reason.into() }
    }

    #[must_use]
    pub fn task_not_found(id: &TaskId) -> Self {
        Self::TaskNotFound { id: id.clone() }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AgentFailed { reason } => f.write_str(reason),
            Self::TaskNotFound { .. } => f.write_str("Task not found"),
            Self::PushConfigNotFound { id, .. } if id.is_empty() => f.write_str("The task has no push config"),
            Self::PushConfigNotFound { id, .. } => write!(f, "The task has no push config {id}"),
            Self::TaskNotCancelable { state, .. } => write!(f, "Task cannot be canceled: it is {}", state.word()),
            Self::PushNotificationNotSupported => f.write_str("Push notifications are not supported by this agent"),
            Self::UnsupportedOperation { reason } => f.write_str(reason),
            Self::ContentTypeNotSupported { reason } => f.write_str(reason),
            Self::InvalidAgentResponse { reason } => write!(f, "The agent answered wrongly: {reason}"),
            Self::ExtendedAgentCardNotConfigured => f.write_str("No extended agent card is configured"),
            Self::ExtensionSupportRequired { uri, header } => {
                write!(f, "This agent requires the extension {uri}: send header {header}: {uri}")
            }
            Self::VersionNotSupported { fix: Some(fix), .. } => f.write_str(fix),
            Self::VersionNotSupported { requested, supported, fix: None } => {
                let served = supported.join(", ");
                let newest = supported.first().copied().unwrap_or("1.0");
                write!(
                    f,
                    "Protocol version {requested} is not offered here (served: {served}); \
                     send header A2A-Version: {newest} (a request without it means 0.3)"
                )
            }
            Self::ParseError { reason } => write!(f, "Invalid JSON payload: {reason}"),
            Self::InvalidRequest { reason } => write!(f, "Invalid request: {reason}"),
            Self::MethodNotFound { method, hint: None } => write!(f, "Method not found: {method}"),
            Self::MethodNotFound { method, hint: Some(hint) } => write!(f, "Method not found: {method}; {hint}"),
            Self::InvalidParams { violations } => match violations.as_slice() {
                [only] if only.field.is_empty() => write!(f, "Invalid parameters: {}", only.description),
                [first, ..] => write!(f, "Invalid parameters: {}: {}", first.field, first.description),
                [] => f.write_str("Invalid parameters"),
            },
            Self::Internal { incident } => write!(f, "Internal error (incident {incident})"),
            Self::Unauthenticated { reason } => write!(f, "Authentication required: {reason}"),
            Self::PermissionDenied { reason } => write!(f, "Permission denied: {reason}"),
            Self::Unavailable { reason, .. } => write!(f, "Temporarily unavailable: {reason}"),
            Self::TooLarge { what, bytes_max } => write!(f, "The {what} is larger than the limit of {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for ProtocolError {}
