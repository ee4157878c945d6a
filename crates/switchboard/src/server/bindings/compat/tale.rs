//! Streams of the dialects whose readers know nothing but whole tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use switchboard_core::call::{Frame, Owner, SharedUpdate, UpdateStream};
use switchboard_core::dialect::compat::Told;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskView, Update};

use crate::server::downloads::Downloads;

/// Updates, told as tasks. `downloads` makes a task fit one event: it holds all that was written so far.
pub(super) fn told(
    updates: UpdateStream,
    narrator: Box<dyn Narrator>,
    downloads: Option<Arc<dyn Downloads>>,
    owner: Owner,
) -> UpdateStream {
    Box::pin(Tale { updates, narrator, untold: None, downloads, owner })
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
    downloads: Option<Arc<dyn Downloads>>,
    owner: Owner,
}

impl Tale {
    fn tell(&mut self, seq: Option<u64>) -> Option<Result<Frame, ProtocolError>> {
        self.untold = None;
        let view = self.narrator.view()?;
        let view = match &self.downloads {
            Some(downloads) => downloads.fitted_to_frame(&self.owner, view),
            None => view,
        };
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
