//! Calls over HTTP/2, for gRPC. Calls to one origin share a connection, which was dialled under the policy like any other; a further
//! one is opened only when it carries as many calls as it may.
//!
//! Each connection has a task of its own, unlike those of HTTP/1.1: the other side asks things of it also while no call is made, and a
//! server that wants to stop would wait for the answer. The task ends with the connection: when the other side closes it, when the
//! client is dropped, and when it has carried no call for a while.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Uri, Version, response};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::connector::{Connector, Io};
use super::error::{Error, ErrorKind, shown_host};
use super::limits::RequestLimits;
use super::pool::Key;
use super::target::host_and_port;

/// How much the other side may send on one call before it is read.
const WINDOW_BYTES_MAX: u32 = 1 << 20;
/// Calls on one connection; a further one opens another.
const CALLS_PER_CONNECTION_MAX: usize = 32;
/// How much the other side may send on one connection before it is read: enough for all of its calls, so that none waits because the
/// answer of another is not read.
const CONNECTION_WINDOW_BYTES_MAX: u32 = 32 << 20;
/// The headers, or trailers, of an answer.
const HEADERS_BYTES_MAX: u32 = 32 * 1_024;
/// Connections that are kept although they carry no call, in all, and for how long.
const IDLE_MAX: usize = 256;
const IDLE: Duration = Duration::from_secs(30);

type H2Connection = h2::client::Connection<Box<dyn Io>, Bytes>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections of one client.
#[derive(Default)]
pub(super) struct Http2Pool {
    origins: Mutex<HashMap<Key, Arc<Origin>>>,
}

/// The connections to one scheme, host and port.
#[derive(Default)]
struct Origin {
    connections: Mutex<Vec<Arc<Connection>>>,
    /// Held while one is dialled, so that calls which begin together share it.
    dialling: tokio::sync::Mutex<()>,
}

struct Connection {
    sender: SendRequest<Bytes>,
    calls: AtomicUsize,
    idle_since: Mutex<Instant>,
    /// Whether it takes no further calls: it was closed, or is about to be, or does not answer.
    is_retired: AtomicBool,
}

impl Http2Pool {
    /// Sends a request and waits for the head of the answer.
    pub(super) async fn send(
        &self,
        connector: &Connector,
        request: Request<Bytes>,
        limits: &RequestLimits,
    ) -> Result<(response::Parts, Http2Body), Error> {
        let uri = request.uri().clone();
        let invalid = |why| Error::unsent(ErrorKind::InvalidRequest, why);
        host_and_port(&uri).map_err(invalid)?;
        let key = Key::of(&uri).ok_or_else(|| invalid("URL has no host".to_owned()))?;
        let host = shown_host(&uri);
        let sending = self.send_now(connector, request, &uri, &key, &host, limits);
        let limit = [limits.head, limits.total].into_iter().flatten().min();
        match limit {
            Some(limit) => timeout_at(Instant::now() + limit, sending).await.map_err(|_| Error::late(&host, limit))?,
            None => sending.await,
        }
    }

    async fn send_now(
        &self,
        connector: &Connector,
        request: Request<Bytes>,
        uri: &Uri,
        key: &Key,
        host: &str,
        limits: &RequestLimits,
    ) -> Result<(response::Parts, Http2Body), Error> {
        loop {
            let origin = self.origin(key);
            let (call, was_there) = origin.connect(connector, uri, limits.connect).await?;
            let connection = call.connection.clone();
            match call.exchange(request.clone(), host, limits.idle).await {
                // Each time, one connection less is left, and a new one is not tried twice.
                Err(error) if was_there && !error.may_have_arrived() => connection.retire(),
                outcome => return outcome,
            }
        }
    }

    fn origin(&self, key: &Key) -> Arc<Origin> {
        let mut origins = lock(&self.origins);
        close_idle(&mut origins);
        origins.entry(key.clone()).or_default().clone()
    }

    /// Closes what has been idle for long.
    pub(super) fn close_idle(&self) {
        close_idle(&mut lock(&self.origins));
    }
}

/// Forgets connections that are closed or have been idle for long, and the oldest ones if too many are idle.
fn close_idle(origins: &mut HashMap<Key, Arc<Origin>>) {
    let now = Instant::now();
    let mut idle = Vec::new();
    for origin in origins.values() {
        lock(&origin.connections).retain(|connection| {
            let since = *lock(&connection.idle_since);
            let is_idle = connection.is_idle();
            if is_idle && connection.idle_until() <= now {
                connection.retire();
            }
            let is_kept = !connection.is_retired();
            if is_kept && is_idle {
                idle.push((since, connection.clone()));
            }
            is_kept
        });
    }
    if idle.len() > IDLE_MAX {
        idle.sort_by_key(|(since, _)| *since);
        let count = idle.len() - IDLE_MAX;
        idle.into_iter().take(count).for_each(|(_, connection)| connection.retire());
        for origin in origins.values() {
            lock(&origin.connections).retain(|connection| !connection.is_retired());
        }
    }
    // One that is being dialled, or waited for, is held elsewhere too.
    origins.retain(|_, origin| Arc::strong_count(origin) > 1 || !lock(&origin.connections).is_empty());
}

impl Origin {
    /// A connection that takes one more call.
    fn take(&self) -> Option<Call> {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.is_open());
        connections.iter().find_map(Call::begin)
    }

    /// A connection for a call, and whether it was there before.
    async fn connect(&self, connector: &Connector, uri: &Uri, limit: Duration) -> Result<(Call, bool), Error> {
        if let Some(call) = self.take() {
            return Ok((call, true));
        }
        let _dialling = self.dialling.lock().await;
        if let Some(call) = self.take() {
            return Ok((call, true));
        }
        let connection = Connection::open(connector, uri, limit).await?;
        let call = Call::begin(&connection);
        lock(&self.connections).push(connection);
        let full = || Error::unsent(ErrorKind::Broken, format!("{} takes no calls over HTTP/2", shown_host(uri)));
        call.map(|call| (call, false)).ok_or_else(full)
    }
}

impl Connection {
    #[expect(clippy::disallowed_methods, reason = "a task for each connection, which ends with it")]
    async fn open(connector: &Connector, uri: &Uri, limit: Duration) -> Result<Arc<Self>, Error> {
        let stream = connector.open_http2(uri, limit).await?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW_BYTES_MAX).initial_connection_window_size(CONNECTION_WINDOW_BYTES_MAX);
        builder.max_header_list_size(HEADERS_BYTES_MAX).enable_push(false);
        let shaken = builder.handshake(stream).await;
        let (sender, connection) = shaken.map_err(|error| failed(&shown_host(uri), &error).not_sent())?;
        let opened = Arc::new(Self {
            sender,
            calls: AtomicUsize::new(0),
            idle_since: Mutex::new(Instant::now()),
            is_retired: AtomicBool::new(false),
        });
        tokio::spawn(keep(connection, Arc::downgrade(&opened)));
        Ok(opened)
    }

    fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    /// Takes no further calls. Those that it carries go on.
    fn retire(&self) {
        self.is_retired.store(true, Ordering::SeqCst);
    }

    /// Whether it takes calls, as far as is known.
    fn is_open(&self) -> bool {
        let mut sender = self.sender.clone();
        if matches!(sender.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err(_))) {
            self.retire();
        }
        !self.is_retired()
    }

    /// Until when it is kept if no call is made.
    fn idle_until(&self) -> Instant {
        *lock(&self.idle_since) + IDLE
    }

    fn is_idle(&self) -> bool {
        self.calls.load(Ordering::SeqCst) == 0
    }
}

/// Moves a connection on until it is closed, is no longer in use by the client, or has carried no call for long.
async fn keep(connection: H2Connection, kept: Weak<Connection>) {
    let mut connection = std::pin::pin!(connection);
    let mut wake_at = Instant::now() + IDLE;
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => break,
            () = sleep_until(wake_at) => {}
        }
        let (now, kept) = (Instant::now(), kept.upgrade());
        wake_at = now + IDLE;
        // One that the client no longer holds is closed by itself as soon as its last call is over.
        let Some(kept) = kept.filter(|kept| kept.is_idle()) else { continue };
        if now < kept.idle_until() {
            wake_at = kept.idle_until();
            continue;
        }
        kept.retire();
        // A call that began before it could see that is carried on.
        if kept.is_idle() {
            break;
        }
    }
    if let Some(kept) = kept.upgrade() {
        kept.retire();
    }
}

/// One call on a connection. While it is there, the connection is not idle.
struct Call {
    connection: Arc<Connection>,
    /// Whether the other side has answered. A connection on which a call was given up before that may be dead.
    is_answered: bool,
}

impl Call {
    fn begin(connection: &Arc<Connection>) -> Option<Self> {
        let max = connection.sender.current_max_send_streams().min(CALLS_PER_CONNECTION_MAX);
        let add = |calls: usize| (calls < max).then_some(calls + 1);
        connection.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).ok()?;
        let call = Self { connection: connection.clone(), is_answered: false };
        // The task of the connection says that it is retired before it looks for calls, so one of the two sees the other.
        (!connection.is_retired()).then_some(call)
    }

    async fn exchange(
        mut self,
        request: Request<Bytes>,
        host: &str,
        idle: Option<Duration>,
    ) -> Result<(response::Parts, Http2Body), Error> {
        let unsent = |error: &h2::Error| failed(host, error).not_sent();
        let mut sender = self.connection.sender.clone().ready().await.map_err(|error| unsent(&error))?;
        let (mut head, body) = request.into_parts();
        head.version = Version::HTTP_2;
        let request = Request::from_parts(head, ());
        let (answer, mut sending) = sender.send_request(request, body.is_empty()).map_err(|error| unsent(&error))?;
        if !body.is_empty() {
            // What does not fit the window of the other side is kept, and sent when it does.
            sending.send_data(body, true).map_err(|error| failed(host, &error))?;
        }
        let answer = answer.await.map_err(|error| failed(host, &error))?;
        self.is_answered = true;
        let (head, stream) = answer.into_parts();
        Ok((head, Http2Body { stream, call: self, host: host.to_owned(), idle }))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_answered {
            self.connection.retire();
        }
        *lock(&self.connection.idle_since) = Instant::now();
        self.connection.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The body of an answer over HTTP/2. Only [`RequestLimits::idle`] bounds it: its reader bounds what it keeps. Dropping it tells the
/// other side that the rest is not wanted.
pub struct Http2Body {
    stream: RecvStream,
    call: Call,
    host: String,
    idle: Option<Duration>,
}

impl fmt::Debug for Http2Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Body").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Http2Body {
    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// When nothing arrives in time, or the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let (stream, connection) = (&mut self.stream, &self.call.connection);
        let reading = poll_fn(|cx| stream.poll_data(cx));
        match within(self.idle, &self.host, connection, reading).await? {
            None => Ok(None),
            Some(Err(error)) => Err(failed(&self.host, &error)),
            Some(Ok(data)) => {
                let _ = self.stream.flow_control().release_capacity(data.len());
                Ok(Some(data))
            }
        }
    }

    /// What follows the body, to be asked for at its end.
    ///
    /// # Errors
    /// As of [`chunk`](Self::chunk).
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, Error> {
        let (stream, connection) = (&mut self.stream, &self.call.connection);
        let reading = poll_fn(|cx| stream.poll_trailers(cx));
        within(self.idle, &self.host, connection, reading).await?.map_err(|error| failed(&self.host, &error))
    }
}

async fn within<F: Future>(
    idle: Option<Duration>,
    host: &str,
    connection: &Connection,
    reading: F,
) -> Result<F::Output, Error> {
    let Some(limit) = idle else { return Ok(reading.await) };
    timeout(limit, reading).await.map_err(|_| {
        // The next call does not wait for a connection that may be dead.
        connection.retire();
        Error::sent(ErrorKind::TimedOut, format!("nothing more of the answer of {host} came for {limit:?}"))
    })
}

/// What the library of HTTP/2 says. A stream that the other side refused was not looked at, nor one that came after the other side
/// had said which is the last (`GOAWAY`).
fn failed(host: &str, error: &h2::Error) -> Error {
    let text = format!("the connection to {host} broke before the answer was complete");
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => Error::unsent(ErrorKind::Broken, text),
        Some(Reason::NO_ERROR) if error.is_go_away() && error.is_remote() => Error::unsent(ErrorKind::Broken, text),
        Some(Reason::PROTOCOL_ERROR | Reason::FRAME_SIZE_ERROR | Reason::HTTP_1_1_REQUIRED) => {
            Error::sent(ErrorKind::NotHttp, format!("{host} does not speak HTTP/2"))
        }
        Some(_) | None => Error::sent(ErrorKind::Broken, text),
    }
}
