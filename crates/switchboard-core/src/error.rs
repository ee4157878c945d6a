//! What the protocol can refuse with, in the spec's names. Numbers (JSON-RPC codes, HTTP and gRPC statuses) live only
//! in `dialect/codes.rs`. The text here is what the client reads; causes that clients must not read go to the log under
//! the same incident id.
#![warn(missing_docs, missing_debug_implementations)]

use std::borrow::Cow;
use std::fmt;

use crate::model::{ConfigId, TaskId, TaskState};

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The agent failed at what it was asked. Only for dialects that answer a failed run with an error; others are
    /// answered with the failed task.
    AgentFailed {
        /// What the client reads about the failure.
        reason: String,
    },
    /// There is no such task, or it is not the caller's: the two must look the same.
    TaskNotFound {
        /// The id that was asked for.
        id: TaskId,
    },
    /// The task is there, and has no such push config. The spec has no error of its own for it, so it has the numbers of a
    /// task that is not there.
    PushConfigNotFound {
        /// The task, which exists.
        task_id: TaskId,
        /// Empty if the request named none and the task has none at all.
        id: ConfigId,
    },
    /// The task has ended already: nothing about it changes any more.
    TaskNotCancelable {
        /// The task that was to be canceled.
        id: TaskId,
        /// The state that keeps it from being canceled.
        state: TaskState,
    },
    /// The agent posts no updates to webhooks.
    PushNotificationNotSupported,
    /// The agent or the task does not do what was asked, such as following a task that has ended.
    UnsupportedOperation {
        /// What is not supported, as the client reads it.
        reason: String,
    },
    /// A media type in the message that the agent does not read, or none that it writes is accepted (if the agent is
    /// strict).
    ContentTypeNotSupported {
        /// Which media types do not fit, as the client reads it.
        reason: String,
    },
    /// The agent did what the protocol or a limit forbids, such as an artifact that is too large.
    InvalidAgentResponse {
        /// What the agent did wrong, as the client reads it.
        reason: String,
    },
    /// The agent has no card beyond the public one.
    ExtendedAgentCardNotConfigured,
    /// The agent's card requires an extension that the request does not activate.
    ExtensionSupportRequired {
        /// The URI of the extension.
        uri: String,
        /// The header to name it in.
        header: Cow<'static, str>,
    },
    /// The request names a protocol version that is not served, or two that differ.
    VersionNotSupported {
        /// The version that was asked for.
        requested: String,
        /// The versions that are served, newest first.
        supported: Vec<Cow<'static, str>>,
        /// What to do, where more is known than that the version is not served.
        fix: Option<String>,
    },

    /// The bytes are not JSON.
    ParseError {
        /// Where the JSON breaks off, and how.
        reason: String,
    },
    /// JSON, but not a request.
    InvalidRequest {
        /// Which part of the envelope is missing or wrong.
        reason: String,
    },
    /// There is no such method in the dialect of the request.
    MethodNotFound {
        /// The method that was named.
        method: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// A request whose fields are wrong; each violation names its field.
    InvalidParams {
        /// The wrong fields; the first one is in the text.
        violations: Vec<Violation>,
    },
    /// The server failed. The cause is in the log under this incident id.
    Internal {
        /// Names the log line; the client reads it, too.
        incident: String,
    },

    /// The credential is missing or not valid.
    Unauthenticated {
        /// What is missing, as the client reads it.
        reason: String,
    },
    /// The credential is valid, and does not allow this.
    PermissionDenied {
        /// What is not allowed, as the client reads it.
        reason: String,
    },
    /// Temporary: try again after the given time.
    Unavailable {
        /// What is not available, as the client reads it.
        reason: String,
        /// After how many seconds to try again; HTTP says so in `Retry-After`.
        retry_after_s: u32,
    },
    /// The caller, or all callers together, use as much as the server gives: requests, bytes, streams, or waiting runs.
    ResourceExhausted {
        /// Which limit was reached, as the client reads it.
        reason: String,
        /// After how many seconds to try again; HTTP says so in `Retry-After`. 0 if that is not known.
        retry_after_s: u32,
    },
    /// The body or one of its parts is larger than allowed.
    TooLarge {
        /// What is too large, such as "request body".
        what: Cow<'static, str>,
        /// The largest size that is accepted.
        bytes_max: u64,
    },
}

/// One wrong field: where, in dotted form (`message.parts[0].raw`), and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, in the names of the request's dialect; empty is the request as a whole.
    pub field: String,
    /// What is wrong with it, next to what was expected.
    pub description: String,
}

impl ProtocolError {
    /// The refusal of one wrong field.
    #[must_use]
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::InvalidParams { violations: vec![Violation { field: field.into(), description: description.into() }] }
    }

    /// The same with `at` in front of the fields at fault, because what was refused is a part of something.
    #[must_use]
    pub(crate) fn within(self, at: &str) -> Self {
        match self {
            Self::InvalidParams { mut violations } => {
                for violation in &mut violations {
                    violation.field = match violation.field.as_str() {
                        "" | "body" | "params" => at.to_owned(),
                        field if field.starts_with('[') => format!("{at}{field}"),
                        field => format!("{at}.{field}"),
                    };
                }
                Self::InvalidParams { violations }
            }
            error => error,
        }
    }

    /// The refusal of an operation, with a reason for the client.
    #[must_use]
    pub fn unsupported(reason: impl Into<String>) -> Self {
        Self::UnsupportedOperation { reason: reason.into() }
    }

    /// After how many seconds the same request may succeed, where the refusal says so.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u32> {
        match self {
            Self::Unavailable { retry_after_s, .. } | Self::ResourceExhausted { retry_after_s, .. } => {
                Some(*retry_after_s)
            }
            _ => None,
        }
    }

    /// The refusal of a task that does not exist, or is not the caller's.
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
                let newest = supported.first().map_or("1.0", |newest| &**newest);
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
            Self::ResourceExhausted { reason, .. } => write!(f, "Too much at once: {reason}"),
            Self::TooLarge { what, bytes_max } => write!(f, "The {what} is larger than the limit of {bytes_max} bytes"),
        }
    }
}

impl std::error::Error for ProtocolError {}
