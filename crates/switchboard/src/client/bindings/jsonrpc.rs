//! The envelope of JSON-RPC around a call and around its answer.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{EVENTS, Exchange, HttpCall, JSON};

/// A request. Each is alone on its exchange, so that its id need not tell it from others.
pub(super) fn request(exchange: &Exchange<'_>, method: &str, params: &[u8]) -> HttpCall {
    let mut body = Vec::with_capacity(params.len() + 96);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":1,"method":""#);
    body.extend_from_slice(method.as_bytes());
    body.extend_from_slice(br#"","params":"#);
    body.extend_from_slice(if params.is_empty() { b"{}" } else { params });
    body.push(b'}');
    HttpCall {
        verb: "POST",
        uri: exchange.target.uri.clone(),
        content_type: Some(JSON),
        accept: if exchange.is_streamed() { EVENTS } else { JSON },
        body: Bytes::from(body),
    }
}

/// What a response holds.
pub(super) enum Opened<'a> {
    Result(&'a [u8]),
    Refusal,
    Neither,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
}

/// Takes a response out of its envelope. Its id is not compared: agent-native answers a stream under another one.
pub(super) fn open(body: &[u8]) -> Opened<'_> {
    let Ok(response) = serde_json::from_slice::<Response<'_>>(body) else { return Opened::Neither };
    match response {
        Response { error: Some(_), .. } => Opened::Refusal,
        Response { result: Some(result), .. } => Opened::Result(result.get().as_bytes()),
        // What has no result, such as a deletion, is answered with null.
        Response { jsonrpc: Some(_), .. } => Opened::Result(b"null"),
        Response { .. } => Opened::Neither,
    }
}
