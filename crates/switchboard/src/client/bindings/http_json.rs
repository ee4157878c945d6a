//! A call as HTTP+JSON sends it: a path below the address of the agent.

use bytes::Bytes;
use http::HeaderValue;

use super::{EVENTS, Exchange, HttpCall, JSON, unsendable};
use crate::call_error::CallError;

/// 1.0 has a type of its own for its JSON, and every server takes the usual one.
const ANY_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json, application/json");

/// The `config` of a request that sets a push config.
pub(super) fn config_alone(body: &[u8]) -> Option<Vec<u8>> {
    #[derive(serde::Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        config: &'a serde_json::value::RawValue,
    }
    let whole: Whole<'_> = serde_json::from_slice(body).ok()?;
    Some(whole.config.get().as_bytes().to_vec())
}

pub(super) fn request(
    exchange: &Exchange<'_>,
    verb: &'static str,
    path: &str,
    body: Vec<u8>,
) -> Result<HttpCall, CallError> {
    let base = exchange.target.uri.to_string();
    let uri = format!("{}{path}", base.trim_end_matches('/'));
    let uri = uri.parse().map_err(|_| unsendable("the URL of the call"))?;
    let content_type = (!body.is_empty()).then_some(JSON);
    let accept = if exchange.is_streamed() { EVENTS } else { ANY_JSON };
    Ok(HttpCall { verb, uri, content_type, accept, body: Bytes::from(body) })
}
