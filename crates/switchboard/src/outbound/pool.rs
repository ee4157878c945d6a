//! Connections that are kept for the next call. Each was dialled under the policy, to an address that was checked, and
//! stays with that address for as long as it lives; a new one is resolved and checked anew.
//!
//! A kept connection is not polled while it is idle, so nothing runs in the background: `take` checks whether it is
//! still open. The pool of `hyper_util::client::legacy` does not replace this one, because it bounds idle connections per
//! host only, while clients choose the hosts of webhooks, and because it spawns a task for each connection.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use tokio::time::Instant;

use super::connector::Stream;
use super::error::shown_authority;

/// Idle connections kept in all, and to one endpoint.
const IDLE_MAX: usize = 1_024;
const IDLE_PER_ENDPOINT_MAX: usize = 256;
/// Endpoints that are remembered; beyond that, those without an idle connection are forgotten.
const ENDPOINTS_MAX: usize = 2 * IDLE_MAX;
/// How long one is kept.
const IDLE: Duration = Duration::from_secs(30);

/// An open connection and both of its ends. It is handed on in a box, because each call moves it several times.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: Driver,
    /// What its requests name as `Host`.
    host: HeaderValue,
}

/// What moves the bytes. None once the connection has ended: dropping it tells the sender and the body that nothing more comes.
type Driver = Option<http1::Connection<Stream, Full<Bytes>>>;

impl Connection {
    pub(super) fn new(
        sender: SendRequest<Full<Bytes>>,
        connection: http1::Connection<Stream, Full<Bytes>>,
        host: HeaderValue,
    ) -> Box<Self> {
        Box::new(Self { sender, driver: Some(connection), host })
    }

    /// Sends a request and waits for the head of the answer. The error has the request if nothing of it was written.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        request.headers_mut().insert(HOST, self.host.clone());
        let answer = self.sender.try_send_request(request);
        drive(&mut self.driver, answer).await
    }

    /// Waits for something that needs the connection to go on.
    pub(super) async fn drive<F: Future>(&mut self, waited_for: F) -> F::Output {
        drive(&mut self.driver, waited_for).await
    }

    /// Whether another request can be sent. To be asked when the answer before was read to its end.
    async fn is_free(&mut self) -> bool {
        drive(&mut self.driver, self.sender.ready()).await.is_ok()
    }

    /// Whether it is still open as far as can be told without waiting.
    async fn is_open(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(poll_driver(&mut self.driver, cx))).await && self.sender.is_ready()
    }
}

async fn drive<F: Future>(driver: &mut Driver, waited_for: F) -> F::Output {
    let mut waited_for = std::pin::pin!(waited_for);
    poll_fn(|cx| {
        if let Poll::Ready(output) = waited_for.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        poll_driver(driver, cx);
        // The connection may have brought what is waited for, or the news that it will not come.
        waited_for.as_mut().poll(cx)
    })
    .await
}

/// Moves the connection on; says whether it is still open.
fn poll_driver(driver: &mut Driver, cx: &mut Context<'_>) -> bool {
    if driver.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready()) {
        *driver = None;
    }
    driver.is_some()
}

/// Scheme, host and port, letter by letter as the URL has them: a host that is written in two ways has connections of each.
#[derive(Clone)]
pub(super) struct Key(Scheme, Authority);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && self.1.as_str() == other.1.as_str()
    }
}

impl Eq for Key {}

/// By the host and port alone, all at once: `Authority` itself is hashed byte by byte.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.1.as_str().as_bytes());
    }
}

impl Key {
    /// The host and port, for the texts of errors.
    pub(super) fn shown_host(&self) -> String {
        shown_authority(self.1.as_str())
    }

    /// None if the URL is not absolute; those are refused before.
    pub(super) fn of(uri: &Uri) -> Option<Self> {
        Some(Self(uri.scheme()?.clone(), uri.authority()?.clone()))
    }
}

/// The idle connections of one client.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Each endpoint's, the one used last at the back. An endpoint whose connections are all in use has an empty list for a while.
    connections: HashMap<Key, VecDeque<(Instant, Box<Connection>)>>,
    count: usize,
}

impl Pool {
    /// A kept connection that is still open.
    pub(super) async fn take(&self, key: &Key) -> Option<Box<Connection>> {
        loop {
            let mut connection = self.lock().take(key, Instant::now().checked_sub(IDLE))?;
            if connection.is_open().await {
                return Some(connection);
            }
        }
    }

    /// Keeps a connection whose last answer was read to its end, if it can be used again.
    pub(super) async fn give(&self, key: Key, mut connection: Box<Connection>) {
        if connection.is_free().await {
            self.lock().give(key, connection);
        }
    }

    /// Closes what has been idle for long.
    pub(super) fn close_idle(&self) {
        self.lock().forget_before(Instant::now().checked_sub(IDLE));
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.lock().count
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Idle {
    /// The one used last, unless it is older than `moment`; then all of them are, and they are closed.
    fn take(&mut self, key: &Key, moment: Option<Instant>) -> Option<Box<Connection>> {
        let connections = self.connections.get_mut(key)?;
        let (since, connection) = connections.pop_back()?;
        self.count -= 1;
        let is_old = moment.is_some_and(|moment| since < moment);
        if is_old {
            self.count -= connections.len();
            connections.clear();
        }
        (!is_old).then_some(connection)
    }

    fn give(&mut self, key: Key, connection: Box<Connection>) {
        if self.count >= IDLE_MAX {
            self.drop_oldest();
        }
        if self.connections.len() >= ENDPOINTS_MAX {
            self.connections.retain(|_, connections| !connections.is_empty());
        }
        let connections = self.connections.entry(key).or_default();
        if connections.len() < IDLE_PER_ENDPOINT_MAX {
            connections.push_back((Instant::now(), connection));
            self.count += 1;
        }
    }

    fn drop_oldest(&mut self) {
        let first = |connections: &VecDeque<(Instant, Box<Connection>)>| connections.front().map(|(since, _)| *since);
        let kept = self.connections.iter().filter(|(_, connections)| !connections.is_empty());
        let oldest = kept.min_by_key(|(_, connections)| first(connections)).map(|(key, _)| key.clone());
        let Some(connections) = oldest.as_ref().and_then(|key| self.connections.get_mut(key)) else { return };
        connections.pop_front();
        self.count -= 1;
        if let Some(key) = oldest.filter(|_| connections.is_empty()) {
            self.connections.remove(&key);
        }
    }

    fn forget_before(&mut self, moment: Option<Instant>) {
        let Some(moment) = moment else { return };
        self.connections.retain(|_, connections| {
            let before = connections.len();
            while connections.front().is_some_and(|(since, _)| *since < moment) {
                connections.pop_front();
            }
            self.count -= before - connections.len();
            !connections.is_empty()
        });
    }
}
