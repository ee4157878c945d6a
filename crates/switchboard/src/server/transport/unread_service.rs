//! Answers that clients do not read, of a service in an application. The connections are the application's, so nothing here can
//! end them or see what their sockets take. But HTTP asks a body for its next piece only when there is room for it: an answer is
//! handed on in pieces, and one that is not asked for its next piece in time is let go. Its memory, its place among the streams
//! and what it counts in the budgets are free then, and the connection breaks off at the next attempt to go on.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::read_progress::{NotRead, PROGRESS_BYTES_MIN, Pieces, Progress, Watched, lock};
use crate::server::edge::respond::ReplyBody;

/// The answers of a service that are not read to their end.
pub(crate) struct ServiceReplies {
    replies: Watched<HeldReply>,
}

struct HeldReply {
    /// None once it was let go.
    left: Mutex<Option<Unsent>>,
    progress: Progress,
}

struct Unsent {
    pieces: Pieces,
    /// Who waits for the next piece.
    waker: Option<Waker>,
}

impl ServiceReplies {
    pub(crate) fn new(since: Instant) -> Self {
        Self { replies: Watched::new(since) }
    }

    /// The body of an answer, watched unless it is small.
    pub(crate) fn watch(self: &Arc<Self>, body: ReplyBody) -> ReplyBody {
        if body.is_end_stream() || matches!(&body, ReplyBody::Whole(bytes) if bytes.len() <= PROGRESS_BYTES_MIN) {
            return body;
        }
        let left = Mutex::new(Some(Unsent { pieces: Pieces::of(body), waker: None }));
        let reply = Arc::new(HeldReply { left, progress: Progress::new(self.replies.now_s()) });
        self.replies.add(&reply);
        ReplyBody::Service(Box::new(ServiceBody { reply, of: self.clone() }))
    }

    /// Lets go of the answers that were not asked for anything for so long. Returns how many.
    pub(super) fn let_go(&self, patience_s: u64) -> u64 {
        let now_s = self.replies.now_s();
        let is_late = |reply: &Arc<HeldReply>| !reply.progress.is_idle() && reply.progress.is_late(now_s, patience_s);
        let mut count = 0;
        for reply in self.replies.alive().into_iter().filter(is_late) {
            // Dropped outside of the lock: the end of a stream may take other locks.
            let unsent = lock(&reply.left).take();
            count += u64::from(unsent.is_some());
            if let Some(Unsent { waker: Some(waker), .. }) = unsent {
                waker.wake();
            }
        }
        count
    }
}

/// The body of an answer of a service, which is let go if nothing asks for it.
pub struct ServiceBody {
    reply: Arc<HeldReply>,
    of: Arc<ServiceReplies>,
}

impl fmt::Debug for ServiceBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBody").finish_non_exhaustive()
    }
}

impl ServiceBody {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.reply.progress.made(self.of.replies.now_s());
        let mut left = lock(&self.reply.left);
        let Some(Unsent { pieces, waker }) = &mut *left else {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, NotRead))));
        };
        if let Some(other) = pieces.fill(cx, &self.reply.progress) {
            if other.is_pending() {
                *waker = Some(cx.waker().clone());
            }
            return other;
        }
        if pieces.rest.len() <= PROGRESS_BYTES_MIN {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut pieces.rest)))));
        }
        // A copy, because a part of the answer that HTTP holds would keep the whole of it.
        let piece = Bytes::copy_from_slice(&pieces.rest[..PROGRESS_BYTES_MIN]);
        pieces.rest.advance(PROGRESS_BYTES_MIN);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    pub(crate) fn is_done(&self) -> bool {
        lock(&self.reply.left).as_ref().is_some_and(|left| left.pieces.is_done())
    }

    pub(crate) fn hint(&self) -> SizeHint {
        lock(&self.reply.left).as_ref().map_or_else(SizeHint::default, |left| left.pieces.hint())
    }
}
