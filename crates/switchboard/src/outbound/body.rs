//! The body of an answer, read chunk by chunk or whole, within the limits of its call.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{Error, ErrorKind};
use super::limits::RequestLimits;
use super::pool::{Connection, Key, Pool};

/// A short body that is not wanted is read to its end, so that its connection can be used again; a long one costs its
/// connection.
const DISCARDED_BYTES_MAX: u64 = 4 * 1_024;
/// How long that may take, and how long a connection may take to be ready for the next request.
const DISCARD_WAIT: Duration = Duration::from_millis(500);

/// The body of an answer.
///
/// Nothing is read ahead: the connection moves on while [`chunk`](Self::chunk) or [`bytes`](Self::bytes) is awaited. A body
/// that was read to its end gives its connection to the next call; one that is dropped before closes it.
pub struct Body {
    incoming: Incoming,
    state: State,
    pool: Arc<Pool>,
    key: Key,
    limits: RequestLimits,
    started: Instant,
    read_bytes: u64,
}

enum State {
    Open(Box<Connection>),
    Ended,
    Failed(Error),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("host", &self.key.shown_host())
            .field("read_bytes", &self.read_bytes)
            .finish_non_exhaustive()
    }
}

impl Body {
    pub(super) fn new(
        incoming: Incoming,
        connection: Box<Connection>,
        pool: Arc<Pool>,
        key: Key,
        limits: &RequestLimits,
        started: Instant,
    ) -> Self {
        let state = State::Open(connection);
        Self { incoming, state, pool, key, limits: limits.clone(), started, read_bytes: 0 }
    }

    /// The next piece of the body; none at its end. Trailers are left out.
    ///
    /// Dropping the future loses nothing: the next call goes on where it was.
    ///
    /// # Errors
    /// When the body is larger than its limit, nothing arrives in time, or the connection breaks. The connection is then
    /// closed, and each further call returns the same error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        match self.next().await {
            Ok(Some(data)) => Ok(Some(data)),
            Ok(None) => {
                self.end().await;
                Ok(None)
            }
            Err(error) => {
                self.state = State::Failed(error.clone());
                Err(error)
            }
        }
    }

    /// The whole body, or what is left of it.
    ///
    /// # Errors
    /// As of [`chunk`](Self::chunk).
    pub async fn bytes(mut self) -> Result<Bytes, Error> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.chunk().await? else { return Ok(first) };
        let mut whole = BytesMut::from(first);
        whole.extend_from_slice(&second);
        while let Some(more) = self.chunk().await? {
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }

    /// Reads a short rest that is not wanted, so that the connection can be used again.
    pub async fn discard(&mut self) {
        self.limits.body_bytes_max = Some(self.read_bytes + DISCARDED_BYTES_MAX);
        let reading = async { while let Ok(Some(_)) = self.chunk().await {} };
        let _ = timeout(DISCARD_WAIT, reading).await;
    }

    /// Ends with a body of which nothing more is wanted, because the stream in it has ended: if the rest is short and comes soon, the
    /// connection is used again. Call it inside a runtime; outside of one the connection is closed unless the rest is there.
    #[expect(clippy::disallowed_methods, reason = "it ends by itself, within DISCARD_WAIT")]
    pub fn release(mut self) {
        let mut discarding = Box::pin(async move { self.discard().await });
        // Most servers send the end together with the last event.
        if discarding.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(discarding);
        }
    }

    /// Gives the connection back at once where nothing is to be read, for callers that look at the status only.
    pub(super) async fn returned_if_empty(mut self) -> Self {
        if self.incoming.is_end_stream() {
            self.end().await;
        }
        self
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            // Where the other side says the length, a body that is too large is not even begun with.
            let announced = self.check_size(self.incoming.size_hint().lower());
            let connection = match &mut self.state {
                State::Open(connection) => connection,
                State::Ended => return Ok(None),
                State::Failed(error) => return Err(error.clone()),
            };
            announced?;
            let mut reached = None;
            let end = || {
                let (end, limit) = earliest(&self.limits, self.started)?;
                reached = Some(limit);
                Some(end)
            };
            let frame = within(end, connection.drive(self.incoming.frame())).await;
            let data = match frame.map_err(|_| self.late(reached))? {
                None => return Ok(None),
                Some(Err(_)) => {
                    let text = format!("the connection to {} broke in the middle of the answer", self.key.shown_host());
                    return Err(Error::sent(ErrorKind::Broken, text));
                }
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if !data.is_empty() {
                self.check_size(data.len() as u64)?;
                self.read_bytes += data.len() as u64;
                return Ok(Some(data));
            }
        }
    }

    /// Whether so many bytes more are still within the limit.
    fn check_size(&self, more: u64) -> Result<(), Error> {
        match self.limits.body_bytes_max {
            Some(max) if self.read_bytes.saturating_add(more) > max => Err(Error::sent(
                ErrorKind::BodyTooLarge,
                format!("the answer of {} is larger than {max} bytes", self.key.shown_host()),
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn late(&self, limit: Option<Limit>) -> Error {
        let host = self.key.shown_host();
        let text = match limit {
            Some(Limit::Idle(limit)) => format!("nothing more of the answer of {host} came for {limit:?}"),
            Some(Limit::Total(limit)) => format!("the answer of {host} did not end within {limit:?}"),
            None => format!("the answer of {host} did not come in time"),
        };
        Error::sent(ErrorKind::TimedOut, text)
    }

    /// Gives the connection back.
    async fn end(&mut self) {
        if let State::Open(connection) = std::mem::replace(&mut self.state, State::Ended) {
            let end = || Some(Instant::now() + DISCARD_WAIT);
            let _ = within(end, self.pool.give(self.key.clone(), connection)).await;
        }
    }
}

/// Which limit a wait runs into.
#[derive(Clone, Copy)]
enum Limit {
    Idle(Duration),
    Total(Duration),
}

/// The limit that ends a wait which begins now.
fn earliest(limits: &RequestLimits, started: Instant) -> Option<(Instant, Limit)> {
    let idle = limits.idle.map(|limit| (Instant::now() + limit, Limit::Idle(limit)));
    let total = limits.total.map(|limit| (started + limit, Limit::Total(limit)));
    [idle, total].into_iter().flatten().min_by_key(|(end, _)| *end)
}

/// Waits for something until a time, or for ever. What is there already costs no clock: `end` is asked only if it is not.
async fn within<F: Future>(end: impl FnOnce() -> Option<Instant>, waited_for: F) -> Result<F::Output, Elapsed> {
    let mut waited_for = pin!(waited_for);
    if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(waited_for.as_mut().poll(cx))).await {
        return Ok(output);
    }
    match end() {
        Some(end) => timeout_at(end, waited_for).await,
        None => Ok(waited_for.await),
    }
}
