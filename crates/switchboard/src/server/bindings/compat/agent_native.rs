//! Agent-native: one verb, a failed run as an error, a task that is at work from the first answer on.

use http::{HeaderValue, Response, StatusCode, header};
use switchboard_core::call::{Caller, Reply, Request};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::compat::StreamEvent;
use switchboard_core::dialect::compat::agent_native::{self, STREAM_ID, decode_call, failed, is_failure, no_streaming};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Task, TaskState, TaskView, Update};

use super::tale::WholeTaskStream;
use super::{CompatCall, CompatDialect, CompatPath, Sent, refusal_status};
use crate::server::bindings::Rejection;
use crate::server::cards::{CompatCard, Subject};
use crate::server::exchange::respond::{JSON, ReplyBody, json};
use crate::server::shared::Mounted;

pub(super) struct AgentNative;

impl CompatCard for AgentNative {
    fn dialect(&self) -> Dialect {
        Dialect::AgentNative
    }

    fn encode_card(&self, subject: &Subject<'_>, base: &str, out: &mut Vec<u8>) {
        agent_native::encode_card(subject.card, &format!("{base}/_agent-native/a2a"), out);
    }
}

impl CompatDialect for AgentNative {
    fn own_place(&self, segments: &[&str]) -> Option<CompatPath> {
        matches!(segments, [] | ["a2a"] | ["_agent-native", "a2a"]).then_some(CompatPath::Endpoint)
    }

    /// Nobody else has this path, so those who name no version mean its owner's dialect.
    fn shared_place(&self, segments: &[&str]) -> Option<CompatPath> {
        matches!(segments, ["_agent-native", "a2a"]).then_some(CompatPath::Endpoint)
    }

    fn decode(&self, sent: Sent<'_>) -> Result<(Request, Box<dyn CompatCall>), Rejection> {
        let Sent { request, envelope, .. } = sent;
        if envelope.method == "message/stream" && request.agent.endpoint.card().capabilities.streaming != Some(true) {
            return Err(no_streaming().into());
        }
        let call = decode_call(&envelope.method, envelope.params, &request.shared.decode_limits)?;
        let (is_async, idempotency_key) = (call.is_async, call.idempotency_key);
        Ok((call.request, Box::new(AgentNativeCall { is_async, idempotency_key })))
    }

    /// Whatever the id of the request was, that of its events is the same.
    fn narrate<'a>(&self, _id: &'a str) -> Option<(Box<dyn WholeTaskStream>, &'a str)> {
        Some((Box::new(agent_native::WholeTaskStream::default()), STREAM_ID))
    }

    /// That there is an endpoint is told by this: elsewhere a verb finds nothing.
    fn refuse_verb(&self, _: &CompatPath) -> Response<ReplyBody> {
        let mut response = json(StatusCode::METHOD_NOT_ALLOWED, JSON, br#"{"error":"Method not allowed"}"#.to_vec());
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        response
    }

    fn answers_probes(&self) -> bool {
        true
    }

    fn refusal_status(&self, error: &ProtocolError) -> StatusCode {
        match error {
            ProtocolError::InvalidRequest { .. } | ProtocolError::ParseError { .. } => StatusCode::BAD_REQUEST,
            _ => refusal_status(error),
        }
    }
}

impl WholeTaskStream for agent_native::WholeTaskStream {
    fn take(&mut self, update: &Update) -> StreamEvent {
        agent_native::WholeTaskStream::take(self, update)
    }

    fn view(&self) -> Option<TaskView> {
        agent_native::WholeTaskStream::view(self)
    }
}

struct AgentNativeCall {
    /// Whether the caller is going to poll.
    is_async: bool,
    idempotency_key: Option<String>,
}

impl CompatCall for AgentNativeCall {
    fn set_caller(&mut self, caller: &mut Caller) {
        if caller.authenticated && self.is_async && self.idempotency_key.is_some() {
            caller.idempotency_key = self.idempotency_key.take();
        }
    }

    fn reply(&mut self, _: &Mounted, reply: Reply) -> Result<Reply, ProtocolError> {
        as_told(reply, self.is_async)
    }
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
