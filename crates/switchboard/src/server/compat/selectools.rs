//! Selectools: checks in the order of the original (who calls, how large, is it JSON, an object, a request), its texts,
//! HTTP 200 for all but a missing token, one task per message, and no task that could still be canceled.

use std::time::Duration;

use bytes::Bytes;
use http::header;
use http_body::Body;
use switchboard_core::call::{Reply, Request};
use switchboard_core::dialect::compat::selectools::{Call, Envelope, decode_call};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskId;

use super::{Asked, Visit};
use crate::server::auth::{Identified, unauthenticated};
use crate::server::binding::Calling;
use crate::server::body::read;
use crate::server::context::{Head, Mounted, Shared};

/// Who calls, and a body within the agent's own limit. What it says it is counts for nothing.
pub(super) async fn receive<'s, B>(
    shared: &'s Shared,
    agent: &Mounted,
    head: &Head<'_>,
    body: B,
) -> Result<(Identified<'s>, Bytes), ProtocolError>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let identity = identify(shared, head)?;
    let bytes_max = agent.accent.selectools.body_bytes_max.min(shared.limits.body_bytes_max);
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = read(head.headers, body, bytes_max, patience).await?;
    Ok((identity, body))
}

/// The whole header is compared in the original, so the scheme has one spelling.
fn identify<'s>(shared: &'s Shared, head: &Head<'_>) -> Result<Identified<'s>, ProtocolError> {
    let headers = head.headers;
    let named = headers.get(header::AUTHORIZATION).is_none_or(|value| value.as_bytes().starts_with(b"Bearer "));
    if named || shared.door.is_open() {
        return shared.identify(head);
    }
    Err(unauthenticated())
}

/// Reads the envelope; a refusal comes with the id to answer it under.
pub(super) fn open(body: &[u8]) -> Result<Asked<'_>, (ProtocolError, String)> {
    let Envelope { method, params, id } = Envelope::parse(body).map_err(|(error, id)| (error, id.to_owned()))?;
    Ok(Asked { method: method.into(), params, id })
}

pub(super) async fn reply(visit: Visit<'_>, asked: &Asked<'_>) -> Result<Reply, ProtocolError> {
    let call = decode_call(&asked.method, asked.params, &visit.shared.decode_limits)?;
    let Visit { agent, head, .. } = visit;
    let caller = visit.caller()?;
    let call_agent = async |request: Request| Calling::begin(head.note, agent, caller, request).reply().await;
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
