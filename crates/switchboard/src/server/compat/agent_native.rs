//! Agent-native: one verb, a failed run as an error, a task that is at work from the first answer on.

use http::{HeaderValue, Response, StatusCode, header};
use switchboard_core::call::Reply;
use switchboard_core::dialect::compat::agent_native::{decode_call, failed, is_failure, no_streaming};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Task, TaskState, TaskView};

use super::{Asked, Visit};
use crate::server::binding::Calling;
use crate::server::body::ReplyBody;
use crate::server::respond::{JSON, json};

/// The refusal of a verb. That there is an endpoint is told by this: elsewhere a verb finds nothing.
pub(super) fn other_verb() -> Response<ReplyBody> {
    let mut response = json(StatusCode::METHOD_NOT_ALLOWED, JSON, br#"{"error":"Method not allowed"}"#.to_vec());
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

pub(super) async fn reply(visit: Visit<'_>, asked: &Asked<'_>) -> Result<Reply, ProtocolError> {
    let (mut calling, is_async) = begin(visit, asked)?;
    as_told(calling.reply().await?, is_async)
}

/// Decodes a call and hands it to its agent; also whether the caller is going to poll.
fn begin<'a>(visit: Visit<'a>, asked: &Asked<'_>) -> Result<(Calling<'a>, bool), ProtocolError> {
    if asked.method == "message/stream" && visit.agent.endpoint.card().capabilities.streaming != Some(true) {
        return Err(no_streaming());
    }
    let call = decode_call(&asked.method, asked.params, &visit.shared.decode_limits)?;
    let mut caller = visit.caller()?;
    if caller.authenticated && call.is_async && call.idempotency_key.is_some() {
        caller.idempotency_key = call.idempotency_key;
    }
    Ok((Calling::begin(visit.head.note, visit.agent, caller, call.request), call.is_async))
}

/// A reply as this dialect has it: a run that failed while its caller waited is an error, and a task that was only just
/// accepted is said to be working from the first answer on.
fn as_told(reply: Reply, is_async: bool) -> Result<Reply, ProtocolError> {
    match reply {
        Reply::SentTask(view) if !is_async && is_failure(view.task.state()) => Err(failed(&view.task)),
        Reply::SentTask(view) | Reply::Task(view) if view.task.state() == TaskState::Submitted => {
            let mut task = Task::clone(&view.task);
            task.status.state = TaskState::Working;
            Ok(Reply::Task(TaskView { task: task.into(), ..view }))
        }
        reply => Ok(reply),
    }
}
