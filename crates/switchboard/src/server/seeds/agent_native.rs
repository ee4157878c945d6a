//! Agent-native: one verb, a failed run as an error, a stream of whole tasks.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use switchboard_core::call::{Frame, Reply, SharedUpdate, UpdateStream};
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::agent_native::{
    Narrator, STREAM_ID, Told, decode_call, failed, is_failure, no_streaming,
};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Task, TaskState, TaskView, Update};

use super::{Asked, Visit};
use crate::server::binding::Calling;
use crate::server::body::ReplyBody;
use crate::server::respond::{JSON, json};
use crate::server::sse::{Framing, SseBody};

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

/// The body of a stream to a caller.
pub(super) fn tell(visit: Visit<'_>, updates: UpdateStream) -> SseBody {
    let Visit { shared, agent, identity, .. } = visit;
    let (engine, name) = (shared.engine.clone(), agent.name.clone());
    let owner = identity.owner(None).unwrap_or_default();
    let fit = Box::new(move |view| engine.fitted_to_frame(name.as_str(), &owner, view));
    let told: UpdateStream = Box::pin(Tale { updates, narrator: Narrator::default(), untold: None, fit });
    let framing = Framing::JsonRpc { id: STREAM_ID.to_owned() };
    let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
    let (write_bytes, metrics) = (shared.limits.stream_write_bytes, shared.metrics.clone());
    SseBody::new(told, framing, Dialect::AgentNative, keep_alive, write_bytes, metrics)
}

/// A stream of updates, told as tasks.
struct Tale {
    updates: UpdateStream,
    narrator: Narrator,
    /// The number of an update that is told unless something follows at once.
    untold: Option<Option<u64>>,
    /// Makes a task fit one event: it holds all that was written so far.
    fit: Box<dyn Fn(TaskView) -> TaskView + Send>,
}

impl Tale {
    fn tell(&mut self, seq: Option<u64>) -> Option<Result<Frame, ProtocolError>> {
        self.untold = None;
        let view = (self.fit)(self.narrator.view()?);
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
