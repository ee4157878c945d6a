//! The JSON-RPC 2.0 binding: one endpoint, the method in the body.

use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use switchboard_core::call::Reply;
use switchboard_core::dialect::detect::{Door, Refusal, Verdict};
use switchboard_core::dialect::{Dialect, for_open_reader, v0_3, v1_0};
use switchboard_core::error::ProtocolError;

use crate::server::bindings::compat;
use crate::server::bindings::envelope::Envelope;
use crate::server::bindings::sse::{Framing, SseBody};
use crate::server::bindings::{Calling, check_content_type};
use crate::server::cards;
use crate::server::edge::authenticate::Identity;
use crate::server::edge::body::{ReplyBody, read};
use crate::server::edge::note::Binding;
use crate::server::edge::respond::{JSON, events, json, only_events, rpc_error};
use crate::server::edge::shared::{Head, Mounted, NO_METHOD, Shared};

pub(crate) async fn serve<B>(shared: &Shared, agent: &Mounted, head: &Head<'_>, body: B) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    begin(shared, agent, head, body).await.answer(shared, agent).await
}

/// What a request has come to once it was read. Nothing of the request itself is held here: the connection reads the next
/// one into the same room.
pub(crate) enum Begun<'a> {
    Answered(Response<ReplyBody>),
    Called(Called<'a>),
}

pub(crate) struct Called<'a> {
    calling: Calling<'a>,
    id: String,
    dialect: Dialect,
    is_open: bool,
    only_events: bool,
}

pub(crate) async fn begin<'a, B>(shared: &Shared, agent: &'a Mounted, head: &Head<'_>, body: B) -> Begun<'a>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let refuse_in = |dialect: Dialect, error: ProtocolError, id: &str, method: &str| {
        Begun::Answered(rpc_error(dialect, &error, id, only_events(dialect, method, head.headers)))
    };
    // Until the method is known, which may be never.
    let refuse = |error: ProtocolError, id: &str| {
        let dialect = shared.spelling(agent, head, NO_METHOD);
        refuse_in(dialect, error, id, "")
    };
    head.note.binding(Binding::JsonRpc);
    head.note.agent(agent);
    // Authentication looks at headers alone, before a byte of the body is read.
    let identity = match shared.identify(head) {
        Ok(identity) => identity,
        Err(error) => return refuse(error, "null"),
    };
    if let Err(error) = check_content_type(head.headers) {
        return refuse(error, "null");
    }
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = match read(head.headers, body, shared.limits.body_bytes_max, patience).await {
        Ok(body) => body,
        Err(error) => return refuse(as_invalid_request(error, head), "null"),
    };
    let envelope = match Envelope::parse(&body) {
        Ok(envelope) => envelope,
        Err((error, id)) => return refuse(error, &id),
    };
    let id = envelope.id;
    let door = Door::JsonRpc { method: &envelope.method, params: envelope.params };
    let Verdict { dialect, is_open } = match shared.dialect(agent, head, door) {
        Ok(verdict) => verdict,
        Err(Refusal { dialect, error }) => return refuse_in(dialect, error, id, &envelope.method),
    };
    if let Some(compat) = compat::over_rpc(dialect) {
        // Boxed, so that others do not carry the room for it.
        let visit = compat::Visit { shared, agent, identity: &identity, head, compat };
        return Begun::Answered(Box::pin(compat::answer(visit, envelope.into())).await);
    }
    match call(shared, agent, &identity, head, dialect, &envelope) {
        Ok(calling) => {
            let only_events = only_events(dialect, &envelope.method, head.headers);
            Begun::Called(Called { calling, id: id.to_owned(), dialect, is_open, only_events })
        }
        Err(error) => refuse_in(dialect, error, id, &envelope.method),
    }
}

/// On `/a2a` a body that is too large is an invalid request, answered with HTTP 200: clients of that path read the error of
/// a JSON-RPC reply and nothing of any other. On the other paths of JSON-RPC it is HTTP 413.
fn as_invalid_request(error: ProtocolError, head: &Head<'_>) -> ProtocolError {
    match error {
        ProtocolError::TooLarge { bytes_max, .. } if head.uri.path().trim_end_matches('/').ends_with("/a2a") => {
            ProtocolError::InvalidRequest { reason: format!("body exceeds {bytes_max} bytes") }
        }
        error => error,
    }
}

impl Begun<'_> {
    pub(crate) async fn answer(self, shared: &Shared, agent: &Mounted) -> Response<ReplyBody> {
        let Called { mut calling, id, dialect, is_open, only_events } = match self {
            Self::Answered(response) => return response,
            Self::Called(called) => called,
        };
        let mut response = match calling.reply().await {
            Ok(Reply::Stream(updates)) => {
                let framing = Framing::JsonRpc { id };
                let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
                let metrics = shared.metrics.clone();
                events(SseBody::new(updates, framing, dialect, keep_alive, shared.limits.stream_write_bytes, metrics))
            }
            Ok(Reply::Task(view)) if is_open => {
                let (dialect, view) = for_open_reader(view);
                json(StatusCode::OK, JSON, result(agent, dialect, &Reply::Task(view), &id))
            }
            Ok(reply) => json(StatusCode::OK, JSON, result(agent, dialect, &reply, &id)),
            Err(error) => rpc_error(dialect, &error, &id, only_events),
        };
        calling.mark(dialect, &mut response);
        response
    }
}

/// Decodes a call and hands it to its agent.
fn call<'a>(
    shared: &Shared,
    agent: &'a Mounted,
    identity: &Identity,
    head: &Head<'_>,
    dialect: Dialect,
    envelope: &Envelope<'_>,
) -> Result<Calling<'a>, ProtocolError> {
    let limits = &shared.decode_limits;
    // Calls in a compat dialect have been answered elsewhere, so all others are in 0.3.
    let decode = if dialect == Dialect::V1_0 { v1_0::decode_call } else { v0_3::rpc::decode_call };
    let decoded = decode(&envelope.method, envelope.params, limits)?;
    let caller = shared.caller(agent, identity, decoded.tenant.as_deref(), dialect, head)?;
    Ok(Calling::begin(head.note, agent, caller, decoded.request))
}

fn result(agent: &Mounted, dialect: Dialect, reply: &Reply, id: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(b",\"result\":");
    match reply {
        Reply::Deleted => body.extend_from_slice(b"null"),
        Reply::Card(card) => body.extend_from_slice(&cards::encode_reply(dialect, card, &agent.interfaces)),
        _ => dialect.write_reply(reply, &mut body),
    }
    body.push(b'}');
    body
}
