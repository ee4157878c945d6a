//! Streams of the dialects whose readers know nothing but whole tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use switchboard_core::call::{Frame, Owner, SharedUpdate, UpdateStream};
use switchboard_core::dialect::compat::StreamEvent;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{TaskView, Update};

use super::alias::Alias;
use crate::server::ports::Downloads;

/// Updates, told as tasks. `downloads` makes a task fit one event: it holds all that was written so far.
pub(super) fn told(
    updates: UpdateStream,
    whole_task_stream: Box<dyn WholeTaskStream>,
    downloads: Option<Arc<dyn Downloads>>,
    reader: Reader,
) -> UpdateStream {
    Box::pin(WholeTaskFrames { updates, whole_task_stream, untold: None, downloads, reader })
}

/// Who reads a stream.
pub(super) struct Reader {
    /// Whose tasks the reader sees.
    pub(super) owner: Owner,
    /// What the reader calls the task.
    pub(super) alias: Option<Alias>,
}

/// What a dialect tells of a task, and when.
pub(crate) trait WholeTaskStream: Send {
    /// Takes an update in and says what is to be told of it.
    fn take(&mut self, update: &Update) -> StreamEvent;

    /// The task as it stands, once there is one.
    fn view(&self) -> Option<TaskView>;
}

/// A stream of updates, told as tasks.
struct WholeTaskFrames {
    updates: UpdateStream,
    whole_task_stream: Box<dyn WholeTaskStream>,
    /// The number of an update that is told unless something follows at once.
    untold: Option<Option<u64>>,
    downloads: Option<Arc<dyn Downloads>>,
    reader: Reader,
}

impl WholeTaskFrames {
    fn tell(&mut self, seq: Option<u64>) -> Option<Result<Frame, ProtocolError>> {
        self.untold = None;
        let view = self.whole_task_stream.view()?;
        let view = match &self.downloads {
            Some(downloads) => downloads.fitted_to_frame(&self.reader.owner, view),
            None => view,
        };
        // Links to artifacts name the task by our id, so the alias comes last.
        let view = match &self.reader.alias {
            Some(alias) => alias.renamed(view),
            None => view,
        };
        Some(Ok(Frame { seq, truncated: false, update: SharedUpdate::new(Update::Task(view)) }))
    }
}

impl Stream for WholeTaskFrames {
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
                    match this.whole_task_stream.take(&frame.update.update) {
                        StreamEvent::Nothing => {}
                        StreamEvent::TaskIfNothingFollows => this.untold = Some(frame.seq),
                        StreamEvent::Task => return Poll::Ready(this.tell(frame.seq)),
                        StreamEvent::Failed(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }
}
