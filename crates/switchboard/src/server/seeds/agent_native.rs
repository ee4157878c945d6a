//! Agent-native: one verb, HTTP 400 for what is no request, a failed run as an error, a stream of whole tasks.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body::Body;
use switchboard_core::call::{Frame, Reply, SharedUpdate, UpdateStream};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::agent_native::{
    Narrator, STREAM_ID, Told, decode_call, encode_reply, encode_rpc_error, failed, is_failure, no_streaming,
};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Task, TaskState, TaskView, Update};

use super::Asked;
use crate::server::auth::Identity;
use crate::server::binding::{Calling, check_content_type};
use crate::server::body::{ReplyBody, read};
use crate::server::context::{Head, Mounted, Shared};
use crate::server::envelope::Envelope;
use crate::server::respond::{JSON, events, json, outcome, with_hints};
use crate::server::sse::{Framing, SseBody};

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
        // That there is an endpoint is told by this: elsewhere a verb finds nothing.
        let mut response = json(StatusCode::METHOD_NOT_ALLOWED, JSON, br#"{"error":"Method not allowed"}"#.to_vec());
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
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
    let called = match begin(shared, agent, identity, head, asked) {
        Ok((mut calling, is_async)) => calling.reply(shared).await.and_then(|reply| as_told(reply, is_async)),
        Err(error) => {
            shared.metrics.request("unknown", outcome(&error));
            Err(error)
        }
    };
    match called {
        Ok(Reply::Stream(updates)) => {
            let framing = Framing::JsonRpc { id: STREAM_ID.to_owned() };
            let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
            let (write_bytes, metrics) = (shared.limits.stream_write_bytes, shared.metrics.clone());
            let told: UpdateStream = Box::pin(Tale { updates, narrator: Narrator::default(), untold: None });
            events(SseBody::new(told, framing, Dialect::AgentNative, keep_alive, write_bytes, metrics))
        }
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

/// Decodes a call and hands it to its agent; also whether the caller is going to poll.
fn begin<'a>(
    shared: &Shared,
    agent: &'a Mounted,
    identity: &Identity,
    head: &Head<'_>,
    asked: Asked<'_>,
) -> Result<(Calling<'a>, bool), ProtocolError> {
    if asked.method == "message/stream" && agent.endpoint.card().capabilities.streaming != Some(true) {
        return Err(no_streaming());
    }
    let call = decode_call(asked.method, asked.params, &shared.decode_limits)?;
    let mut caller = shared.caller(agent, identity, None, Dialect::AgentNative, head)?;
    // There is nothing to go on from: each event is the whole.
    caller.last_event_id = None;
    if identity.authenticated && call.is_async && call.idempotency_key.is_some() {
        caller.idempotency_key = call.idempotency_key;
    }
    Ok((Calling::begin(agent, caller, call.request), call.is_async))
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

/// A stream of updates, told as tasks.
struct Tale {
    updates: UpdateStream,
    narrator: Narrator,
    /// The number of an update that is told unless something follows at once.
    untold: Option<Option<u64>>,
}

impl Tale {
    fn tell(&mut self, seq: Option<u64>) -> Option<Result<Frame, ProtocolError>> {
        self.untold = None;
        let view = self.narrator.view()?;
        Some(Ok(Frame { seq, truncated: false, update: SharedUpdate::new(Update::Task(view)) }))
    }
}

impl Stream for Tale {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match this.updates.as_mut().poll_next(cx) {
                Poll::Pending => {
                    let told = this.untold.and_then(|seq| this.tell(seq));
                    return told.map_or(Poll::Pending, |told| Poll::Ready(Some(told)));
                }
                Poll::Ready(None) => return Poll::Ready(this.untold.and_then(|seq| this.tell(seq))),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(frame))) => {
                    // An agent that answers without a task says one thing.
                    if matches!(frame.update.update, Update::Message(_)) {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    match this.narrator.take(&frame.update.update) {
                        Told::Nothing => {}
                        Told::TaskIfNothingFollows => this.untold = Some(frame.seq),
                        Told::Task => return Poll::Ready(this.tell(frame.seq)),
                        Told::Failed(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }
}

fn refused(error: &ProtocolError, id: &str) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(256);
    encode_rpc_error(error, id, &mut body);
    let status = match error {
        ProtocolError::InvalidRequest { .. } | ProtocolError::ParseError { .. } => StatusCode::BAD_REQUEST,
        ProtocolError::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        ProtocolError::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        ProtocolError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        ProtocolError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    with_hints(json(status, JSON, body), error)
}
