//! Refusals: a code and a text, no data. Where the original has a text, that exact text is used.

use crate::dialect::codes;
use crate::dialect::compat::refusal::{self, is_about};
use crate::dialect::json::Object;
use crate::dialect::wire::ReceivedError;
use crate::error::{ProtocolError, Violation};
use crate::model::TaskId;

use super::python;

const UNAUTHENTICATED: &str = "Missing or invalid Authorization bearer token";

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    if matches!(error, ProtocolError::Unauthenticated { .. } | ProtocolError::PermissionDenied { .. }) {
        return encode_http_error(error, out);
    }
    refusal::write_rpc(id, code(error), &text(error), out);
}

/// Writes the body of a refusal that comes before JSON-RPC.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let mut inner = Object::open(object.key("error"));
    inner.str("message", &text(error));
    inner.close();
    object.close();
}

fn code(error: &ProtocolError) -> i32 {
    match error {
        // A body that is too large is no valid request here.
        ProtocolError::TooLarge { .. } => codes::of(&ProtocolError::InvalidRequest { reason: String::new() }).jsonrpc,
        error => codes::of(error).jsonrpc,
    }
}

fn text(error: &ProtocolError) -> String {
    match error {
        ProtocolError::TooLarge { bytes_max, .. } => format!("Invalid request: body exceeds {bytes_max} bytes"),
        ProtocolError::ParseError { .. } => "Parse error: request body is not valid JSON".to_owned(),
        ProtocolError::MethodNotFound { method, .. } => format!("Method not found: {}", python::repr_of_text(method)),
        ProtocolError::InvalidParams { violations } => {
            let first = violations.first();
            format!("Invalid params: {}", first.map_or("", |violation| violation.description.as_str()))
        }
        ProtocolError::TaskNotFound { id } => format!("Task not found: {}", quoted_id(id)),
        ProtocolError::TaskNotCancelable { id, .. } => format!("Task {} is in a terminal state", quoted_id(id)),
        ProtocolError::Unauthenticated { .. } => UNAUTHENTICATED.to_owned(),
        error => error.to_string(),
    }
}

/// What marks an id that is no id but the spelling of what was sent in its place.
const NO_TEXT: char = '\u{0}';

/// What was sent in place of an id, to be quoted in the refusal.
pub(super) fn not_a_text(json: &str) -> TaskId {
    format!("{NO_TEXT}{}", python::repr(json)).into()
}

fn quoted_id(id: &TaskId) -> String {
    match id.as_str().strip_prefix(NO_TEXT) {
        Some(spelled) => spelled.to_owned(),
        None => python::repr_of_text(id.as_str()),
    }
}

/// Reads a refusal. A task that it quotes is named as Python shows a text.
#[must_use]
pub fn read_error(body: &[u8], _http: Option<u16>) -> Option<ReceivedError> {
    let mut read = refusal::read(body)?;
    let text = read.message.clone();
    let quoted = |shown: &str| python::text_of_repr(shown).unwrap_or_default();
    if let Some(id) = text.strip_prefix("Task not found: ") {
        is_about(&mut read, "TASK_NOT_FOUND", &[("taskId", &quoted(id))]);
    } else if let Some(id) = text.strip_prefix("Task ").and_then(|rest| rest.strip_suffix(" is in a terminal state")) {
        is_about(&mut read, "TASK_NOT_CANCELABLE", &[("taskId", &quoted(id))]);
    } else if let Some(method) = text.strip_prefix("Method not found: ") {
        is_about(&mut read, "METHOD_NOT_FOUND", &[("method", &quoted(method))]);
    } else if let Some(wrong) = text.strip_prefix("Invalid params: ") {
        is_about(&mut read, "INVALID_PARAMS", &[]);
        // The texts of the original name fields within sentences.
        read.violations = vec![Violation { field: String::new(), description: wrong.to_owned() }];
    } else if let Some(bytes) =
        text.strip_prefix("Invalid request: body exceeds ").and_then(|t| t.strip_suffix(" bytes"))
    {
        is_about(&mut read, "PAYLOAD_TOO_LARGE", &[("bytesMax", bytes)]);
    } else if text == UNAUTHENTICATED {
        is_about(&mut read, "UNAUTHENTICATED", &[]);
    }
    Some(read)
}
