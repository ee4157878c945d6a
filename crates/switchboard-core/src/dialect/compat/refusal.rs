//! What the refusals of the compat dialects have in common: a code and a text, or over plain HTTP a text alone, and no data.
//! Each dialect writes and interprets its own texts.

use serde::Deserialize;

use crate::dialect::json::{Obj, Object, Text, excerpt, write_i64};
use crate::dialect::wire::{self, ReceivedError};
use crate::error::Violation;

/// The longest text that is kept of a refusal by another server, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

#[derive(Deserialize)]
struct PlainError<'a> {
    #[serde(borrow)]
    error: Option<Text<'a>>,
}

/// Writes a whole JSON-RPC error response to the request with this id.
pub(super) fn write_rpc(id: &str, code: i32, text: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("jsonrpc", "2.0");
    object.key("id").extend_from_slice(id.as_bytes());
    let mut inner = Object::open(object.key("error"));
    write_i64(inner.key("code"), code.into());
    inner.str("message", text);
    inner.close();
    object.close();
}

/// Writes a refusal that is a text alone.
pub(super) fn write_plain(text: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("error", text);
    object.close();
}

/// Reads a refusal: a JSON-RPC response with an error, `{"error":{"message":…}}` or `{"error":"…"}`. None if it is none of
/// these.
pub(super) fn read(body: &[u8]) -> Option<ReceivedError> {
    if let Some(mut read) = wire::read_error(body) {
        read.message = excerpt(&read.message, TEXT_BYTES_MAX);
        if let Some(state) = read.message.strip_prefix("Task cannot be canceled: it is ") {
            let state = state.to_owned();
            read.facts.push(("state".to_owned(), state));
        }
        return Some(read);
    }
    let Obj(plain) = serde_json::from_slice::<Obj<PlainError<'_>>>(body).ok()?;
    let Text(text) = plain.error?;
    Some(ReceivedError { message: excerpt(&text, TEXT_BYTES_MAX), ..ReceivedError::default() })
}

/// What a text says is wrong with a request: a field, a colon and what is wrong with it. If it names no field, the request as a
/// whole. Several of them are one here, since nothing tells where one ends.
pub(super) fn violation(text: &str) -> Violation {
    match text.split_once(": ") {
        Some((field, description)) if !field.is_empty() && !field.contains(char::is_whitespace) => {
            Violation { field: field.to_owned(), description: description.to_owned() }
        }
        _ => Violation { field: String::new(), description: text.to_owned() },
    }
}

/// Notes what a refusal is about.
pub(super) fn is_about(read: &mut ReceivedError, reason: &str, facts: &[(&str, &str)]) {
    read.reason = Some(reason.to_owned());
    read.facts.extend(facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
}
