//! Corvid: two paths, no envelope, an HTTP status and a text for what is refused. A send that names no agent goes to the
//! first one that takes such calls.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use switchboard_core::call::{BoxFuture, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{
    self, NO_AGENT, RATE_EXCEEDED, TOO_DEEP, decode_send, encode_reply, encode_text,
};
use switchboard_core::error::ProtocolError;
use tokio::time::Instant;

use super::{At, CompatDialect, CompatPlace, PlaceVisit, Received};
use crate::server::bindings::Calling;
use crate::server::cards::Subject;
use crate::server::edge::authenticate::Identity;
use crate::server::edge::body::ReplyBody;
use crate::server::edge::header_names::X_SOURCE_AGENT;
use crate::server::edge::note::Binding;
use crate::server::edge::percent::decode;
use crate::server::edge::respond::{JSON, http_error, json};
use crate::server::edge::shared::{Head, Mounted, Shared};
use crate::server::operator::metrics::Operation;

pub(super) struct Corvid;

impl CompatDialect for Corvid {
    fn dialect(&self) -> Dialect {
        Dialect::Corvid
    }

    /// All that corvid has beside its card is found without a mount, too.
    fn own_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        self.shared_place(segments)
    }

    fn shared_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        match segments {
            ["a2a", "tasks", "send"] => Some(CompatPlace::Send),
            ["a2a", "tasks", id] => Some(CompatPlace::Task { id: decode(id)? }),
            _ => None,
        }
    }

    fn api_place<'a>(&self, segments: &[&'a str]) -> Option<(Cow<'a, str>, CompatPlace<'a>)> {
        match segments {
            ["agents", name, "agent-card"] => Some((decode(name)?, CompatPlace::ListedCard)),
            _ => None,
        }
    }

    /// What is sent to the root of the server goes to the agent that takes such calls, so the card of any other names the
    /// place that is its own.
    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        let root = if base == subject.api_url { subject.own_url } else { base };
        let root = if subject.compat.settings.default_project { root } else { subject.own_url };
        corvid::encode_card(&subject.with_package(), base, &format!("{root}/a2a/tasks/send"), out);
    }

    fn listed_card_base<'s>(&self, subject: &Subject<'s>) -> Option<&'s str> {
        Some(subject.api_url)
    }

    fn serve_place<'v>(&self, visit: PlaceVisit<'v>) -> BoxFuture<'v, Response<ReplyBody>> {
        Box::pin(serve(visit))
    }
}

impl<'a> At<'a> {
    fn agent(&self) -> Option<&'a Mounted> {
        self.site.agents.iter().map(Arc::as_ref).find(|mounted| match self.agent {
            Some(name) => mounted.name.as_str() == name,
            None => mounted.compat.settings.default_project,
        })
    }
}

/// The verb that a place takes.
fn verb(place: &CompatPlace<'_>) -> &'static str {
    match place {
        CompatPlace::Send => "POST",
        CompatPlace::Task { .. } | CompatPlace::ListedCard | CompatPlace::Card | CompatPlace::Endpoint => "GET",
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

async fn serve(visit: PlaceVisit<'_>) -> Response<ReplyBody> {
    let PlaceVisit { shared, head, method, at, received } = visit;
    let is_card = matches!(at.place, CompatPlace::ListedCard);
    let is_head = *method == Method::HEAD && is_card;
    if method.as_str() != verb(&at.place) && !is_head {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(verb(&at.place)));
        return response;
    }
    head.note.operation(match &at.place {
        CompatPlace::Send => Operation::SendMessage,
        CompatPlace::Task { .. } => Operation::GetTask,
        CompatPlace::ListedCard | CompatPlace::Card | CompatPlace::Endpoint => Operation::GetAgentCard,
    });
    head.note.binding(Binding::HttpJson);
    if let Some(agent) = at.agent() {
        head.note.agent(agent);
    }
    let answered = match &at.place {
        CompatPlace::ListedCard | CompatPlace::Card | CompatPlace::Endpoint => {
            return match at.agent() {
                Some(agent) => agent.cards.listed(Dialect::Corvid).answer(head.headers, is_head),
                None => text(StatusCode::NOT_FOUND, "Agent not found"),
            };
        }
        CompatPlace::Send => send(shared, head, &at, received).await,
        CompatPlace::Task { id } => get(shared, head, &at, id).await,
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

async fn send(
    shared: &Shared,
    head: &Head<'_>,
    at: &At<'_>,
    received: Received<'_>,
) -> Result<Response<ReplyBody>, Refusal> {
    let (identity, body) = received.await?;
    let mut sent = decode_send(&body, &shared.decode_limits)?;
    sent.source_agent = sent.source_agent.or_else(|| named_source(head.headers, shared.decode_limits.id_bytes_max));
    let Some(agent) = at.agent() else {
        let why = if at.agent.is_none() { NO_AGENT } else { "Agent not found" };
        return Err(Refusal::Text(StatusCode::NOT_FOUND, why));
    };
    let options = &agent.compat.settings.corvid;
    let source = sent.source_agent.as_deref().unwrap_or_default();
    let admitted = agent.compat.rate.admit(source, options.sends_per_min, Instant::now());
    admitted.map_err(|retry_after_s| Refusal::RateExceeded { retry_after_s })?;
    if sent.depth > options.depth_max {
        return Err(Refusal::Text(StatusCode::BAD_REQUEST, TOO_DEEP));
    }
    let request = Request::SendMessage(Box::new(sent.into_send(options.timeout_ms)));
    Ok(call(shared, head, agent, &identity, request).await?)
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
