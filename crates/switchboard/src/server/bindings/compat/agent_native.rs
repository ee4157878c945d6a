//! Agent-native: one verb, a failed run as an error, a task that is at work from the first answer on.

use http::{HeaderValue, Response, StatusCode, header};
use switchboard_core::call::{BoxFuture, Reply};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::Told;
use switchboard_core::dialect::compat::agent_native::{self, STREAM_ID, decode_call, failed, is_failure, no_streaming};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Task, TaskState, TaskView, Update};

use super::tale::Narrator;
use super::{Asked, CompatDialect, CompatPlace, Visit};
use crate::server::bindings::Calling;
use crate::server::cards::Subject;
use crate::server::edge::body::ReplyBody;
use crate::server::edge::respond::{JSON, json};

pub(super) struct AgentNative;

impl CompatDialect for AgentNative {
    fn dialect(&self) -> Dialect {
        Dialect::AgentNative
    }

    fn own_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        matches!(segments, [] | ["a2a"] | ["_agent-native", "a2a"]).then_some(CompatPlace::Endpoint)
    }

    /// Nobody else has this path, so those who name no version mean its owner's dialect.
    fn shared_place<'a>(&self, segments: &[&'a str]) -> Option<CompatPlace<'a>> {
        matches!(segments, ["_agent-native", "a2a"]).then_some(CompatPlace::Endpoint)
    }

    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        agent_native::encode_card(subject.card, &format!("{base}/_agent-native/a2a"), out);
    }

    fn reply<'v>(&self, visit: Visit<'v>, asked: &'v Asked<'v>) -> BoxFuture<'v, Result<Reply, ProtocolError>> {
        Box::pin(reply(visit, asked))
    }

    /// Whatever the id of the request was, that of its events is the same.
    fn narrate<'a>(&self, _id: &'a str) -> Option<(Box<dyn Narrator>, &'a str)> {
        Some((Box::new(agent_native::Narrator::default()), STREAM_ID))
    }

    /// That there is an endpoint is told by this: elsewhere a verb finds nothing.
    fn refuse_verb(&self) -> Response<ReplyBody> {
        let mut response = json(StatusCode::METHOD_NOT_ALLOWED, JSON, br#"{"error":"Method not allowed"}"#.to_vec());
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        response
    }

    fn answers_probes(&self) -> bool {
        true
    }

    fn refusal_status(&self, error: &ProtocolError) -> StatusCode {
        match error {
            ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
            ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
            ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ProtocolError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            ProtocolError::InvalidRequest { .. } | ProtocolError::ParseError { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        }
    }
}

impl Narrator for agent_native::Narrator {
    fn take(&mut self, update: &Update) -> Told {
        agent_native::Narrator::take(self, update)
    }

    fn view(&self) -> Option<TaskView> {
        agent_native::Narrator::view(self)
    }
}

async fn reply(visit: Visit<'_>, asked: &Asked<'_>) -> Result<Reply, ProtocolError> {
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
