//! The envelope of JSON-RPC around a call and around its answer.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{EVENTS, Exchange, HttpCall, JSON};

/// A request. Each is alone on its exchange, so that its id need not tell it from others.
pub(super) fn request(exchange: &Exchange<'_>, method: &str, params: &[u8]) -> HttpCall {
    let params = if params.is_empty() { b"{}" } else { params };
    let body = [br#"{"jsonrpc":"2.0","id":1,"method":""#, method.as_bytes(), br#"","params":"#, params, b"}"].concat();
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

/// The result of a response in which it is the last member, unread: whether it is one value with nothing behind it, its reader finds
/// out. None for every other response.
pub(super) fn last_result(body: &[u8]) -> Option<&[u8]> {
    let mut rest = body.trim_ascii().strip_prefix(b"{")?.strip_suffix(b"}")?;
    loop {
        rest = rest.trim_ascii_start().strip_prefix(b"\"")?;
        let (name, after) = rest.split_at(rest.iter().position(|byte| *byte == b'"')?);
        let value = after[1..].trim_ascii_start().strip_prefix(b":")?;
        match name {
            b"result" => return Some(value.trim_ascii()),
            // Our ids are numbers. One that holds a comma leads to no name, and so to none here.
            b"jsonrpc" | b"id" => rest = &value[value.iter().position(|byte| *byte == b',')? + 1..],
            _ => return None,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::last_result;

    #[test]
    fn a_result_that_stands_last_is_found_without_reading_it() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#, Some(r#"{"a":1}"#)),
            (" { \"id\" : \"1\" , \"jsonrpc\":\"2.0\", \"result\" : {} } \n", Some("{}")),
            (r#"{"result":{"a":1},"id":1}"#, Some(r#"{"a":1},"id":1"#)),
            (r#"{"error":{"code":1},"result":{}}"#, None),
            (r#"{"id":{"a":1},"error":{}}"#, None),
            (r#"{"id":1,"error":{}}"#, None),
            (r#"{"id":"a,b","result":{}}"#, None),
            (r#"{"id":1}"#, None),
            (r#"{"result":{}"#, Some("{")),
            ("[]", None),
            ("", None),
        ] {
            assert_eq!(last_result(body.as_bytes()), expected.map(str::as_bytes), "{body}");
        }
    }
}
