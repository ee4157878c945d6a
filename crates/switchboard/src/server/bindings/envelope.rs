//! The envelope of JSON-RPC, as requests come in it and as they are answered in it. The compat dialects share it with the binding of that
//! name.

use std::borrow::Cow;

use http::{HeaderMap, Response, StatusCode, header};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use switchboard_core::dialect::detect::Ingress;
use switchboard_core::dialect::json::{ScannedMembers, Text, plain_text};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Dialect;

use super::sse::escape_line_ends;
use crate::server::exchange::refused::Refused;
use crate::server::exchange::respond::{EVENTS, JSON, ReplyBody, http_status, json, with_hints};

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

    /// Reads an envelope that is right and plain, as nearly all are. The parameters are not looked into: if they come last, they are
    /// taken to be all that is left. So it holds only if they are then read as one object. Of any other envelope it says nothing.
    pub(crate) fn assume(body: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        let (mut jsonrpc, mut id, mut method, mut params) = (None, None, None, None);
        let mut members = ScannedMembers::of(text).ok()?;
        while let Some(name) = members.next_name().ok()? {
            let member = match name {
                "jsonrpc" => &mut jsonrpc,
                "id" => &mut id,
                "method" => &mut method,
                "params" if params.is_none() => {
                    params = members.assumed_last_object();
                    if params.is_some() {
                        break;
                    }
                    &mut params
                }
                _ => return None,
            };
            if member.replace(members.value().ok()?).is_some() {
                return None;
            }
        }
        let (id, params) = (id.unwrap_or("null"), params.filter(|params| *params != "null"));
        let method = plain_text(method?).filter(|method| !method.is_empty())?;
        (jsonrpc? == "\"2.0\"" && is_id(id)).then_some(Self { id, method: Cow::Borrowed(method), params })
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

/// A JSON-RPC response with a result.
pub(crate) fn rpc_result(id: &str, write_result: impl FnOnce(&mut Vec<u8>)) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(b",\"result\":");
    write_result(&mut body);
    body.push(b'}');
    json(StatusCode::OK, JSON, body)
}

/// A refusal as a JSON-RPC response. The HTTP status is 200, as clients of this binding expect, unless the request was
/// turned away before it was one. `only_events` is for clients that read nothing but events.
pub(crate) fn rpc_error(dialect: Dialect, error: &ProtocolError, id: &str, only_events: bool) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(512);
    let status = match error {
        ProtocolError::Unauthenticated { .. }
        | ProtocolError::PermissionDenied { .. }
        | ProtocolError::TooLarge { .. }
        | ProtocolError::Unavailable { .. }
        | ProtocolError::ResourceExhausted { .. } => http_status(dialect, error),
        _ => StatusCode::OK,
    };
    if status == StatusCode::OK && only_events {
        body.extend_from_slice(b"data: ");
        dialect.write_rpc_error(error, id, &mut body);
        escape_line_ends(&mut body, 0);
        body.extend_from_slice(b"\n\n");
        let mut response = json(status, EVENTS, body);
        Refused::mark(&mut response, error);
        return response;
    }
    dialect.write_rpc_error(error, id, &mut body);
    with_hints(json(status, JSON, body), error)
}

/// Whether a refusal of a JSON-RPC call must be an event, since a plain answer would hide from the client what was wrong.
/// Clients of 0.3 read nothing but events where they ask for a stream, and say so on any of their `Accept` lines: the
/// Python SDK sends `*/*` on another. One that names JSON as well gets events only for a method that streams; `method` is
/// empty where it is not known yet.
pub(crate) fn only_events(dialect: Dialect, method: &str, asked: &HeaderMap) -> bool {
    const STREAMS: [&str; 3] = ["message/stream", "tasks/resubscribe", "tasks/sendSubscribe"];
    dialect == Dialect::V0_3
        && accepts(asked, "text/event-stream")
        && (STREAMS.contains(&method) || !accepts(asked, "application/json"))
}

/// Whether a line of `Accept` names this media type itself; a range such as `*/*` does not.
fn accepts(asked: &HeaderMap, media_type: &str) -> bool {
    let names = |range: &str| range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type);
    let lines = asked.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(names)
}
