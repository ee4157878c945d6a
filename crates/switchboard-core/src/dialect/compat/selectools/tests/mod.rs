//! What a client of selectools relies on: the golden files, which the original wrote, and what holds for all input.

mod client;
mod goldens;
mod properties;
mod spelling;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::call::SendMessage;
use crate::dialect::json::DecodeLimits;
use crate::error::ProtocolError;

use super::{Call, Envelope, decode_call, encode_rpc_error};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "selectools"].iter().collect()
}

fn golden(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_value(name: &str) -> Value {
    serde_json::from_str(&golden(name)).unwrap()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    encode(&mut out);
    String::from_utf8(out).expect("what is encoded is UTF-8")
}

fn sent(params: &str) -> Result<SendMessage, ProtocolError> {
    match decode_call("message/send", Some(params), &DecodeLimits::default())? {
        Call::Send(send) => Ok(*send),
        other => panic!("{other:?}"),
    }
}

/// What a server without any task answers to a body.
fn answer(body: &[u8]) -> String {
    let (error, id) = match Envelope::parse(body) {
        Ok(Envelope { id, method, params }) => match decode_call(&method, params, &DecodeLimits::default()) {
            Ok(Call::Get(id) | Call::Cancel(id)) => (ProtocolError::TaskNotFound { id }, id_of(body)),
            Ok(Call::Send(_)) => return "sent".to_owned(),
            Err(error) => (error, id.to_owned()),
        },
        Err((error, id)) => (error, id.to_owned()),
    };
    encoded(|out| encode_rpc_error(&error, &id, out))
}

fn id_of(body: &[u8]) -> String {
    Envelope::parse(body).map_or("null", |envelope| envelope.id).to_owned()
}
