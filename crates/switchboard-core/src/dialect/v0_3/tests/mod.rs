//! What a client of 0.3 or 0.2 relies on: the golden files (`requests`, `replies`, `cards`), what is understood although it
//! is sloppy and what is refused although it could be guessed (`tolerances`, `refusals`), and what holds for all input
//! (`properties`, `hostile`).

mod cards;
mod hostile;
mod losses;
mod properties;
#[cfg(feature = "protobuf")]
mod proto;
mod refusals;
mod replies;
mod requests;
mod tolerances;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::call::{Request, SendMessage};
use crate::dialect::json::{DecodeLimits, Decoded};
use crate::error::ProtocolError;
use crate::model::Json;

use super::rest::decode_send_body;
use super::rpc::decode_call;

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "v0_3"].iter().collect()
}

fn golden(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn golden_value(name: &str) -> Value {
    serde_json::from_str(&golden(name)).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text, Default::default()).unwrap()
}

fn decode(method: &str, params: &str) -> Result<Decoded, ProtocolError> {
    decode_call(method, Some(params), &DecodeLimits::default())
}

/// The send these params of JSON-RPC are.
fn sent(params: &str) -> SendMessage {
    match decode("message/send", params).unwrap_or_else(|error| panic!("{params}: {error:?}")).request {
        Request::SendMessage(send) => *send,
        other => panic!("{other:?}"),
    }
}

/// The send this body of HTTP+JSON is.
fn sent_over_http(body: &str) -> SendMessage {
    let (_, send) =
        decode_send_body(body.as_bytes(), &DecodeLimits::default()).unwrap_or_else(|error| panic!("{body}: {error:?}"));
    send
}

/// What is wrong with a call or a body, one `field: description` per violation.
fn wrong<T: std::fmt::Debug>(outcome: Result<T, ProtocolError>) -> Vec<String> {
    match outcome {
        Err(ProtocolError::InvalidParams { violations }) => {
            violations.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    encode(&mut out);
    String::from_utf8(out).expect("what is encoded is UTF-8")
}

/// Whether a document says everything another one says, in the same words, and beside it only members of these names.
fn assert_covers(ours: &Value, theirs: &Value, more: &[&str]) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in theirs {
                let own = ours.get(name).unwrap_or_else(|| panic!("{name} of {theirs:?} is missing in {ours:?}"));
                assert_covers(own, value, more);
            }
            for name in ours.keys().filter(|name| !theirs.contains_key(*name)) {
                assert!(more.contains(&name.as_str()), "{name} of {ours:?} is not in {theirs:?}");
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
            ours.iter().zip(theirs).for_each(|(ours, theirs)| assert_covers(ours, theirs, more));
        }
        _ => assert_eq!(ours, theirs),
    }
}

#[test]
fn every_golden_file_has_a_known_origin() {
    let origins = fs::read_to_string(folder().join("ORIGINS.md")).unwrap();
    let mut listed: Vec<_> =
        origins.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();
    let mut present: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    listed.sort();
    present.sort();
    assert_eq!(listed, present);
}
