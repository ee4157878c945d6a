//! What answers that are watched have in common, whoever has the connection: a list of those that are not read to their end
//! ([`Watched`]), when the client of each last took something ([`Progress`]), and the body in pieces ([`Pieces`]).

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::server::edge::respond::ReplyBody;

/// How much of an answer a client takes, at least, in the time after which it counts as not reading. It is also the size of the
/// pieces in which answers are handed to HTTP/2: that of its usual frame.
pub(super) const PROGRESS_BYTES_MIN: usize = 16 << 10;

/// Lists shorter than this are not searched for what is gone.
const TIDY_FROM: usize = 64;

/// Why an answer was given up.
#[derive(Debug)]
pub(super) struct NotRead;

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read its answer")
    }
}

impl std::error::Error for NotRead {}

/// What is watched for as long as something else keeps it.
pub(super) struct Watched<T> {
    since: Instant,
    list: Mutex<WatchList<T>>,
}

struct WatchList<T> {
    entries: Vec<Weak<T>>,
    /// How long the list grows before those that are gone are removed: to twice its length after the last time.
    tidy_at: usize,
}

impl<T> Watched<T> {
    /// `since` is when the server began.
    pub(super) fn new(since: Instant) -> Self {
        Self { since, list: Mutex::new(WatchList { entries: Vec::new(), tidy_at: TIDY_FROM }) }
    }

    /// The seconds since the server began.
    pub(super) fn now_s(&self) -> u32 {
        u32::try_from(self.since.elapsed().as_secs()).unwrap_or(u32::MAX)
    }

    pub(super) fn add(&self, entry: &Arc<T>) {
        let mut list = lock(&self.list);
        if list.entries.len() >= list.tidy_at {
            list.entries.retain(|entry| entry.strong_count() > 0);
            list.tidy_at = (list.entries.len() * 2).max(TIDY_FROM);
        }
        list.entries.push(Arc::downgrade(entry));
    }

    /// Those that are still there.
    pub(super) fn alive(&self) -> Vec<Arc<T>> {
        let mut list = lock(&self.list);
        list.entries.retain(|entry| entry.strong_count() > 0);
        list.entries.iter().filter_map(Weak::upgrade).collect()
    }
}

/// When the client of an answer last took something of it.
pub(super) struct Progress {
    /// Whether the body has nothing to send now.
    is_idle: AtomicBool,
    /// In seconds since the server began.
    at_s: AtomicU32,
}

impl Progress {
    pub(super) fn new(now_s: u32) -> Self {
        Self { is_idle: AtomicBool::new(false), at_s: AtomicU32::new(now_s) }
    }

    pub(super) fn made(&self, now_s: u32) {
        self.at_s.store(now_s, Relaxed);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.is_idle.load(Relaxed)
    }

    /// Whether there was none for so long.
    pub(super) fn is_late(&self, now_s: u32, patience_s: u64) -> bool {
        u64::from(now_s.saturating_sub(self.at_s.load(Relaxed))) > patience_s
    }
}

/// A body that is handed on in pieces.
pub(super) struct Pieces {
    body: ReplyBody,
    /// What of the body's last frame was not handed on yet.
    pub(super) rest: Bytes,
}

impl Pieces {
    pub(super) fn of(body: ReplyBody) -> Self {
        Self { body, rest: Bytes::new() }
    }

    /// Asks the body for its next bytes if none are left. None if there are some in `rest`; otherwise what the body says in
    /// place of bytes.
    pub(super) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        progress: &Progress,
    ) -> Option<Poll<Option<io::Result<Frame<Bytes>>>>> {
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

    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    pub(super) fn hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
