//! Answers that clients do not read. Over HTTP/1.1 the socket sees it: nothing more can be written ([`WriteStall`]). Over
//! HTTP/2 the connection goes on while a client gives single streams no window, so each answer notes when its client last took
//! something of it ([`UnreadBody`]), and one loop for all connections ends those with an answer that stands still
//! ([`UnreadWatch`]). The connections of an application are not ours: for those see `unread_service`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::read_progress::{NotRead, PROGRESS_BYTES_MIN, Pieces, Progress, Watched};
use super::unread_service::ServiceReplies;
use crate::server::edge::respond::ReplyBody;

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

/// All HTTP/2 connections, for the loop that looks after them.
pub(crate) struct UnreadWatch {
    since: Instant,
    connections: Watched<UnreadReplies>,
    /// The answers of a service in an application.
    pub(crate) of_service: Arc<ServiceReplies>,
    /// Connections that were ended because an answer was not read, and answers of a service that were let go.
    pub(crate) ended: AtomicU64,
}

/// The answers of one connection that are not read to their end.
pub(crate) struct UnreadReplies {
    replies: Watched<ReadProgress>,
    /// Ends the connection.
    ends: CancellationToken,
}

struct ReadProgress {
    /// Pieces that HTTP/2 holds.
    pieces: AtomicU32,
    progress: Progress,
}

impl UnreadWatch {
    pub(crate) fn new() -> Self {
        let since = Instant::now();
        let of_service = Arc::new(ServiceReplies::new(since));
        Self { since, connections: Watched::new(since), of_service, ended: AtomicU64::new(0) }
    }

    /// A connection that is watched as long as the returned value lives.
    pub(crate) fn connection(&self, ends: CancellationToken) -> Arc<UnreadReplies> {
        let connection = Arc::new(UnreadReplies { replies: Watched::new(self.since), ends });
        self.connections.add(&connection);
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
        for connection in self.connections.alive() {
            if !connection.ends.is_cancelled() && connection.stands_still(patience) {
                self.ended.fetch_add(1, Relaxed);
                connection.ends.cancel();
            }
        }
    }
}

impl UnreadReplies {
    /// The body of an answer, watched.
    pub(crate) fn watch(self: &Arc<Self>, body: ReplyBody) -> ReplyBody {
        if body.is_end_stream() {
            return body;
        }
        let progress = Progress::new(self.replies.now_s());
        let reply = Arc::new(ReadProgress { pieces: AtomicU32::new(0), progress });
        self.replies.add(&reply);
        ReplyBody::Unread(Box::new(UnreadBody { pieces: Pieces::of(body), of: self.clone(), reply }))
    }

    fn stands_still(&self, patience: Duration) -> bool {
        let (now_s, patience_s) = (self.replies.now_s(), patience.as_secs());
        self.replies.alive().iter().any(|reply| {
            let waits = reply.pieces.load(Relaxed) > 0 || !reply.progress.is_idle();
            waits && reply.progress.is_late(now_s, patience_s)
        })
    }
}

/// The body of an answer that notes when its client takes something of it.
pub struct UnreadBody {
    pieces: Pieces,
    of: Arc<UnreadReplies>,
    reply: Arc<ReadProgress>,
}

impl fmt::Debug for UnreadBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadBody").finish_non_exhaustive()
    }
}

impl UnreadBody {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { pieces, of, reply } = self;
        reply.progress.made(of.replies.now_s());
        if let Some(other) = pieces.fill(cx, &reply.progress) {
            return other;
        }
        let bytes = pieces.rest.split_to(pieces.rest.len().min(PROGRESS_BYTES_MIN));
        reply.pieces.fetch_add(1, Relaxed);
        let piece = Piece { bytes, of: of.clone(), reply: reply.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.pieces.is_done()
    }

    pub(crate) fn hint(&self) -> SizeHint {
        self.pieces.hint()
    }
}

struct Piece {
    bytes: Bytes,
    of: Arc<UnreadReplies>,
    reply: Arc<ReadProgress>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.reply.pieces.fetch_sub(1, Relaxed);
        self.reply.progress.made(self.of.replies.now_s());
    }
}
