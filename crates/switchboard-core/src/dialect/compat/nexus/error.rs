//! Refusals: a code and a text, no data. The codes are those of JSON-RPC; a task that is not there is a parameter that is
//! not valid.

use crate::dialect::codes;
use crate::dialect::json::{Object, write_i64};
use crate::error::ProtocolError;

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it cannot be told.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("jsonrpc", "2.0");
    object.key("id").extend_from_slice(id.as_bytes());
    let mut inner = Object::open(object.key("error"));
    write_i64(inner.key("code"), code(error).into());
    inner.str("message", &text(error));
    inner.close();
    object.close();
}

/// Writes the body of a refusal that has nothing to do with JSON-RPC, such as that of a verb.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("error", &text(error));
    object.close();
}

fn code(error: &ProtocolError) -> i32 {
    match error {
        // What the dialect has no code of its own for, and what the sender can mend, is about the parameters.
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
        ProtocolError::InvalidRequest { reason } if reason.is_empty() => "Invalid Request".to_owned(),
        ProtocolError::InvalidRequest { reason } => format!("Invalid Request: {reason}"),
        ProtocolError::TaskNotFound { id } => format!("Task not found: {id}"),
        ProtocolError::InvalidParams { violations } => {
            let texts: Vec<_> =
                violations.iter().map(|wrong| format!("{}: {}", wrong.field, wrong.description)).collect();
            format!("Invalid params: {}", texts.join("; "))
        }
        error => error.to_string(),
    }
}
