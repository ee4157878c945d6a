//! The HTTP+JSON binding: one path per operation, plain JSON bodies.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::call::{Reply, Request};
use switchboard_core::dialect::v1_0::{self, DecodeLimits};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{PushConfig, TaskId};

use super::binding::{Calling, check_content_type, echo_extensions};
use super::body::{ReplyBody, read};
use super::cards;
use super::context::{Head, Mounted, Shared};
use super::respond::{A2A_JSON, JSON, events, http_error, json, not_allowed, outcome};
use super::routes::{RestPlace, query_pairs};
use super::sse::{Framing, SseBody};

pub(crate) async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    method: &Method,
    tenant: Option<&str>,
    place: RestPlace<'_>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let content_type = content_type(head.headers);
    let refuse = |error: ProtocolError| {
        shared.metrics.request("unknown", outcome(&error));
        http_error(&error, content_type.clone())
    };
    let identity = match shared.door.identify(head.headers) {
        Ok(identity) => identity,
        Err(error) => return refuse(error),
    };
    if let Some(allowed) = wrong_verb(method, &place) {
        let error = ProtocolError::MethodNotFound { method: format!("{method} {:.200}", head.uri.path()) };
        shared.metrics.request("unknown", outcome(&error));
        return not_allowed(&error, allowed, content_type);
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
    let begun = shared.dialect(head).and_then(|dialect| {
        let query = head.uri.query().unwrap_or_default();
        let pairs = query_pairs(query).ok_or_else(|| ProtocolError::invalid("query", "is not valid UTF-8"))?;
        let (named, request) = decode(method, place, &pairs, &body, &shared.decode_limits)?;
        let tenant = tenant.map(str::to_owned).or(named);
        let caller = shared.caller(agent, identity, tenant.as_deref(), dialect, head)?;
        Ok(Calling::begin(agent, caller, request))
    });
    let mut calling = match begun {
        Ok(calling) => calling,
        Err(error) => return refuse(error),
    };
    let mut response = match calling.reply(shared).await {
        Ok(Reply::Stream(updates)) => {
            let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
            let (bytes, metrics) = (shared.limits.stream_write_bytes, shared.metrics.clone());
            events(SseBody::new(updates, Framing::HttpJson, calling.dialect, keep_alive, bytes, metrics))
        }
        Ok(reply) => answer(agent, &reply, content_type),
        Err(error) => http_error(&error, content_type),
    };
    echo_extensions(&calling.extensions, &mut response);
    response
}

fn answer(agent: &Mounted, reply: &Reply, content_type: HeaderValue) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(1024);
    match reply {
        // Clients of other SDKs decode the body of a delete, so there is one.
        Reply::Deleted => body.extend_from_slice(b"{}"),
        Reply::Card(card) => body.extend_from_slice(&cards::encode(card, &agent.interfaces)),
        _ => v1_0::encode_reply(reply, &mut body),
    }
    let mut response = json(StatusCode::OK, content_type, body);
    if matches!(reply, Reply::Card(_)) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    }
    response
}

/// The media type of the answer: the protocol's own for those who accept it or say nothing, plain JSON for the others.
fn content_type(headers: &HeaderMap) -> HeaderValue {
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

/// The tenant a request names outside its path, and the request.
fn decode(
    method: &Method,
    place: RestPlace<'_>,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<(Option<String>, Request), ProtocolError> {
    let query = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_ref());
    let tenant = query("tenant").map(str::to_owned);
    let task_id = |id: Cow<'_, str>| -> Result<TaskId, ProtocolError> {
        v1_0::check_id("id", &id, limits)?;
        Ok(TaskId::from(id.as_ref()))
    };
    let request = match place {
        RestPlace::SendMessage => {
            let (tenant, send) = v1_0::decode_send_body(body, limits)?;
            return Ok((tenant, Request::SendMessage(send.into())));
        }
        RestPlace::StreamMessage => {
            let (tenant, send) = v1_0::decode_send_body(body, limits)?;
            return Ok((tenant, Request::SendStreamingMessage(send.into())));
        }
        RestPlace::Task { id, verb: Some("cancel") } => {
            let (tenant, metadata) = v1_0::decode_cancel_body(body, limits)?;
            return Ok((tenant, Request::CancelTask { id: task_id(id)?, metadata }));
        }
        RestPlace::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = v1_0::decode_push_config_body(body, limits)?;
            // The path outranks the body.
            let config = PushConfig { task_id: task_id(id)?, ..config };
            return Ok((tenant, Request::CreatePushConfig(config.into())));
        }
        RestPlace::Tasks => Request::ListTasks(v1_0::decode_list_query(pairs, limits)?),
        RestPlace::Task { id, verb: None } => {
            let history_length = query("historyLength").map(v1_0::decode_history_length).transpose()?;
            Request::GetTask { id: task_id(id)?, history_length }
        }
        RestPlace::Task { id, verb: Some(_) } => Request::SubscribeToTask { id: task_id(id)? },
        RestPlace::PushConfigs { task_id: id } => {
            let (page_size, page_token) = v1_0::decode_push_list_query(pairs, limits)?;
            Request::ListPushConfigs { task_id: task_id(id)?, page_size, page_token }
        }
        RestPlace::PushConfig { task_id: id, id: config } => {
            v1_0::check_id("id", &config, limits)?;
            let (task_id, id) = (task_id(id)?, config.as_ref().into());
            if *method == Method::DELETE {
                Request::DeletePushConfig { task_id, id }
            } else {
                Request::GetPushConfig { task_id, id }
            }
        }
        RestPlace::ExtendedCard => Request::GetExtendedAgentCard,
    };
    Ok((tenant, request))
}
