//! Refusals on the wire: a JSON-RPC error response, or over HTTP+JSON the bare error object, which is what the clients of
//! both languages that speak it can read. Neither has a shape for `data`; ours is one flat object: the reason, what else is
//! known, and which fields are wrong.

use crate::dialect::codes;
use crate::dialect::json::{Object, write_array, write_i64};
use crate::error::ProtocolError;

use crate::dialect::wire::V0_3;

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("jsonrpc", "2.0");
    object.key("id").extend_from_slice(id.as_bytes());
    encode_error(error, object.key("error"));
    object.close();
}

/// Writes the body of an HTTP error, or the data of a stream's error event.
pub fn encode_http_error(error: &ProtocolError, out: &mut Vec<u8>) {
    encode_error(error, out);
}

fn encode_error(error: &ProtocolError, out: &mut Vec<u8>) {
    let codes = codes::of(error);
    let mut object = Object::open(out);
    write_i64(object.key("code"), codes.jsonrpc.into());
    object.str("message", &error.to_string());
    let mut data = Object::open(object.key("data"));
    data.str("reason", codes.reason);
    for (name, value) in codes::facts(error, |state| V0_3.state(state)) {
        data.str(name, &value);
    }
    if let ProtocolError::InvalidParams { violations } = error {
        write_array(data.key("violations"), violations, |out, violation| {
            let mut object = Object::open(out);
            object.str("field", &violation.field);
            object.str("description", &violation.description);
            object.close();
        });
    }
    if let ProtocolError::Unavailable { retry_after_s, .. } = error {
        data.u64("retryAfterS", (*retry_after_s).into());
    }
    data.close();
    object.close();
}
