//! The envelope of JSON-RPC 2.0, which the binding of that name and the compat dialects that travel over it share.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use switchboard_core::dialect::detect::Ingress;
use switchboard_core::dialect::json::Text;
use switchboard_core::error::ProtocolError;

/// A request around its parameters, borrowed from the body.
pub(crate) struct Envelope<'a> {
    /// The id as it was written, `null` if there was none.
    pub(crate) id: &'a str,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a str>,
}

#[derive(Deserialize)]
struct RawEnvelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// The id alone, for answering a request that is otherwise wrong.
#[derive(Deserialize)]
struct IdOnly<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// What a request has that has no envelope, or whose envelope is not known yet.
    pub(crate) const NONE: Envelope<'static> = Envelope { id: "null", method: Cow::Borrowed(""), params: None };

    /// What the method and its parameters tell about the dialect.
    pub(crate) fn ingress(&self) -> Ingress<'_> {
        Ingress::JsonRpc { method: &self.method, params: self.params }
    }

    /// Reads the envelope; a refusal comes with the id to answer it under.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, (ProtocolError, String)> {
        let parse_error = |reason: String| (ProtocolError::ParseError { reason }, "null".to_owned());
        let text = std::str::from_utf8(body).map_err(|error| parse_error(error.to_string()))?;
        if !text.trim_start().starts_with('{') {
            // A derived reader would take an array for the members in their order, so it is not asked.
            let parsed = serde_json::from_str::<IgnoredAny>(text).map_err(|error| parse_error(error.to_string()));
            return parsed.and_then(|_| Err((invalid(wrong_shape(text)), "null".to_owned())));
        }
        let raw: RawEnvelope<'a> = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(error) if error.is_data() => return Err((invalid(&error.to_string()), any_id(text))),
            Err(error) => return Err(parse_error(error.to_string())),
        };
        let id = raw.id.map_or("null", RawValue::get);
        if !is_id(id) {
            let reason = format!("id must be a string, an integer or null, of at most {ID_BYTES_MAX} bytes");
            return Err((invalid(&reason), "null".to_owned()));
        }
        if raw.jsonrpc.is_none_or(|Text(version)| version != "2.0") {
            return Err((invalid("jsonrpc must be \"2.0\""), id.to_owned()));
        }
        let Some(Text(method)) = raw.method.filter(|Text(method)| !method.is_empty()) else {
            return Err((invalid("method is missing"), id.to_owned()));
        };
        Ok(Self { id, method, params: raw.params.map(RawValue::get) })
    }
}

fn invalid(reason: &str) -> ProtocolError {
    ProtocolError::InvalidRequest { reason: reason.to_owned() }
}

fn wrong_shape(text: &str) -> &'static str {
    if text.trim_start().starts_with('[') {
        "batches are not supported; send one request object"
    } else {
        "send one request object"
    }
}

fn any_id(text: &str) -> String {
    let id = serde_json::from_str::<IdOnly<'_>>(text).ok().and_then(|only| only.id).map_or("null", RawValue::get);
    if is_id(id) { id.to_owned() } else { "null".to_owned() }
}

const ID_BYTES_MAX: usize = 512;

/// A string, an integer or null, of bounded length: it is echoed in every event of a stream.
fn is_id(id: &str) -> bool {
    let integer = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    id.len() <= ID_BYTES_MAX && (id == "null" || id.starts_with('"') || integer(id))
}
