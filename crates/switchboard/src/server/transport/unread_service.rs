//! Answers that clients do not read, of a service in an application. The connections are the application's, so nothing here can
//! end them or see what their sockets take. But HTTP asks a body for its next piece only when there is room for it: an answer is
//! handed on in pieces, and one that is not asked for its next piece in time is let go. Its memory, its place among the streams
//! and what it counts in the budgets are free then, and the connection breaks off at the next attempt to go on.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::unread::{NotRead, PROGRESS_BYTES_MIN};
use crate::server::edge::respond::ReplyBody;

/// The answers of a service that are not read to their end.
pub(crate) struct ServiceReplies {
    since: Instant,
    /// Those that are gone are removed when the list has doubled.
    replies: Mutex<(Vec<Weak<HeldReply>>, usize)>,
}

struct HeldReply {
    /// None once it was let go.
    left: Mutex<Option<Unsent>>,
    /// Whether the body has nothing to send now.
    is_idle: AtomicBool,
    /// When it was last asked for something, in seconds since the server began.
    at_s: AtomicU32,
}

struct Unsent {
    body: ReplyBody,
    /// What of the body's last piece was not handed on yet.
    rest: Bytes,
    /// Who waits for the next piece.
    waker: Option<Waker>,
}

impl ServiceReplies {
    pub(crate) fn new(since: Instant) -> Self {
        Self { since, replies: Mutex::default() }
    }

    /// The body of an answer, watched unless it is small.
    pub(crate) fn watch(self: &Arc<Self>, body: ReplyBody) -> ReplyBody {
        if body.is_end_stream() || matches!(&body, ReplyBody::Whole(bytes) if bytes.len() <= PROGRESS_BYTES_MIN) {
            return body;
        }
        let left = Mutex::new(Some(Unsent { body, rest: Bytes::new(), waker: None }));
        let at_s = AtomicU32::new(self.now_s());
        let reply = Arc::new(HeldReply { left, is_idle: AtomicBool::new(false), at_s });
        let mut replies = lock(&self.replies);
        let (replies, tidy_at) = &mut *replies;
        if replies.len() >= (*tidy_at).max(64) {
            replies.retain(|reply| reply.strong_count() > 0);
            *tidy_at = replies.len() * 2;
        }
        replies.push(Arc::downgrade(&reply));
        ReplyBody::Service(Box::new(ServiceBody { reply, of: self.clone() }))
    }

    fn now_s(&self) -> u32 {
        u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    /// Lets go of the answers that were not asked for anything for so long. Returns how many.
    pub(super) fn let_go(&self, patience_s: u64) -> u64 {
        let now_s = u64::from(self.now_s());
        let late: Vec<Arc<HeldReply>> = {
            let mut replies = lock(&self.replies);
            replies.0.retain(|reply| reply.strong_count() > 0);
            let alive = replies.0.iter().filter_map(Weak::upgrade);
            alive
                .filter(|reply| {
                    let waits = !reply.is_idle.load(Relaxed);
                    waits && now_s.saturating_sub(reply.at_s.load(Relaxed).into()) > patience_s
                })
                .collect()
        };
        let mut count = 0;
        for reply in late {
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
        self.reply.at_s.store(self.of.now_s(), Relaxed);
        let mut left = lock(&self.reply.left);
        let Some(unsent) = &mut *left else {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, NotRead))));
        };
        if unsent.rest.is_empty() {
            let polled = Pin::new(&mut unsent.body).poll_frame(cx);
            self.reply.is_idle.store(polled.is_pending(), Relaxed);
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => unsent.rest = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Poll::Pending => {
                    unsent.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                ended @ Poll::Ready(_) => return ended,
            }
        }
        if unsent.rest.len() <= PROGRESS_BYTES_MIN {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut unsent.rest)))));
        }
        // A copy, because a part of the answer that HTTP holds would keep the whole of it.
        let piece = Bytes::copy_from_slice(&unsent.rest[..PROGRESS_BYTES_MIN]);
        unsent.rest.advance(PROGRESS_BYTES_MIN);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    pub(crate) fn is_done(&self) -> bool {
        lock(&self.reply.left).as_ref().is_some_and(|left| left.rest.is_empty() && left.body.is_end_stream())
    }

    pub(crate) fn hint(&self) -> SizeHint {
        let left = lock(&self.reply.left);
        let Some(left) = &*left else { return SizeHint::default() };
        let (rest, inner) = (left.rest.len() as u64, left.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
