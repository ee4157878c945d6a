//! Selectools: checks in the order of the original (who calls, how large, is it JSON, an object, a request), its texts,
//! HTTP 200 for all but a missing token, one task per message, and no task that could still be canceled.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::call::{Reply, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::selectools::{Call, Envelope, decode_call, encode_reply, encode_rpc_error};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::Asked;
use crate::server::auth::Identity;
use crate::server::binding::Calling;
use crate::server::body::{ReplyBody, read};
use crate::server::context::{Head, Mounted, Shared};
use crate::server::respond::{JSON, json, outcome, takes};

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
    let identity = match identify(shared, head.headers) {
        Ok(identity) => identity,
        Err(error) => return refuse(&error, "null"),
    };
    let bytes_max = agent.accent.selectools.body_bytes_max.min(shared.limits.body_bytes_max);
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = match read(head.headers, body, bytes_max, patience).await {
        Ok(body) => body,
        Err(error) => return refuse(&error, "null"),
    };
    match Envelope::parse(&body) {
        Ok(envelope) => {
            let asked = Asked { method: &envelope.method, params: envelope.params, id: envelope.id };
            answer(shared, agent, identity, head, asked).await
        }
        Err((error, id)) => refuse(&error, id),
    }
}

/// The whole header is compared in the original, so the scheme has one spelling.
fn identify<'s>(shared: &'s Shared, headers: &HeaderMap) -> Result<&'s Identity, ProtocolError> {
    let named = headers.get(header::AUTHORIZATION).is_none_or(|value| value.as_bytes().starts_with(b"Bearer "));
    if named || shared.door.is_open() {
        return shared.door.identify(headers);
    }
    Err(ProtocolError::Unauthenticated { reason: "the scheme is not Bearer".to_owned() })
}

pub(super) async fn answer(
    shared: &Shared,
    agent: &Mounted,
    identity: &Identity,
    head: &Head<'_>,
    asked: Asked<'_>,
) -> Response<ReplyBody> {
    let reply = match decode_call(asked.method, asked.params, &shared.decode_limits) {
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

async fn reply(
    shared: &Shared,
    agent: &Mounted,
    identity: &Identity,
    head: &Head<'_>,
    call: Call,
) -> Result<Reply, ProtocolError> {
    let mut caller = shared.caller(agent, identity, None, Dialect::Selectools, head)?;
    caller.last_event_id = None;
    let call_agent = async |request: Request| Calling::begin(agent, caller, request).reply(shared).await;
    let window = &agent.accent.window;
    let known = |id: &TaskId| match window.has_passed(id) {
        true => Err(ProtocolError::task_not_found(id)),
        false => Ok(Request::GetTask { id: id.clone(), history_length: None }),
    };
    match call {
        Call::Send(send) => {
            let reply = call_agent(Request::SendMessage(send)).await?;
            if let Reply::SentTask(view) = &reply {
                window.push(&view.task.id, agent.accent.selectools.tasks_max);
            }
            Ok(reply)
        }
        Call::Get(id) => call_agent(known(&id)?).await,
        // Whatever can be found was answered, so for its callers it is over.
        Call::Cancel(id) => match call_agent(known(&id)?).await? {
            Reply::Task(view) => Err(ProtocolError::TaskNotCancelable { id, state: view.task.state() }),
            _ => Err(ProtocolError::task_not_found(&id)),
        },
    }
}

fn refused(error: &ProtocolError, id: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(256);
    encode_rpc_error(error, id, &mut body);
    let status = match error {
        ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        _ => StatusCode::OK,
    };
    json(status, JSON, body)
}
