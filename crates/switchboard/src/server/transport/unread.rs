//! Answers that clients do not read. Over HTTP/1.1 the socket sees it: nothing more can be written ([`WriteStall`]). Over
//! HTTP/2 the connection goes on while a client gives single streams no window, so each answer notes when its client last took
//! something of it ([`UnreadBody`]), and one loop for all connections ends those with an answer that stands still
//! ([`UnreadWatch`]). The connections of an application are not ours: for those see `unread_service`.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::unread_service::ServiceReplies;
use crate::server::edge::respond::ReplyBody;

/// How much of an answer a client takes, at least, in the time after which it counts as not reading. It is also the size of the
/// pieces in which answers are handed to HTTP/2: that of its usual frame.
pub(super) const PROGRESS_BYTES_MIN: usize = 16 << 10;

/// How often the loop looks, in parts of that time.
const LOOKS: u32 = 4;

/// Sees that a socket takes no more bytes. The clock runs from the first write that has to wait until everything is written,
/// and begins again with every [`PROGRESS_BYTES_MIN`] bytes.
pub(super) struct WriteStall {
    patience: Duration,
    written: usize,
    is_waiting: bool,
    /// Made when a write first has to wait, which few connections ever see.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteStall {
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, written: 0, is_waiting: false, timer: None }
    }

    /// What comes of a write, which may have waited too long.
    pub(super) fn write(&mut self, wrote: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match wrote {
            Poll::Ready(Ok(bytes)) if self.is_waiting => {
                self.written += bytes;
                if self.written >= PROGRESS_BYTES_MIN {
                    self.is_waiting = false;
                }
                wrote
            }
            Poll::Ready(_) => wrote,
            Poll::Pending => self.poll_late(cx).map(Err),
        }
    }

    pub(super) fn flush(&mut self, flushed: Poll<io::Result<()>>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match flushed {
            Poll::Ready(_) => {
                self.is_waiting = false;
                flushed
            }
            Poll::Pending => self.poll_late(cx).map(Err),
        }
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !self.is_waiting {
            self.is_waiting = true;
            self.written = 0;
            timer.as_mut().reset(Instant::now() + patience);
        }
        timer.as_mut().poll(cx).map(|()| io::Error::new(io::ErrorKind::TimedOut, NotRead))
    }
}

/// Whether a write failed because its client did not read.
pub(super) fn is_late(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotRead>())
}

#[derive(Debug)]
pub(super) struct NotRead;

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read its answer")
    }
}

impl std::error::Error for NotRead {}

/// All HTTP/2 connections, for the loop that looks after them.
pub(crate) struct UnreadWatch {
    since: Instant,
    connections: Mutex<Vec<Weak<UnreadReplies>>>,
    /// The answers of a service in an application.
    pub(crate) of_service: Arc<ServiceReplies>,
    /// Connections that were ended because an answer was not read, and answers of a service that were let go.
    pub(crate) ended: AtomicU64,
}

/// The answers of one connection that are not read to their end.
pub(crate) struct UnreadReplies {
    since: Instant,
    /// Those that are gone are removed when the list has doubled.
    replies: Mutex<(Vec<Arc<ReadProgress>>, usize)>,
    /// Ends the connection.
    ends: CancellationToken,
}

struct ReadProgress {
    /// Pieces that HTTP/2 holds.
    pieces: AtomicU32,
    /// Whether the body has nothing to send now.
    is_idle: AtomicBool,
    /// When the client last took something, in seconds since the server began.
    at_s: AtomicU32,
}

impl UnreadWatch {
    pub(crate) fn new() -> Self {
        let since = Instant::now();
        let of_service = Arc::new(ServiceReplies::new(since));
        Self { since, connections: Mutex::default(), of_service, ended: AtomicU64::new(0) }
    }

    /// A connection that is watched as long as the returned value lives.
    pub(crate) fn connection(&self, ends: CancellationToken) -> Arc<UnreadReplies> {
        let connection = Arc::new(UnreadReplies { since: self.since, replies: Mutex::default(), ends });
        lock(&self.connections).push(Arc::downgrade(&connection));
        connection
    }

    /// Looks after all connections for ever.
    pub(crate) async fn run(self: Arc<Self>, patience: Duration) {
        loop {
            sleep((patience / LOOKS).max(Duration::from_millis(250))).await;
            self.look(patience);
        }
    }

    fn look(&self, patience: Duration) {
        self.ended.fetch_add(self.of_service.let_go(patience.as_secs()), Relaxed);
        let mut alive = Vec::new();
        lock(&self.connections).retain(|known| {
            let connection = known.upgrade();
            let is_alive = connection.is_some();
            alive.extend(connection);
            is_alive
        });
        for connection in alive {
            if !connection.ends.is_cancelled() && connection.stands_still(patience) {
                self.ended.fetch_add(1, Relaxed);
                connection.ends.cancel();
            }
        }
    }
}

impl UnreadReplies {
    fn now_s(&self) -> u32 {
        u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    /// The body of an answer, watched.
    pub(crate) fn watch(self: &Arc<Self>, body: ReplyBody) -> ReplyBody {
        if body.is_end_stream() {
            return body;
        }
        let at_s = AtomicU32::new(self.now_s());
        let progress = ReadProgress { pieces: AtomicU32::new(0), is_idle: AtomicBool::new(false), at_s };
        let progress = Arc::new(progress);
        let mut replies = lock(&self.replies);
        let (replies, tidy_at) = &mut *replies;
        if replies.len() >= (*tidy_at).max(64) {
            replies.retain(|reply| Arc::strong_count(reply) > 1);
            *tidy_at = replies.len() * 2;
        }
        replies.push(progress.clone());
        ReplyBody::Unread(Box::new(UnreadBody { body, rest: Bytes::new(), of: self.clone(), progress }))
    }

    fn stands_still(&self, patience: Duration) -> bool {
        let (now_s, patience_s) = (u64::from(self.now_s()), patience.as_secs());
        let mut replies = lock(&self.replies);
        replies.0.retain(|reply| Arc::strong_count(reply) > 1);
        replies.0.iter().any(|reply| {
            let waits = reply.pieces.load(Relaxed) > 0 || !reply.is_idle.load(Relaxed);
            waits && now_s.saturating_sub(reply.at_s.load(Relaxed).into()) > patience_s
        })
    }
}

/// The body of an answer that notes when its client takes something of it.
pub struct UnreadBody {
    body: ReplyBody,
    /// What of the body's last piece was not handed on yet.
    rest: Bytes,
    of: Arc<UnreadReplies>,
    progress: Arc<ReadProgress>,
}

impl fmt::Debug for UnreadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadBody").finish_non_exhaustive()
    }
}

impl UnreadBody {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.progress.at_s.store(self.of.now_s(), Relaxed);
        if self.rest.is_empty() {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            self.progress.is_idle.store(polled.is_pending(), Relaxed);
            match polled {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => self.rest = bytes,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let piece = self.rest.split_to(self.rest.len().min(PROGRESS_BYTES_MIN));
        self.progress.pieces.fetch_add(1, Relaxed);
        let piece = Piece { bytes: piece, of: self.of.clone(), progress: self.progress.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    pub(crate) fn hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

struct Piece {
    bytes: Bytes,
    of: Arc<UnreadReplies>,
    progress: Arc<ReadProgress>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.progress.pieces.fetch_sub(1, Relaxed);
        self.progress.at_s.store(self.of.now_s(), Relaxed);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
