//! Refusals on the wire: a JSON-RPC error response, or the `google.rpc.Status` of an HTTP error. Both carry the same
//! details: always an `ErrorInfo`, the fields at fault when parameters are wrong, and when to come back when that is
//! known. Metadata of an `ErrorInfo` is strings only.

use crate::dialect::codes::{self, Codes, DOMAIN};
use crate::dialect::json::{Object, write_array, write_i64, write_str};
use crate::error::ProtocolError;

use crate::dialect::wire::V1_0;

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    let codes = codes::of(error);
    let mut object = Object::open(out);
    object.str("jsonrpc", "2.0");
    object.key("id").extend_from_slice(id.as_bytes());
    let mut inner = Object::open(object.key("error"));
    write_i64(inner.key("code"), codes.jsonrpc.into());
    inner.str("message", &error.to_string());
    encode_details(error, codes, inner.key("data"));
    inner.close();
    object.close();
}

/// Writes the body of an HTTP error, or the data of a stream's error event.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    encode_http_error_as(error, codes::of(error).http, out);
}

/// As [`encode_http_error`], for a binding that answers with another status: the body names the status it comes with.
pub fn encode_http_error_as(error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
    let codes = codes::of(error);
    let mut object = Object::open(out);
    let mut inner = Object::open(object.key("error"));
    inner.u64("code", http.into());
    inner.str("status", codes.status);
    inner.str("message", &error.to_string());
    encode_details(error, codes, inner.key("details"));
    inner.close();
    object.close();
}

fn encode_details(error: &ProtocolError, codes: Codes, out: &mut Vec<u8>) {
    out.push(b'[');
    encode_error_info(error, codes, out);
    if let ProtocolError::InvalidParams { violations } = error {
        out.push(b',');
        let mut object = Object::open(out);
        object.str("@type", "type.googleapis.com/google.rpc.BadRequest");
        write_array(object.key("fieldViolations"), violations, |out, violation| {
            let mut object = Object::open(out);
            object.str("field", &violation.field);
            object.str("description", &violation.description);
            object.close();
        });
        object.close();
    }
    if let ProtocolError::Unavailable { retry_after_s, .. } = error {
        out.push(b',');
        let mut object = Object::open(out);
        object.str("@type", "type.googleapis.com/google.rpc.RetryInfo");
        object.str("retryDelay", &format!("{retry_after_s}s"));
        object.close();
    }
    out.push(b']');
}

fn encode_error_info(error: &ProtocolError, codes: Codes, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("@type", "type.googleapis.com/google.rpc.ErrorInfo");
    object.str("reason", codes.reason);
    object.str("domain", DOMAIN);
    let facts = codes::facts(error, |state| V1_0.state(state));
    if !facts.is_empty() {
        let mut metadata = Object::open(object.key("metadata"));
        for (name, value) in &facts {
            write_str(metadata.key(name), value);
        }
        metadata.close();
    }
    object.close();
}
