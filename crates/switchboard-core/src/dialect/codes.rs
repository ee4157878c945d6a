//! The one table that turns a [`ProtocolError`] into numbers: JSON-RPC code, HTTP status, gRPC code and name, and the
//! reason of its `ErrorInfo`. All other code uses the names of errors, not their numbers.
//!
//! The spec's table covers the A2A errors and the JSON-RPC ones. It leaves six to the server: -31401 and -31403 follow
//! the Go SDK; -32050 (try again later), -32051 (too large) and -32052 (too much at once) are ours, inside the range A2A keeps for such codes; -32000
//! (the agent failed) is agent-native's.

use crate::error::ProtocolError;
use crate::model::TaskState;

/// How one error is numbered in each binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    pub jsonrpc: i32,
    pub http: u16,
    pub grpc: u8,
    /// The gRPC code by name.
    pub status: &'static str,
    /// The `reason` of the `ErrorInfo` detail.
    pub reason: &'static str,
}

/// The domain of every `ErrorInfo`.
pub const DOMAIN: &str = "a2a-protocol.org";

/// The row of an error.
#[must_use]
pub fn of(error: &ProtocolError) -> Codes {
    use ProtocolError as E;
    let row = |jsonrpc, http, (grpc, status), reason| Codes { jsonrpc, http, grpc, status, reason };
    match error {
        E::AgentFailed { .. } => row(-32000, 500, INTERNAL, "AGENT_FAILED"),
        E::TaskNotFound { .. } | E::PushConfigNotFound { .. } => row(-32001, 404, NOT_FOUND, "TASK_NOT_FOUND"),
        E::TaskNotCancelable { .. } => row(-32002, 400, FAILED_PRECONDITION, "TASK_NOT_CANCELABLE"),
        E::PushNotificationNotSupported => row(-32003, 400, FAILED_PRECONDITION, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
        E::UnsupportedOperation { .. } => row(-32004, 400, FAILED_PRECONDITION, "UNSUPPORTED_OPERATION"),
        E::ContentTypeNotSupported { .. } => row(-32005, 400, INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED"),
        E::InvalidAgentResponse { .. } => row(-32006, 500, INTERNAL, "INVALID_AGENT_RESPONSE"),
        E::ExtendedAgentCardNotConfigured => {
            row(-32007, 400, FAILED_PRECONDITION, "EXTENDED_AGENT_CARD_NOT_CONFIGURED")
        }
        E::ExtensionSupportRequired { .. } => row(-32008, 400, FAILED_PRECONDITION, "EXTENSION_SUPPORT_REQUIRED"),
        E::VersionNotSupported { .. } => row(-32009, 400, FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED"),
        E::ParseError { .. } => row(-32700, 400, INVALID_ARGUMENT, "PARSE_ERROR"),
        E::InvalidRequest { .. } => row(-32600, 400, INVALID_ARGUMENT, "INVALID_REQUEST"),
        E::MethodNotFound { .. } => row(-32601, 404, UNIMPLEMENTED, "METHOD_NOT_FOUND"),
        E::InvalidParams { .. } => row(-32602, 400, INVALID_ARGUMENT, "INVALID_PARAMS"),
        E::Internal { .. } => row(-32603, 500, INTERNAL, "INTERNAL_ERROR"),
        E::Unauthenticated { .. } => row(-31401, 401, UNAUTHENTICATED, "UNAUTHENTICATED"),
        E::PermissionDenied { .. } => row(-31403, 403, PERMISSION_DENIED, "PERMISSION_DENIED"),
        E::Unavailable { .. } => row(-32050, 503, UNAVAILABLE, "UNAVAILABLE"),
        E::ResourceExhausted { .. } => row(-32052, 429, RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"),
        E::TooLarge { .. } => row(-32051, 413, RESOURCE_EXHAUSTED, "PAYLOAD_TOO_LARGE"),
    }
}

/// Every code of JSON-RPC that has a reason of its own.
const REASONS: [(i64, &str); 20] = [
    (-32000, "AGENT_FAILED"),
    (-32001, "TASK_NOT_FOUND"),
    (-32002, "TASK_NOT_CANCELABLE"),
    (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    (-32004, "UNSUPPORTED_OPERATION"),
    (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
    (-32006, "INVALID_AGENT_RESPONSE"),
    (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    (-32008, "EXTENSION_SUPPORT_REQUIRED"),
    (-32009, "VERSION_NOT_SUPPORTED"),
    (-32700, "PARSE_ERROR"),
    (-32600, "INVALID_REQUEST"),
    (-32601, "METHOD_NOT_FOUND"),
    (-32602, "INVALID_PARAMS"),
    (-32603, "INTERNAL_ERROR"),
    (-31401, "UNAUTHENTICATED"),
    (-31403, "PERMISSION_DENIED"),
    (-32050, "UNAVAILABLE"),
    (-32051, "PAYLOAD_TOO_LARGE"),
    (-32052, "RESOURCE_EXHAUSTED"),
];

/// The reason that a code of JSON-RPC stands for.
#[must_use]
pub fn reason_of(code: i64) -> Option<&'static str> {
    REASONS.iter().find(|(known, _)| *known == code).map(|(_, reason)| *reason)
}

/// The reason that an HTTP status stands for where nothing else is told.
#[must_use]
pub fn reason_of_http(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("UNAUTHENTICATED"),
        403 => Some("PERMISSION_DENIED"),
        404 => Some("TASK_NOT_FOUND"),
        // SDKs of 0.3 send it for nothing else, and without a code.
        409 => Some("TASK_NOT_CANCELABLE"),
        413 => Some("PAYLOAD_TOO_LARGE"),
        429 => Some("RESOURCE_EXHAUSTED"),
        502..=504 => Some("UNAVAILABLE"),
        400..500 => Some("INVALID_REQUEST"),
        500..600 => Some("INTERNAL_ERROR"),
        _ => None,
    }
}

/// The reason that the beginning of a text names. Over gRPC the SDKs of 0.3 have no details for their errors: the Python one writes the
/// name of the error before its text, as in `TaskNotCancelableError: …`, and the JavaScript one has a text for this one.
#[must_use]
pub fn reason_of_text(text: &str) -> Option<&'static str> {
    if text.starts_with("Task not cancelable: ") {
        return Some("TASK_NOT_CANCELABLE");
    }
    let (name, _) = text.split_once("Error: ")?;
    match name {
        "TaskNotFound" => Some("TASK_NOT_FOUND"),
        "TaskNotCancelable" => Some("TASK_NOT_CANCELABLE"),
        "PushNotificationNotSupported" => Some("PUSH_NOTIFICATION_NOT_SUPPORTED"),
        "UnsupportedOperation" => Some("UNSUPPORTED_OPERATION"),
        "ContentTypeNotSupported" => Some("CONTENT_TYPE_NOT_SUPPORTED"),
        "InvalidAgentResponse" => Some("INVALID_AGENT_RESPONSE"),
        "InvalidRequest" => Some("INVALID_REQUEST"),
        "MethodNotFound" => Some("METHOD_NOT_FOUND"),
        "InvalidParams" => Some("INVALID_PARAMS"),
        "Internal" => Some("INTERNAL_ERROR"),
        _ => None,
    }
}

/// The reason that a code of gRPC stands for where nothing else is told.
#[must_use]
pub fn reason_of_grpc(code: u8) -> Option<&'static str> {
    match code {
        3 => Some("INVALID_PARAMS"),
        // RESOURCE_EXHAUSTED can mean too many bytes or too many calls. Both may be tried again.
        DEADLINE_EXCEEDED | 8 | 14 => Some("UNAVAILABLE"),
        5 => Some("TASK_NOT_FOUND"),
        7 => Some("PERMISSION_DENIED"),
        // SDKs of 0.3 refuse most of what they do not do as unimplemented.
        9 | 12 => Some("UNSUPPORTED_OPERATION"),
        // Already there, aborted, out of range.
        6 | 10 | 11 => Some("INVALID_REQUEST"),
        // Servers send UNKNOWN for a failure without an explanation.
        2 | 13 | 15 => Some("INTERNAL_ERROR"),
        16 => Some("UNAUTHENTICATED"),
        _ => None,
    }
}

/// The HTTP status of an error under 0.3's paths. That version has no table; where both SDKs that serve it agree on another
/// number than 1.0's, it is theirs.
#[must_use]
pub fn http_of_0_3(error: &ProtocolError) -> u16 {
    match error {
        ProtocolError::TaskNotCancelable { .. } => 409,
        // The text of 0.2 has this number for its own way to ask for that card.
        ProtocolError::ExtendedAgentCardNotConfigured => 404,
        _ => of(error).http,
    }
}

/// What a program may want to know about an error without reading its message, as names and texts. How a state is spelled
/// is the dialect's to say.
#[must_use]
pub fn facts(error: &ProtocolError, state_name: impl Fn(TaskState) -> &'static str) -> Vec<(&'static str, String)> {
    use ProtocolError as E;
    match error {
        E::TaskNotFound { id } => vec![("taskId", id.to_string())],
        E::PushConfigNotFound { task_id, id } => vec![("taskId", task_id.to_string()), ("configId", id.to_string())],
        E::TaskNotCancelable { id, state } => {
            vec![("taskId", id.to_string()), ("state", state_name(*state).to_owned())]
        }
        E::ExtensionSupportRequired { uri, .. } => vec![("extension", uri.clone())],
        E::VersionNotSupported { requested, supported, .. } => {
            vec![("requested", requested.clone()), ("supported", supported.join(","))]
        }
        E::MethodNotFound { method, .. } => vec![("method", method.clone())],
        E::Internal { incident } => vec![("incident", incident.clone())],
        E::TooLarge { bytes_max, .. } => vec![("bytesMax", bytes_max.to_string())],
        E::AgentFailed { .. }
        | E::PushNotificationNotSupported
        | E::UnsupportedOperation { .. }
        | E::ContentTypeNotSupported { .. }
        | E::InvalidAgentResponse { .. }
        | E::ExtendedAgentCardNotConfigured
        | E::ParseError { .. }
        | E::InvalidRequest { .. }
        | E::InvalidParams { .. }
        | E::Unauthenticated { .. }
        | E::PermissionDenied { .. }
        | E::Unavailable { .. }
        | E::ResourceExhausted { .. } => Vec::new(),
    }
}

/// A call was not answered before the time its caller set. Only gRPC has callers say so.
pub const DEADLINE_EXCEEDED: u8 = 4;
/// A call whose framing or encoding is not served.
pub const GRPC_UNIMPLEMENTED: u8 = UNIMPLEMENTED.0;
/// The bytes contradict their headers.
pub const GRPC_INTERNAL: u8 = INTERNAL.0;

const INVALID_ARGUMENT: (u8, &str) = (3, "INVALID_ARGUMENT");
const NOT_FOUND: (u8, &str) = (5, "NOT_FOUND");
const PERMISSION_DENIED: (u8, &str) = (7, "PERMISSION_DENIED");
const RESOURCE_EXHAUSTED: (u8, &str) = (8, "RESOURCE_EXHAUSTED");
const FAILED_PRECONDITION: (u8, &str) = (9, "FAILED_PRECONDITION");
const UNIMPLEMENTED: (u8, &str) = (12, "UNIMPLEMENTED");
const INTERNAL: (u8, &str) = (13, "INTERNAL");
const UNAVAILABLE: (u8, &str) = (14, "UNAVAILABLE");
const UNAUTHENTICATED: (u8, &str) = (16, "UNAUTHENTICATED");

#[cfg(test)]
#[path = "codes_tests.rs"]
mod tests;
