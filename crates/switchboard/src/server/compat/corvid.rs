//! Corvid: two paths, no envelope, an HTTP status and a text for what is refused. A send that names no agent goes to the
//! first one that takes such calls.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::call::Request;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{
    NO_AGENT, RATE_EXCEEDED, Sent, TOO_DEEP, decode_send, encode_reply, encode_text,
};
use switchboard_core::error::ProtocolError;
use tokio::time::Instant;

use crate::server::auth::{Identified, Identity};
use crate::server::binding::Calling;
use crate::server::body::ReplyBody;
use crate::server::context::{Head, Mounted, Shared, Site};
use crate::server::metrics::Operation;
use crate::server::names::X_SOURCE_AGENT;
use crate::server::note::Binding;
use crate::server::respond::{JSON, http_error, json};
use crate::server::routes::CorvidPlace;

/// Where a request came to.
pub(crate) struct At<'a> {
    /// The agents at the address that the request names.
    pub(crate) site: &'a Site,
    /// The agent that its path names, if it names one.
    pub(crate) agent: Option<&'a str>,
    pub(crate) place: CorvidPlace<'a>,
}

impl<'a> At<'a> {
    fn agent(&self) -> Option<&'a Mounted> {
        self.site.agents.iter().map(Arc::as_ref).find(|mounted| match self.agent {
            Some(name) => mounted.name.as_str() == name,
            None => mounted.accent.default_project,
        })
    }

    /// The verb that the place takes.
    fn verb(&self) -> &'static str {
        match self.place {
            CorvidPlace::Send => "POST",
            CorvidPlace::Task { .. } | CorvidPlace::Card => "GET",
        }
    }
}

/// A refusal, by an error of the house or by a text of the original's.
enum Refusal {
    Error(ProtocolError),
    Text(StatusCode, &'static str),
    RateExceeded { retry_after_s: u64 },
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self::Error(error)
    }
}

pub(crate) async fn serve<B>(
    shared: &Shared,
    head: &Head<'_>,
    method: &Method,
    at: At<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let is_head = *method == Method::HEAD && matches!(at.place, CorvidPlace::Card);
    if method.as_str() != at.verb() && !is_head {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(at.verb()));
        return response;
    }
    match &at.place {
        CorvidPlace::Card => head.note.operation(Operation::GetAgentCard),
        CorvidPlace::Send => head.note.operation(Operation::SendMessage),
        CorvidPlace::Task { .. } => head.note.operation(Operation::GetTask),
    }
    head.note.binding(Binding::HttpJson);
    if let Some(agent) = at.agent() {
        head.note.agent(agent);
    }
    let answered = match &at.place {
        CorvidPlace::Card => {
            return match at.agent() {
                Some(agent) => agent.cards.api.answer(head.headers, is_head),
                None => text(StatusCode::NOT_FOUND, "Agent not found"),
            };
        }
        CorvidPlace::Send => send(shared, head, &at, body).await,
        CorvidPlace::Task { id } => get(shared, head, &at, id).await,
    };
    match answered {
        Ok(response) => response,
        Err(Refusal::Error(error)) => http_error(Dialect::Corvid, &error, JSON),
        Err(Refusal::Text(status, why)) => text(status, why),
        Err(Refusal::RateExceeded { retry_after_s }) => {
            let mut response = text(StatusCode::TOO_MANY_REQUESTS, RATE_EXCEEDED);
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
            response
        }
    }
}

async fn send<B>(shared: &Shared, head: &Head<'_>, at: &At<'_>, body: B) -> Result<Response<ReplyBody>, Refusal>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let (identity, sent) = receive(shared, head, body).await?;
    let Some(agent) = at.agent() else {
        let why = if at.agent.is_none() { NO_AGENT } else { "Agent not found" };
        return Err(Refusal::Text(StatusCode::NOT_FOUND, why));
    };
    let options = &agent.accent.corvid;
    let source = sent.source_agent.as_deref().unwrap_or_default();
    let admitted = agent.accent.rate.admit(source, options.sends_per_min, Instant::now());
    admitted.map_err(|retry_after_s| Refusal::RateExceeded { retry_after_s })?;
    if sent.depth > options.depth_max {
        return Err(Refusal::Text(StatusCode::BAD_REQUEST, TOO_DEEP));
    }
    let request = Request::SendMessage(Box::new(sent.into_send(options.timeout_ms)));
    Ok(call(shared, head, agent, &identity, request).await?)
}

/// Who sends, and what.
async fn receive<'s, B>(shared: &'s Shared, head: &Head<'_>, body: B) -> Result<(Identified<'s>, Sent), ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let (identity, body) = super::receive(shared, head, body).await?;
    let mut sent = decode_send(&body, &shared.decode_limits)?;
    sent.source_agent = sent.source_agent.or_else(|| named_source(head.headers, shared.decode_limits.id_bytes_max));
    Ok((identity, sent))
}

fn named_source(headers: &HeaderMap, bytes_max: usize) -> Option<String> {
    let name = headers.get(X_SOURCE_AGENT)?.to_str().ok()?.trim();
    (!name.is_empty() && name.len() <= bytes_max).then(|| name.to_owned())
}

async fn get(shared: &Shared, head: &Head<'_>, at: &At<'_>, id: &str) -> Result<Response<ReplyBody>, Refusal> {
    let identity = shared.identify(head)?;
    let agent = at.agent().ok_or_else(|| ProtocolError::task_not_found(&id.into()))?;
    let request = Request::GetTask { id: id.into(), history_length: None };
    Ok(call(shared, head, agent, &identity, request).await?)
}

async fn call(
    shared: &Shared,
    head: &Head<'_>,
    agent: &Mounted,
    identity: &Identity,
    request: Request,
) -> Result<Response<ReplyBody>, ProtocolError> {
    let mut caller = shared.caller(agent, identity, None, Dialect::Corvid, head)?;
    caller.last_event_id = None;
    let reply = Calling::begin(head.note, agent, caller, request).reply().await?;
    let mut body = Vec::with_capacity(1024);
    encode_reply(&reply, &mut body);
    Ok(json(StatusCode::OK, JSON, body))
}

fn text(status: StatusCode, why: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(64);
    encode_text(why, &mut body);
    json(status, JSON, body)
}
