//! Corvid: two paths, no envelope, an HTTP status and a text for what is refused. A send that names no agent goes to the
//! first one that takes such calls.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use switchboard_core::call::{Reply, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::corvid::{
    self, NO_AGENT, RATE_EXCEEDED, TOO_DEEP, decode_send, encode_reply, encode_text,
};
use switchboard_core::error::ProtocolError;
use tokio::time::Instant;

use super::{Addressee, CompatCall, CompatDialect, CompatPath, PlainCall, Sent};
use crate::server::bindings::Rejection;
use crate::server::cards::{CompatCard, Subject};
use crate::server::exchange::headers::X_SOURCE_AGENT;
use crate::server::exchange::respond::{JSON, ReplyBody, http_error, json};
use crate::server::shared::{Mounted, Site};
use crate::server::uri::decode;

pub(super) struct Corvid;

impl CompatCard for Corvid {
    fn dialect(&self) -> Dialect {
        Dialect::Corvid
    }

    /// What is sent to the root of the server goes to the agent that takes such calls, so the card of any other names the
    /// place that is its own.
    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        let root = if base == subject.api_url { subject.own_url } else { base };
        let root = if subject.compat.default_project { root } else { subject.own_url };
        corvid::encode_card(&subject.with_package(), base, &format!("{root}/a2a/tasks/send"), out);
    }

    fn listed_card_base<'s>(&self, subject: &Subject<'s>) -> Option<&'s str> {
        Some(subject.api_url)
    }
}

impl CompatDialect for Corvid {
    /// All that corvid has beside its card is found without a mount, too.
    fn own_place(&self, segments: &[&str]) -> Option<CompatPath> {
        self.shared_place(segments)
    }

    fn shared_place(&self, segments: &[&str]) -> Option<CompatPath> {
        match segments {
            ["a2a", "tasks", "send"] => Some(CompatPath::Send),
            ["a2a", "tasks", id] => Some(CompatPath::Task { id: decode(id)?.as_ref().into() }),
            _ => None,
        }
    }

    fn api_place<'a>(&self, segments: &[&'a str]) -> Option<(Cow<'a, str>, CompatPath)> {
        match segments {
            ["agents", name, "agent-card"] => Some((decode(name)?, CompatPath::ListedCard)),
            _ => None,
        }
    }

    /// A send that names no agent goes to the first one that takes such calls.
    fn agent<'s>(&self, site: &'s Site, name: Option<&str>) -> Option<&'s Arc<Mounted>> {
        site.agents.iter().find(|mounted| match name {
            Some(name) => mounted.name.as_str() == name,
            None => mounted.compat.default_project,
        })
    }

    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection> {
        let request = match sent.place {
            CompatPath::Task { id } if sent.addressee != Addressee::Found => {
                return Err(ProtocolError::task_not_found(id).into());
            }
            CompatPath::Task { id } => Request::GetTask { id: id.clone(), history_length: None },
            _ => send(&sent)?,
        };
        Ok((request, Box::new(PlainCall)))
    }

    fn answer(&self, reply: &Reply, _: &str) -> Response<ReplyBody> {
        let mut body = Vec::with_capacity(1024);
        encode_reply(reply, &mut body);
        json(StatusCode::OK, JSON, body)
    }

    fn refuse(&self, error: &ProtocolError, _: &str) -> Response<ReplyBody> {
        http_error(Dialect::Corvid, error, JSON)
    }

    fn no_agent(&self) -> Response<ReplyBody> {
        text(StatusCode::NOT_FOUND, "Agent not found")
    }

    fn refuse_verb(&self, place: &CompatPath) -> Response<ReplyBody> {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(place.verb()));
        response
    }
}

fn send(sent: &Sent<'_>) -> Result<Request, Rejection> {
    let (limits, head) = (&sent.request.shared.decode_limits, &sent.request.head);
    let mut message = decode_send(sent.body, limits)?;
    message.source_agent = message.source_agent.or_else(|| named_source(head.headers, limits.id_bytes_max));
    match sent.addressee {
        Addressee::Found => {}
        Addressee::Unknown => return Err(Corvid.no_agent().into()),
        Addressee::Unnamed => return Err(text(StatusCode::NOT_FOUND, NO_AGENT).into()),
    }
    let agent = sent.request.agent;
    let options = &agent.compat.corvid;
    let source = message.source_agent.as_deref().unwrap_or_default();
    if let Err(retry_after_s) = agent.compat_clients.rate.admit(source, options.sends_per_min, Instant::now()) {
        let mut response = text(StatusCode::TOO_MANY_REQUESTS, RATE_EXCEEDED);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
        return Err(response.into());
    }
    if message.depth > options.depth_max {
        return Err(text(StatusCode::BAD_REQUEST, TOO_DEEP).into());
    }
    Ok(Request::SendMessage(Box::new(message.into_send(options.timeout_ms))))
}

fn named_source(headers: &HeaderMap, bytes_max: usize) -> Option<String> {
    let name = headers.get(X_SOURCE_AGENT)?.to_str().ok()?.trim();
    (!name.is_empty() && name.len() <= bytes_max).then(|| name.to_owned())
}

fn text(status: StatusCode, why: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(64);
    encode_text(why, &mut body);
    json(status, JSON, body)
}
