//! The HTTP+JSON binding: one path per operation, plain JSON bodies. 1.0 and 0.3 share the places and the way through;
//! what stands in bodies and queries is read in `v1_0` and `v0_3`.

mod v0_3;
mod v1_0;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::call::Reply;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::{Door, Refusal};
use switchboard_core::error::ProtocolError;

use crate::server::bindings::sse::{Framing, SseBody};
use crate::server::bindings::{Calling, check_content_type};
use crate::server::cards;
use crate::server::edge::body::{ReplyBody, read};
use crate::server::edge::note::Binding;
use crate::server::edge::percent::query_pairs;
use crate::server::edge::respond::{A2A_JSON, JSON, events, http_error, json, not_allowed};
use crate::server::edge::route::RestPlace;
use crate::server::edge::shared::{Head, Mounted, Shared};

/// A place of the binding, and the door it was entered by.
pub(crate) struct At<'a> {
    pub(crate) door: Door<'a>,
    /// The tenant in the path.
    pub(crate) tenant: Option<Cow<'a, str>>,
    pub(crate) place: RestPlace<'a>,
}

pub(crate) async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    method: &Method,
    At { door, tenant, place }: At<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let refuse_in =
        |dialect: Dialect, error: ProtocolError| http_error(dialect, &error, content_type(dialect, head.headers));
    head.note.binding(Binding::HttpJson);
    head.note.agent(agent);
    let identity = match shared.identify(head) {
        Ok(identity) => identity,
        Err(error) => return refuse_in(shared.spelling(agent, head, door), error),
    };
    let dialect = match shared.dialect(agent, head, door) {
        Ok(verdict) => verdict.dialect,
        Err(Refusal { dialect, error }) => return refuse_in(dialect, error),
    };
    let refuse = |error: ProtocolError| refuse_in(dialect, error);
    if let Some(allowed) = wrong_verb(method, &place) {
        let method = format!("{method} {:.200}", head.uri.path());
        let error = ProtocolError::MethodNotFound { method, hint: None };
        return not_allowed(dialect, &error, allowed, content_type(dialect, head.headers));
    }
    let body = if *method == Method::POST {
        if let Err(error) = check_content_type(head.headers) {
            return refuse(error);
        }
        let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
        match read(head.headers, body, shared.limits.body_bytes_max, patience).await {
            Ok(body) => body,
            Err(error) => return refuse(error),
        }
    } else {
        Bytes::new()
    };
    let begin = || {
        let query = head.uri.query().unwrap_or_default();
        let pairs = query_pairs(query).ok_or_else(|| ProtocolError::invalid("query", "is not valid UTF-8"))?;
        // No compat dialect has these places, so what is not in 1.0 is in 0.3.
        let decode = if dialect == Dialect::V1_0 { v1_0::decode } else { v0_3::decode };
        let (named, request) = decode(method, place, &pairs, &body, &shared.decode_limits)?;
        let tenant = tenant.map(Cow::into_owned).or(named);
        let caller = shared.caller(agent, &identity, tenant.as_deref(), dialect, head)?;
        Ok(Calling::begin(head.note, agent, caller, request))
    };
    let mut calling = match begin() {
        Ok(calling) => calling,
        Err(error) => return refuse(error),
    };
    let mut response = match calling.reply().await {
        Ok(Reply::Stream(updates)) => {
            let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
            let (bytes, metrics) = (shared.limits.stream_write_bytes, shared.metrics.clone());
            events(SseBody::new(updates, Framing::HttpJson, dialect, keep_alive, bytes, metrics))
        }
        Ok(reply) => answer(agent, dialect, &reply, content_type(dialect, head.headers)),
        Err(error) => http_error(dialect, &error, content_type(dialect, head.headers)),
    };
    calling.mark(dialect, &mut response);
    response
}

fn answer(agent: &Mounted, dialect: Dialect, reply: &Reply, content_type: HeaderValue) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(1024);
    match reply {
        // Clients of other SDKs decode the body of a delete, so there is one.
        Reply::Deleted => body.extend_from_slice(b"{}"),
        Reply::Card(card) => body.extend_from_slice(&cards::encode_reply(dialect, card, &agent.interfaces)),
        _ => dialect.write_reply(reply, &mut body),
    }
    let mut response = json(StatusCode::OK, content_type, body);
    if matches!(reply, Reply::Card(_)) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    }
    response
}

/// The media type of the answer: the protocol's own for those who accept it or say nothing, plain JSON for the others, and
/// for everybody from before it existed.
fn content_type(dialect: Dialect, headers: &HeaderMap) -> HeaderValue {
    if dialect != Dialect::V1_0 {
        return JSON;
    }
    const OURS: [&str; 3] = ["application/a2a+json", "application/*", "*/*"];
    let is_ours = |range: &str| {
        let bare = range.split(';').next().unwrap_or_default().trim();
        OURS.iter().any(|ours| bare.eq_ignore_ascii_case(ours))
    };
    let mut lines = headers.get_all(header::ACCEPT).iter().peekable();
    let is_silent = lines.peek().is_none();
    let takes_ours = lines.any(|line| line.to_str().is_ok_and(|line| line.split(',').any(is_ours)));
    if is_silent || takes_ours { A2A_JSON } else { JSON }
}

/// The verbs a place takes, if this is not one of them.
fn wrong_verb(method: &Method, place: &RestPlace<'_>) -> Option<&'static str> {
    let allowed = match place {
        RestPlace::SendMessage | RestPlace::StreamMessage | RestPlace::Task { verb: Some("cancel"), .. } => "POST",
        // The proto says GET, the text of the spec says POST; clients send either.
        RestPlace::Task { verb: Some(_), .. } => "GET, POST",
        RestPlace::Tasks | RestPlace::Task { verb: None, .. } | RestPlace::ExtendedCard => "GET",
        RestPlace::PushConfigs { .. } => "GET, POST",
        RestPlace::PushConfig { .. } => "GET, DELETE",
    };
    let fits = allowed.split(", ").any(|verb| verb == method.as_str());
    (!fits).then_some(allowed)
}

type Pairs<'a> = [(Cow<'a, str>, Cow<'a, str>)];
