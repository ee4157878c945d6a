//! The HTTP+JSON binding: one path per operation, plain JSON bodies. 1.0 and 0.3 share the places and the way through: ids are in the
//! path, the rest in body and query. 1.0 has plain fields there and 0.3, under `/v1`, ProtoJSON.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use switchboard_core::call::{Reply, Request, UpdateStream};
use switchboard_core::dialect::detect::{Detected, Ingress};
use switchboard_core::dialect::json::{DecodeLimits, Decoded, check_id};
use switchboard_core::dialect::v0_3::rest;
use switchboard_core::dialect::{Dialect, v1_0};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ConfigId, PushConfig, TaskId};

use super::envelope::Envelope;
use super::sse::{Framing, SseBody};
use super::{Binding, Rejection};
use crate::server::cards;
use crate::server::exchange::request::check_content_type;
use crate::server::exchange::respond::{A2A_JSON, JSON, ReplyBody, events, http_error, json, not_allowed};
use crate::server::shared::{Incoming, Mounted, Shared};
use crate::server::uri::{decode as decode_segment, query_pairs};

/// The paths of the HTTP+JSON binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RestPath {
    SendMessage,
    StreamMessage,
    Tasks,
    /// `/tasks/{id}` with the verb behind the last colon, if any.
    Task {
        id: TaskId,
        verb: Option<TaskVerb>,
    },
    PushConfigs {
        task_id: TaskId,
    },
    PushConfig {
        task_id: TaskId,
        id: ConfigId,
    },
    ExtendedCard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskVerb {
    Cancel,
    Subscribe,
}

impl RestPath {
    /// What these segments name below the root of the binding.
    pub(crate) fn at(segments: &[&str]) -> Option<Self> {
        let task = |id: &str| Some(TaskId::from(decode_segment(id)?.as_ref()));
        match segments {
            ["message:send"] => Some(Self::SendMessage),
            ["message:stream"] => Some(Self::StreamMessage),
            ["extendedAgentCard"] => Some(Self::ExtendedCard),
            ["tasks"] => Some(Self::Tasks),
            ["tasks", last] => {
                // The verb is what follows the last colon, if it is one we know: an id may hold colons of its own.
                let (id, verb) = match last.rsplit_once(':') {
                    Some((id, "cancel")) => (id, Some(TaskVerb::Cancel)),
                    Some((id, "subscribe")) => (id, Some(TaskVerb::Subscribe)),
                    _ => (*last, None),
                };
                Some(Self::Task { id: task(id)?, verb })
            }
            ["tasks", id, "pushNotificationConfigs"] => Some(Self::PushConfigs { task_id: task(id)? }),
            ["tasks", id, "pushNotificationConfigs", config] => {
                Some(Self::PushConfig { task_id: task(id)?, id: decode_segment(config)?.as_ref().into() })
            }
            _ => None,
        }
    }
}

pub(crate) struct HttpJson {
    ingress: Ingress<'static>,
    /// The tenant in the path.
    tenant: Option<String>,
    place: RestPath,
    dialect: Dialect,
    content_type: HeaderValue,
}

impl HttpJson {
    /// A place of the binding as 1.0 has it, or 0.3, and the tenant in its path.
    pub(crate) fn new(ingress: Ingress<'static>, tenant: Option<String>, place: RestPath) -> Self {
        Self { ingress, tenant, place, dialect: Dialect::V1_0, content_type: A2A_JSON }
    }
}

impl Binding for HttpJson {
    fn ingress(&self) -> Option<Ingress<'static>> {
        Some(self.ingress)
    }

    fn learn(&mut self, request: &Incoming<'_, '_>, verdict: Detected, _: &Envelope<'_>) {
        self.dialect = verdict.dialect;
        self.content_type = content_type(verdict.dialect, request.head.headers);
    }

    fn check(&mut self, request: &Incoming<'_, '_>) -> Result<(), Rejection> {
        let head = &request.head;
        if let Some(allowed) = wrong_verb(head.method, &self.place) {
            let method = format!("{} {:.200}", head.method, head.uri.path());
            let error = ProtocolError::MethodNotFound { method, hint: None };
            return Err(not_allowed(self.dialect, &error, allowed, self.content_type.clone()).into());
        }
        match *head.method == Method::POST {
            true => Ok(check_content_type(head)?),
            false => Ok(()),
        }
    }

    fn body_bytes_max(&self, request: &Incoming<'_, '_>) -> Option<usize> {
        (*request.head.method == Method::POST).then_some(request.shared.limits.body_bytes_max)
    }

    fn decode(&mut self, request: &Incoming<'_, '_>, _: &Envelope<'_>, body: &Bytes) -> Result<Decoded, Rejection> {
        let query = request.head.uri.query().unwrap_or_default();
        let pairs = query_pairs(query).ok_or_else(|| ProtocolError::invalid("query", "is not valid UTF-8"))?;
        let place = std::mem::replace(&mut self.place, RestPath::Tasks);
        let limits = &request.shared.decode_limits;
        let decoded = decode(self.dialect, request.head.method, place, &pairs, body, limits)?;
        Ok(Decoded { tenant: self.tenant.take().or(decoded.tenant), ..decoded })
    }

    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Response<ReplyBody>, Rejection> {
        Ok(answer(agent, self.dialect, &reply, self.content_type.clone()))
    }

    async fn stream(
        &mut self,
        shared: &Shared,
        _: &Mounted,
        updates: UpdateStream,
    ) -> Result<Response<ReplyBody>, Rejection> {
        Ok(events(SseBody::new(&shared.limits, shared.metrics.clone(), updates, Framing::HttpJson, self.dialect)))
    }

    fn error(&self, error: &ProtocolError) -> Response<ReplyBody> {
        http_error(self.dialect, error, self.content_type.clone())
    }
}

fn answer(agent: &Mounted, dialect: Dialect, reply: &Reply, content_type: HeaderValue) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(1024);
    match reply {
        // Clients of other SDKs decode the body of a delete, so there is one.
        Reply::Deleted => body.extend_from_slice(b"{}"),
        Reply::Card(card) => {
            body.extend_from_slice(&cards::encode_reply(dialect, card, &agent.interfaces, agent.signer.as_ref()));
        }
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
fn wrong_verb(method: &Method, place: &RestPath) -> Option<&'static str> {
    let allowed = match place {
        RestPath::SendMessage | RestPath::StreamMessage | RestPath::Task { verb: Some(TaskVerb::Cancel), .. } => "POST",
        // The proto says GET, the text of the spec says POST; clients send either.
        RestPath::Task { verb: Some(TaskVerb::Subscribe), .. } => "GET, POST",
        RestPath::Tasks | RestPath::Task { verb: None, .. } | RestPath::ExtendedCard => "GET",
        RestPath::PushConfigs { .. } => "GET, POST",
        RestPath::PushConfig { .. } => "GET, DELETE",
    };
    let fits = allowed.split(", ").any(|verb| verb == method.as_str());
    (!fits).then_some(allowed)
}

/// A request, and the tenant it names outside its path.
fn decode(
    dialect: Dialect,
    method: &Method,
    place: RestPath,
    pairs: &Pairs<'_>,
    body: &[u8],
    limits: &DecodeLimits,
) -> Result<Decoded, ProtocolError> {
    // No compat dialect has these places, so what is not in 1.0 is in 0.3.
    let is_v1_0 = dialect == Dialect::V1_0;
    let query =
        |names: &[&str]| pairs.iter().find(|(key, _)| names.contains(&key.as_ref())).map(|(_, value)| value.as_ref());
    let query_tenant = || query(&["tenant"]).map(str::to_owned);
    let task_id = |id: TaskId| -> Result<TaskId, ProtocolError> {
        check_id("id", id.as_str(), limits)?;
        Ok(id)
    };
    let decode_send = if is_v1_0 { v1_0::decode_send_body } else { rest::decode_send_body };
    let decode_cancel = if is_v1_0 { v1_0::decode_cancel_body } else { rest::decode_cancel_body };
    let (tenant, request) = match place {
        RestPath::SendMessage => {
            let (tenant, send) = decode_send(body, limits)?;
            (tenant, Request::SendMessage(send.into()))
        }
        RestPath::StreamMessage => {
            let (tenant, send) = decode_send(body, limits)?;
            (tenant, Request::SendStreamingMessage(send.into()))
        }
        RestPath::Tasks if is_v1_0 => (query_tenant(), Request::ListTasks(v1_0::decode_list_query(pairs, limits)?)),
        RestPath::Tasks => {
            let hint = "A2A 0.3 has no way to list tasks; 1.0 has: GET /tasks with header A2A-Version: 1.0";
            let method = "GET /v1/tasks".to_owned();
            return Err(ProtocolError::MethodNotFound { method, hint: Some(hint.to_owned()) });
        }
        RestPath::Task { id, verb: None } => {
            let history_length = if is_v1_0 {
                query(&["historyLength"]).map(v1_0::decode_history_length).transpose()?
            } else {
                query(&["historyLength", "history_length"]).map(rest::decode_history_length).transpose()?.flatten()
            };
            (query_tenant(), Request::GetTask { id: task_id(id)?, history_length })
        }
        RestPath::Task { id, verb: Some(TaskVerb::Cancel) } => {
            let (tenant, metadata) = decode_cancel(body, limits)?;
            (tenant, Request::CancelTask { id: task_id(id)?, metadata })
        }
        RestPath::Task { id, verb: Some(TaskVerb::Subscribe) } => {
            // 0.3 has the same body here as for a cancel.
            let tenant = if is_v1_0 { query_tenant() } else { decode_cancel(body, limits)?.0 };
            (tenant, Request::SubscribeToTask { id: task_id(id)? })
        }
        RestPath::PushConfigs { task_id: id } if *method == Method::POST => {
            let (tenant, config) = if is_v1_0 {
                let (tenant, config) = v1_0::decode_push_config_body(body, limits)?;
                // The path outranks the body.
                (tenant, PushConfig { task_id: task_id(id)?, ..config })
            } else {
                rest::decode_push_config_body(task_id(id)?, body, limits)?
            };
            (tenant, Request::CreatePushConfig(config.into()))
        }
        RestPath::PushConfigs { task_id: id } => {
            let (page_size, page_token) =
                if is_v1_0 { v1_0::decode_push_list_query(pairs, limits)? } else { (None, None) };
            (query_tenant(), Request::ListPushConfigs { task_id: task_id(id)?, page_size, page_token })
        }
        RestPath::PushConfig { task_id: id, id: config } => {
            check_id("id", config.as_str(), limits)?;
            let (task_id, id) = (task_id(id)?, config);
            let request = match *method == Method::DELETE {
                true => Request::DeletePushConfig { task_id, id },
                false => Request::GetPushConfig { task_id, id },
            };
            (query_tenant(), request)
        }
        RestPath::ExtendedCard => (query_tenant(), Request::GetExtendedAgentCard),
    };
    Ok(Decoded { tenant, request })
}

type Pairs<'a> = [(Cow<'a, str>, Cow<'a, str>)];
