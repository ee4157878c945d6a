//! Refusals: a code and a text, no data. The codes are those of JSON-RPC; a task that is not there is a parameter that is
//! not valid, so when one is read the text tells the two apart.

use crate::dialect::codes;
use crate::dialect::compat::refusal::{self, is_about};
use crate::dialect::wire::ReceivedError;
use crate::error::ProtocolError;

const TASK_NOT_FOUND: &str = "Task not found: ";
const INVALID_PARAMS: &str = "Invalid params: ";
const INVALID_REQUEST: &str = "Invalid Request";
const METHOD_NOT_FOUND: &str = "Method not found: ";

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it cannot be told.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    refusal::write_rpc(id, code(error), &text(error), out);
}

/// Writes the body of a refusal that has nothing to do with JSON-RPC, such as that of a verb.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    refusal::write_plain(&text(error), out);
}

fn code(error: &ProtocolError) -> i32 {
    match error {
        // Errors without a code of their own that the sender can correct use the code of invalid params.
        ProtocolError::TaskNotFound { .. }
        | ProtocolError::PushConfigNotFound { .. }
        | ProtocolError::UnsupportedOperation { .. }
        | ProtocolError::ContentTypeNotSupported { .. } => {
            codes::of(&ProtocolError::InvalidParams { violations: Vec::new() }).jsonrpc
        }
        error => codes::of(error).jsonrpc,
    }
}

fn text(error: &ProtocolError) -> String {
    match error {
        ProtocolError::Unauthenticated { .. } => "Authentication required".to_owned(),
        ProtocolError::ParseError { .. } => "Parse error".to_owned(),
        ProtocolError::InvalidRequest { reason } if reason.is_empty() => INVALID_REQUEST.to_owned(),
        ProtocolError::InvalidRequest { reason } => format!("{INVALID_REQUEST}: {reason}"),
        ProtocolError::TaskNotFound { id } => format!("{TASK_NOT_FOUND}{id}"),
        ProtocolError::InvalidParams { violations } => {
            let texts: Vec<_> =
                violations.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.description)).collect();
            format!("{INVALID_PARAMS}{}", texts.join("; "))
        }
        error => error.to_string(),
    }
}

/// Reads a refusal.
#[must_use]
pub fn read_error(body: &[u8], _http: Option<u16>) -> Option<ReceivedError> {
    let mut read = refusal::read(body)?;
    let text = read.message.clone();
    if let Some(id) = text.strip_prefix(TASK_NOT_FOUND) {
        is_about(&mut read, "TASK_NOT_FOUND", &[("taskId", id)]);
    } else if let Some(method) = text.strip_prefix(METHOD_NOT_FOUND) {
        let method = method.split_once("; ").map_or(method, |(method, _)| method);
        is_about(&mut read, "METHOD_NOT_FOUND", &[("method", method)]);
    } else if let Some(wrong) = text.strip_prefix(INVALID_PARAMS) {
        is_about(&mut read, "INVALID_PARAMS", &[]);
        read.violations = vec![refusal::violation(wrong)];
    } else if let Some(reason) = text.strip_prefix(INVALID_REQUEST) {
        is_about(&mut read, "INVALID_REQUEST", &[]);
        read.message = reason.strip_prefix(": ").unwrap_or(reason).to_owned();
    }
    Some(read)
}
