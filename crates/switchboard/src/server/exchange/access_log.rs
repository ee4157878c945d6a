//! The access log: one line per request, written when the last byte of its answer has gone out or its client has gone. It names
//! who asked for what and holds nothing of what was said.

use std::fmt::{self, Write as _};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method};
use http_body::{Body, Frame, SizeHint};
use switchboard_core::model::Principal;
use switchboard_engine::escaped::Escaped;
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;
use tokio::time::Instant;

/// Where the lines of the access log go.
///
/// ```
/// let log = switchboard::AccessLog::new(|line| print!("{line}"));
/// let server = switchboard::Server::builder().access_log(log);
/// ```
#[derive(Clone)]
pub struct AccessLog {
    write: Arc<dyn Fn(&str) + Send + Sync>,
}

impl AccessLog {
    /// `write` is called with each line, its line break included, by the thread that ends the request: it must not
    /// block.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { write: Arc::new(write) }
    }

    /// The body of an answer whose line is written when it ends.
    pub(crate) fn follow<B>(self, line: AccessLine, answered: Answered, body: B) -> FollowedBody<B> {
        FollowedBody { body, bytes: 0, log: self, line, answered }
    }

    pub(crate) fn write(&self, line: &AccessLine, answered: &Answered, bytes: u64) {
        (self.write)(&text(line, answered, bytes));
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessLog")
    }
}

/// What a line says about the request.
pub(crate) struct AccessLine {
    pub(crate) method: Method,
    /// Without its query, which may hold secrets.
    pub(crate) path: String,
    request_id: HeaderValue,
    peer: Option<SocketAddr>,
}

impl AccessLine {
    pub(crate) fn of(parts: &Parts, request_id: &HeaderValue, peer: Option<SocketAddr>) -> Self {
        let path = parts.uri.path().to_owned();
        Self { method: parts.method.clone(), path, request_id: request_id.clone(), peer }
    }
}

/// What a line says about the answer.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) began: Instant,
    pub(crate) operation: &'static str,
    pub(crate) agent: String,
    pub(crate) principal: Option<Principal>,
}

/// The longest path that is shown whole.
const PATH_BYTES_MAX: usize = 1024;

fn text(line: &AccessLine, answered: &Answered, bytes: u64) -> String {
    let Answered { status, began, operation, agent, principal } = answered;
    let (seconds, id) = (began.elapsed().as_secs_f64(), line.request_id.to_str().unwrap_or("?"));
    let mut out = String::with_capacity(256);
    let _ = write!(out, "{} ", SystemClock.now());
    match line.peer {
        Some(peer) => {
            let _ = write!(out, "{peer}");
        }
        None => out.push('-'),
    }
    let principal = principal.as_ref().map_or("", Principal::as_str);
    let _ = write!(out, " {} ", word(principal));
    let _ = write!(out, "{} {} ", line.method, Escaped::at_most(&line.path, PATH_BYTES_MAX));
    let _ = writeln!(out, "{status} {bytes} {seconds:.6} {operation} {} {id}", word(agent));
    out
}

/// A value as one word: the columns of a line are separated by blanks.
fn word(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    Escaped::at_most(text, 200).to_string().replace(' ', "\\u{20}")
}

/// A body that counts its bytes and has its line written when it is dropped.
pub struct FollowedBody<B> {
    body: B,
    bytes: u64,
    log: AccessLog,
    line: AccessLine,
    answered: Answered,
}

impl<B> fmt::Debug for FollowedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowedBody").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes, Error = io::Error> + Unpin> FollowedBody<B> {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len() as u64;
        }
        polled
    }

    pub(crate) fn is_done(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(crate) fn hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for FollowedBody<B> {
    fn drop(&mut self) {
        self.log.write(&self.line, &self.answered, self.bytes);
    }
}
