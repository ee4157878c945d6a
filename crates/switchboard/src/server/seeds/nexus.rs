//! NEXUS: JSON-RPC whose ids are never null, and tasks whose ids the client may choose.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use switchboard_core::call::{Caller, Reply, Request, SendMessage};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::nexus::{Call, decode_call, encode_reply, encode_rpc_error};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Task, TaskId};

use super::Asked;
use crate::server::auth::Identity;
use crate::server::binding::{Calling, check_content_type};
use crate::server::body::{ReplyBody, read};
use crate::server::context::{Head, Mounted, Shared};
use crate::server::envelope::Envelope;
use crate::server::respond::{JSON, json, outcome, takes, with_hints};

pub(super) async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    method: &Method,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    if *method != Method::POST {
        return takes("POST");
    }
    let refuse = |error: &ProtocolError, id: &str| {
        shared.metrics.request("unknown", outcome(error));
        refused(error, id)
    };
    let identity = match shared.door.identify(head.headers) {
        Ok(identity) => identity,
        Err(error) => return refuse(&error, "null"),
    };
    if let Err(error) = check_content_type(head.headers) {
        return refuse(&error, "null");
    }
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = match read(head.headers, body, shared.limits.body_bytes_max, patience).await {
        Ok(body) => body,
        Err(error) => return refuse(&error, "null"),
    };
    match Envelope::parse(&body) {
        Ok(envelope) => {
            let asked = Asked { method: &envelope.method, params: envelope.params, id: envelope.id };
            answer(shared, agent, identity, head, asked).await
        }
        Err((error, id)) => refuse(&error, &id),
    }
}

pub(super) async fn answer(
    shared: &Shared,
    agent: &Mounted,
    identity: &Identity,
    head: &Head<'_>,
    asked: Asked<'_>,
) -> Response<ReplyBody> {
    let called = decode(shared, asked);
    let reply = match called {
        Ok(call) => reply(shared, agent, identity, head, call).await,
        Err(error) => {
            shared.metrics.request("unknown", outcome(&error));
            Err(error)
        }
    };
    match reply {
        Ok(reply) => {
            let mut body = Vec::with_capacity(1024);
            body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            body.extend_from_slice(asked.id.as_bytes());
            body.extend_from_slice(b",\"result\":");
            encode_reply(&reply, &mut body);
            body.push(b'}');
            json(StatusCode::OK, JSON, body)
        }
        Err(error) => refused(&error, asked.id),
    }
}

fn decode(shared: &Shared, asked: Asked<'_>) -> Result<Call, ProtocolError> {
    if asked.id == "null" {
        let reason = "id must be a string or a number".to_owned();
        return Err(ProtocolError::InvalidRequest { reason });
    }
    decode_call(asked.method, asked.params, &shared.decode_limits)
}

async fn reply(
    shared: &Shared,
    agent: &Mounted,
    identity: &Identity,
    head: &Head<'_>,
    call: Call,
) -> Result<Reply, ProtocolError> {
    let mut caller = shared.caller(agent, identity, None, Dialect::Nexus, head)?;
    caller.last_event_id = None;
    let request = match call {
        Call::Send { mut send, id } => {
            if let Some(id) = id {
                address(agent, &mut caller, &mut send, id).await?;
            }
            Request::SendMessage(send)
        }
        Call::Get(id) => Request::GetTask { id, history_length: None },
        Call::Cancel(id) => Request::CancelTask { id, metadata: None },
    };
    Calling::begin(agent, caller, request).reply(shared).await
}

/// Finds out which task a send means that names one: a task of the caller's goes on, any other name is that of a new task.
/// The gateway repeats what it has sent when no answer comes; what a task was begun with is such a repeat, and must not be
/// said to it twice.
async fn address(
    agent: &Mounted,
    caller: &mut Caller,
    send: &mut SendMessage,
    id: TaskId,
) -> Result<(), ProtocolError> {
    let get = Request::GetTask { id: id.clone(), history_length: None };
    let known = match agent.endpoint.call(caller.clone(), get).await {
        Ok(Reply::Task(view)) => Some(view.task),
        Ok(_) | Err(ProtocolError::TaskNotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    match known {
        Some(task) if !was_begun_with(&task, &send.message) => send.message.task_id = Some(id),
        Some(_) | None => {
            caller.idempotency_key = Some(format!("nexus {id}"));
            send.open_as = Some(id);
        }
    }
    Ok(())
}

fn was_begun_with(task: &Task, message: &Message) -> bool {
    let mut said = task.history.iter().filter(|known| known.role == message.role);
    let is_first = said.next().is_some_and(|first| first.parts == message.parts);
    task.dialect == Dialect::Nexus && is_first && said.next().is_none()
}

fn refused(error: &ProtocolError, id: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(256);
    encode_rpc_error(error, id, &mut body);
    let status = match error {
        ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ProtocolError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    with_hints(json(status, JSON, body), error)
}
