//! Answers that clients do not read. Over HTTP/1.1 the socket sees it: nothing more can be written ([`WriteStall`]). Over
//! HTTP/2 the connection goes on while a client gives single streams no window, so each answer notes when its client last took
//! something of it ([`UnreadBody`]), and one loop for all connections ends those with an answer that stands still
//! ([`UnreadWatch`]).
//!
//! The connections of a service in an application are the application's ([`ServiceReplies`]), so nothing here can end them or see
//! what their sockets take. But HTTP asks a body for its next piece only when there is room for it: an answer is handed on in
//! pieces, and one that is not asked for its next piece in time is let go. Its memory, its place among the streams and what it
//! counts in the budgets are free then, and the connection breaks off at the next attempt to go on.
//!
//! Both have a list of the answers that are not read to their end ([`Watched`]), when the client of each last took something
//! ([`Progress`]), and the body in pieces ([`Pieces`]). Time is counted by how often the loop has looked ([`Looks`]), so that no piece
//! has to read the clock.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// How often the loop looks in the time after which an answer counts as not read.
const LOOKS: u32 = 4;

/// Sees that a socket takes no more bytes. The clock runs from the first write that has to wait until everything is written,
/// and begins again with every [`PROGRESS_BYTES_MIN`] bytes.
pub(crate) struct WriteStall {
    patience: Duration,
    written: usize,
    is_waiting: bool,
    /// Made when a write first has to wait, which few connections ever see.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteStall {
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, written: 0, is_waiting: false, timer: None }
    }

    /// What comes of a write, which may have waited too long.
    pub(crate) fn write(&mut self, wrote: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
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

    pub(crate) fn flush(&mut self, flushed: Poll<io::Result<()>>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
pub(crate) fn is_late(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotRead>())
}

/// All HTTP/2 connections, for the loop that looks after them.
pub(crate) struct UnreadWatch<B> {
    looks: Looks,
    connections: Watched<UnreadReplies>,
    /// The answers of a service in an application.
    pub(crate) of_service: Arc<ServiceReplies<B>>,
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

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> UnreadWatch<B> {
    pub(crate) fn new() -> Self {
        let looks = Looks::default();
        let of_service = Arc::new(ServiceReplies { replies: Watched::new(looks.clone()) });
        Self { connections: Watched::new(looks.clone()), looks, of_service, ended: AtomicU64::new(0) }
    }

    /// A connection that is watched as long as the returned value lives.
    pub(crate) fn connection(&self, ends: CancellationToken) -> Arc<UnreadReplies> {
        let connection = Arc::new(UnreadReplies { replies: Watched::new(self.looks.clone()), ends });
        self.connections.add(&connection);
        connection
    }

    /// Looks after all connections for ever.
    pub(crate) async fn run(self: Arc<Self>, patience: Duration) {
        loop {
            sleep(patience / LOOKS).await;
            self.look();
        }
    }

    fn look(&self) {
        self.looks.one_more();
        self.ended.fetch_add(self.of_service.let_go(), Relaxed);
        for connection in self.connections.alive() {
            if !connection.ends.is_cancelled() && connection.stands_still() {
                self.ended.fetch_add(1, Relaxed);
                connection.ends.cancel();
            }
        }
    }
}

impl UnreadReplies {
    /// The body of an answer, watched.
    pub(crate) fn watch<B: Body<Data = Bytes, Error = io::Error> + Unpin>(&self, body: B) -> UnreadBody<B> {
        let progress = Progress::new(&self.replies.looks);
        let reply = Arc::new(ReadProgress { pieces: AtomicU32::new(0), progress });
        self.replies.add(&reply);
        UnreadBody { pieces: Pieces::of(body), reply }
    }

    fn stands_still(&self) -> bool {
        self.replies.alive().iter().any(|reply| {
            let waits = reply.pieces.load(Relaxed) > 0 || !reply.progress.is_idle();
            waits && reply.progress.is_late()
        })
    }
}

/// The body of an answer that notes when its client takes something of it.
pub struct UnreadBody<B> {
    pieces: Pieces<B>,
    reply: Arc<ReadProgress>,
}

impl<B> fmt::Debug for UnreadBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnreadBody").finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> UnreadBody<B> {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Self { pieces, reply } = self;
        reply.progress.made();
        if let Some(other) = pieces.fill(cx, &reply.progress) {
            return other;
        }
        let bytes = pieces.rest.split_to(pieces.rest.len().min(PROGRESS_BYTES_MIN));
        reply.pieces.fetch_add(1, Relaxed);
        let piece = Piece { bytes, reply: reply.clone() };
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
        self.reply.progress.made();
    }
}

/// The answers of a service that are not read to their end.
pub(crate) struct ServiceReplies<B> {
    replies: Watched<HeldReply<B>>,
}

struct HeldReply<B> {
    /// None once it was let go.
    left: Mutex<Option<Unsent<B>>>,
    progress: Progress,
}

struct Unsent<B> {
    pieces: Pieces<B>,
    /// Who waits for the next piece.
    waker: Option<Waker>,
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> ServiceReplies<B> {
    /// The body of an answer, watched.
    pub(crate) fn watch(&self, body: B) -> ServiceBody<B> {
        let left = Mutex::new(Some(Unsent { pieces: Pieces::of(body), waker: None }));
        let reply = Arc::new(HeldReply { left, progress: Progress::new(&self.replies.looks) });
        self.replies.add(&reply);
        ServiceBody { reply }
    }

    /// Lets go of the answers that were not asked for anything for so long. Returns how many.
    fn let_go(&self) -> u64 {
        let is_late = |reply: &Arc<HeldReply<B>>| !reply.progress.is_idle() && reply.progress.is_late();
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
pub struct ServiceBody<B> {
    reply: Arc<HeldReply<B>>,
}

impl<B> fmt::Debug for ServiceBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBody").finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> ServiceBody<B> {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.reply.progress.made();
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

/// How much of an answer a client takes, at least, in the time after which it counts as not reading. It is also the size of the
/// pieces in which answers are handed to HTTP/2: that of its usual frame.
pub(crate) const PROGRESS_BYTES_MIN: usize = 16 << 10;

/// Lists shorter than this are not searched for what is gone.
const TIDY_FROM: usize = 64;

/// Why an answer was given up.
#[derive(Debug)]
struct NotRead;

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read its answer")
    }
}

impl std::error::Error for NotRead {}

/// How often the loop has looked.
#[derive(Clone, Default)]
struct Looks(Arc<AtomicU32>);

impl Looks {
    fn one_more(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn so_far(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// What is watched for as long as something else keeps it.
struct Watched<T> {
    looks: Looks,
    list: Mutex<WatchList<T>>,
}

struct WatchList<T> {
    entries: Vec<Weak<T>>,
    /// How long the list grows before those that are gone are removed: to twice its length after the last time.
    tidy_at: usize,
}

impl<T> Watched<T> {
    fn new(looks: Looks) -> Self {
        Self { looks, list: Mutex::new(WatchList { entries: Vec::new(), tidy_at: TIDY_FROM }) }
    }

    fn add(&self, entry: &Arc<T>) {
        let mut list = lock(&self.list);
        if list.entries.len() >= list.tidy_at {
            list.entries.retain(|entry| entry.strong_count() > 0);
            list.tidy_at = (list.entries.len() * 2).max(TIDY_FROM);
        }
        list.entries.push(Arc::downgrade(entry));
    }

    /// Those that are still there.
    fn alive(&self) -> Vec<Arc<T>> {
        let mut list = lock(&self.list);
        list.entries.retain(|entry| entry.strong_count() > 0);
        list.entries.iter().filter_map(Weak::upgrade).collect()
    }
}

/// When the client of an answer last took something of it.
struct Progress {
    /// Whether the body has nothing to send now.
    is_idle: AtomicBool,
    looks: Looks,
    /// After how many looks.
    at_look: AtomicU32,
}

impl Progress {
    fn new(looks: &Looks) -> Self {
        let at_look = AtomicU32::new(looks.so_far());
        Self { is_idle: AtomicBool::new(false), looks: looks.clone(), at_look }
    }

    fn made(&self) {
        self.at_look.store(self.looks.so_far(), Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.is_idle.load(Relaxed)
    }

    /// Whether there was none for all the time that a client has. The first look after it may have come at once, so it does not count.
    fn is_late(&self) -> bool {
        self.looks.so_far().wrapping_sub(self.at_look.load(Relaxed)) > LOOKS
    }
}

/// A body that is handed on in pieces.
struct Pieces<B> {
    body: B,
    /// What of the body's last frame was not handed on yet.
    rest: Bytes,
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> Pieces<B> {
    fn of(body: B) -> Self {
        Self { body, rest: Bytes::new() }
    }

    /// Asks the body for its next bytes if none are left. None if there are some in `rest`; otherwise what the body says in
    /// place of bytes.
    fn fill(&mut self, cx: &mut Context<'_>, progress: &Progress) -> Option<Poll<Option<io::Result<Frame<Bytes>>>>> {
        if !self.rest.is_empty() {
            return None;
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        progress.is_idle.store(polled.is_pending(), Relaxed);
        match polled {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(bytes) => {
                    self.rest = bytes;
                    None
                }
                Err(trailers) => Some(Poll::Ready(Some(Ok(trailers)))),
            },
            other => Some(other),
        }
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.body.size_hint());
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
