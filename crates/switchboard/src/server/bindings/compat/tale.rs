//! Streams of the dialects whose readers know nothing but whole tasks.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{Frame, SharedUpdate, UpdateStream};
use switchboard_core::dialect::compat::Told;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskView, Update};

use super::Visit;
use crate::server::bindings::sse::{Framing, SseBody};

/// The body of a stream whose events have this id.
pub(super) fn tell(visit: Visit<'_>, narrator: Box<dyn Narrator>, id: &str, updates: UpdateStream) -> SseBody {
    let Visit { shared, agent, identity, compat, .. } = visit;
    let (engine, name) = (shared.engine.clone(), agent.name.clone());
    let owner = identity.owner(None).unwrap_or_default();
    let fit = Box::new(move |view| engine.fitted_to_frame(name.as_str(), &owner, view));
    let told: UpdateStream = Box::pin(Tale { updates, narrator, untold: None, fit });
    let framing = Framing::JsonRpc { id: id.to_owned() };
    let keep_alive = Duration::from_secs(u64::from(shared.limits.keep_alive_s));
    let (write_bytes, metrics) = (shared.limits.stream_write_bytes, shared.metrics.clone());
    SseBody::new(told, framing, compat.dialect(), keep_alive, write_bytes, metrics)
}

/// What a dialect tells of a task, and when.
pub(crate) trait Narrator: Send {
    /// Takes an update in and says what is to be told of it.
    fn take(&mut self, update: &Update) -> Told;

    /// The task as it stands, once there is one.
    fn view(&self) -> Option<TaskView>;
}

/// A stream of updates, told as tasks.
struct Tale {
    updates: UpdateStream,
    narrator: Box<dyn Narrator>,
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
