//! Refusals: a code and a text, no data. Where the original has a text, that exact text is used. -32001 means that a
//! task does not exist or, with HTTP 401, that the caller is not authenticated.

use crate::dialect::codes;
use crate::dialect::compat::refusal::{self, is_about};
use crate::dialect::wire::ReceivedError;
use crate::error::ProtocolError;
use crate::model::TaskId;

/// The refusal of a stream by an agent that has none.
#[must_use]
pub fn no_streaming() -> ProtocolError {
    ProtocolError::MethodNotFound { method: "message/stream".to_owned(), hint: Some(NO_STREAMING.to_owned()) }
}

const NO_STREAMING: &str = "Streaming not supported";
const INVALID_PARAMS: &str = "Invalid params: ";
const METHOD_NOT_FOUND: &str = "Method not found: ";

/// What the original answers when it does not accept a credential.
const UNAUTHENTICATED: [&str; 3] = ["Authentication required", "Invalid API key", "Invalid or expired A2A token"];

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    refusal::write_rpc(id, code(error), &text(error), out);
}

/// Writes the body of a refusal that has nothing to do with JSON-RPC, such as that of a verb.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    refusal::write_plain(&text(error), out);
}

fn code(error: &ProtocolError) -> i32 {
    let stands_for = match error {
        ProtocolError::Unauthenticated { .. } | ProtocolError::PermissionDenied { .. } => {
            ProtocolError::TaskNotFound { id: TaskId::default() }
        }
        ProtocolError::ParseError { .. } => ProtocolError::InvalidRequest { reason: String::new() },
        error => return codes::of(error).jsonrpc,
    };
    codes::of(&stands_for).jsonrpc
}

fn text(error: &ProtocolError) -> String {
    match error {
        ProtocolError::Unauthenticated { .. } => UNAUTHENTICATED[0].to_owned(),
        ProtocolError::ParseError { .. } | ProtocolError::InvalidRequest { .. } => {
            "Invalid JSON-RPC request".to_owned()
        }
        ProtocolError::MethodNotFound { hint: Some(hint), .. } if hint == NO_STREAMING => hint.clone(),
        ProtocolError::InvalidParams { violations } => match violations.first() {
            Some(first) if first.field.is_empty() => format!("{INVALID_PARAMS}{}", first.description),
            Some(first) => format!("{INVALID_PARAMS}{}: {}", first.field, first.description),
            None => "Invalid params".to_owned(),
        },
        error => error.to_string(),
    }
}

/// Reads a refusal. The code -32001 has two meanings; the status it came with and the texts of the original tell them apart.
#[must_use]
pub fn read_error(body: &[u8], http: Option<u16>) -> Option<ReceivedError> {
    let mut read = refusal::read(body)?;
    let text = read.message.clone();
    if http == Some(401) || UNAUTHENTICATED.contains(&text.as_str()) {
        is_about(&mut read, "UNAUTHENTICATED", &[]);
    } else if http == Some(403) {
        is_about(&mut read, "PERMISSION_DENIED", &[]);
    } else if http == Some(503) {
        is_about(&mut read, "UNAVAILABLE", &[]);
    } else if text == NO_STREAMING {
        is_about(&mut read, "METHOD_NOT_FOUND", &[("method", "message/stream")]);
    } else if let Some(method) = text.strip_prefix(METHOD_NOT_FOUND) {
        let method = method.split_once("; ").map_or(method, |(method, _)| method);
        is_about(&mut read, "METHOD_NOT_FOUND", &[("method", method)]);
    } else if let Some(wrong) = text.strip_prefix(INVALID_PARAMS) {
        is_about(&mut read, "INVALID_PARAMS", &[]);
        read.violations = vec![refusal::violation(wrong)];
    }
    Some(read)
}
