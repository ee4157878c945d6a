//! What a 1.0 client relies on: the golden files (`goldens`), the rules of protobuf's JSON mapping (`rules`), which field
//! is blamed (`fields`), limits on hostile input (`hostile`), query parameters (`queries`), cards (`cards`), refusals
//! (`errors`), the same in protobuf (`proto`), and properties over generated input (`properties`).

mod cards;
mod errors;
mod fields;
mod golden_replies;
mod golden_requests;
mod goldens;
mod hostile;
mod properties;
#[cfg(feature = "protobuf")]
mod proto;
mod queries;
mod rules;
mod samples;

use crate::call::{Request, SendMessage};
use crate::error::ProtocolError;

use crate::dialect::json::{DecodeLimits, Decoded};

use super::decode_call;

fn decode(method: &str, params: &str) -> Result<Decoded, ProtocolError> {
    decode_call(method, Some(params), &DecodeLimits::default())
}

fn request(method: &str, params: &str) -> Request {
    decode(method, params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}")).request
}

/// A send of a message with these members beside the required ones.
fn send_with(members: &str) -> String {
    format!(r#"{{"message":{{"messageId":"m-1","role":"ROLE_USER",{members}}}}}"#)
}

/// A send with one part.
fn send_part(part: &str) -> String {
    send_with(&format!(r#""parts":[{part}]"#))
}

fn sent(params: &str) -> SendMessage {
    match request("SendMessage", params) {
        Request::SendMessage(send) => *send,
        other => panic!("{other:?}"),
    }
}

/// What is wrong with a call, one `field: description` per violation.
fn wrong(method: &str, params: &str) -> Vec<String> {
    match decode(method, params) {
        Err(ProtocolError::InvalidParams { violations }) => {
            violations.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
        }
        other => panic!("{method} {params}: {other:?}"),
    }
}

/// The fields blamed for a call.
fn blamed(method: &str, params: &str) -> Vec<String> {
    let fields = wrong(method, params);
    fields.iter().map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    encode(&mut out);
    String::from_utf8(out).expect("what is encoded is UTF-8")
}
