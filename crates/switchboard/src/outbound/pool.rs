//! Connections that are kept for the next post. Each was dialled under the policy, to an address that was checked, and
//! stays with that address for as long as it lives; a new one is resolved and checked anew.
//!
//! A kept connection is not polled while nobody uses it, so nothing has to run in the background: whoever takes it looks
//! whether it is still open.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Connection, SendRequest};
use tokio::time::Instant;

use super::connector::Stream;

/// Idle connections kept in all, and to one endpoint.
const IDLE_MAX: usize = 1_024;
const IDLE_PER_ENDPOINT_MAX: usize = 256;
/// How long one is kept.
const IDLE: Duration = Duration::from_secs(30);

/// An open connection and both of its ends.
pub(super) struct Line {
    sender: SendRequest<Full<Bytes>>,
    connection: Connection<Stream, Full<Bytes>>,
}

impl Line {
    pub(super) fn new(sender: SendRequest<Full<Bytes>>, connection: Connection<Stream, Full<Bytes>>) -> Self {
        Self { sender, connection }
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        let answer = self.sender.send_request(request);
        drive(&mut self.connection, answer).await
    }

    /// Waits for something that needs the connection to go on.
    pub(super) async fn drive<F: Future>(&mut self, waited_for: F) -> F::Output {
        drive(&mut self.connection, waited_for).await
    }

    /// Whether another request can be sent. To be asked when the answer before was read to its end.
    async fn is_free(&mut self) -> bool {
        let Self { sender, connection } = self;
        drive(connection, sender.ready()).await.is_ok()
    }

    /// Whether it is still open as far as can be told without waiting.
    async fn is_open(&mut self) -> bool {
        let ended = poll_fn(|cx| Poll::Ready(Pin::new(&mut self.connection).poll(cx).is_ready())).await;
        !ended && self.sender.is_ready()
    }
}

async fn drive<F: Future>(connection: &mut Connection<Stream, Full<Bytes>>, waited_for: F) -> F::Output {
    let mut waited_for = std::pin::pin!(waited_for);
    let mut ended = false;
    poll_fn(|cx| {
        if let Poll::Ready(output) = waited_for.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        if !ended && Pin::new(&mut *connection).poll(cx).is_ready() {
            ended = true;
        }
        // The connection may have brought what is waited for, or the news that it will not come.
        waited_for.as_mut().poll(cx)
    })
    .await
}

/// Scheme, host and port, as the URL has them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key(Scheme, Authority);

impl Key {
    /// None if the URL is not absolute; those are refused before.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        Some(Self(uri.scheme()?.clone(), uri.authority()?.clone()))
    }
}

#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Each endpoint's, the one used last at the back.
    lines: HashMap<Key, VecDeque<(Instant, Line)>>,
    count: usize,
}

impl Pool {
    /// A kept connection that is still open.
    pub(super) async fn take(&self, key: &Key) -> Option<Line> {
        loop {
            let mut line = self.lock().take(key)?;
            if line.is_open().await {
                return Some(line);
            }
        }
    }

    /// Keeps a connection whose last answer was read to its end, if it can be used again.
    pub(super) async fn give(&self, key: Key, mut line: Line) {
        if line.is_free().await {
            self.lock().give(key, line);
        }
    }

    /// Lets go of what has been idle for long.
    pub(super) fn tidy(&self) {
        self.lock().forget_before(Instant::now().checked_sub(IDLE));
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    fn take(&mut self, key: &Key) -> Option<Line> {
        let lines = self.lines.get_mut(key)?;
        let (_, line) = lines.pop_back()?;
        self.count -= 1;
        if lines.is_empty() {
            self.lines.remove(key);
        }
        Some(line)
    }

    fn give(&mut self, key: Key, line: Line) {
        if self.count >= IDLE_MAX {
            self.drop_oldest();
        }
        let lines = self.lines.entry(key).or_default();
        if lines.len() < IDLE_PER_ENDPOINT_MAX {
            lines.push_back((Instant::now(), line));
            self.count += 1;
        }
    }

    fn drop_oldest(&mut self) {
        let first = |lines: &VecDeque<(Instant, Line)>| lines.front().map(|(since, _)| *since);
        let oldest = self.lines.iter().min_by_key(|(_, lines)| first(lines)).map(|(key, _)| key.clone());
        let Some(lines) = oldest.as_ref().and_then(|key| self.lines.get_mut(key)) else { return };
        lines.pop_front();
        self.count -= 1;
        if let Some(key) = oldest.filter(|_| lines.is_empty()) {
            self.lines.remove(&key);
        }
    }

    fn forget_before(&mut self, moment: Option<Instant>) {
        let Some(moment) = moment else { return };
        self.lines.retain(|_, lines| {
            let before = lines.len();
            while lines.front().is_some_and(|(since, _)| *since < moment) {
                lines.pop_front();
            }
            self.count -= before - lines.len();
            !lines.is_empty()
        });
    }
}
