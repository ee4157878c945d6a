//! Server-sent events: one event per update, its number as `id:`, so that a client can resume where its stream broke.
//! Updates that are available together are written together; a silent stream sends a comment now and then, so that the
//! connection stays open.
//!
//! An event is one line of JSON. Some readers end a line not only at `\n` and `\r` but at every line end of Unicode, so the
//! ones that JSON leaves as they are (U+0085, U+2028, U+2029) are escaped.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http_body::Frame as BodyFrame;
use switchboard_core::call::{Frame, UpdateStream};
use switchboard_core::dialect::json::write_u64;
use switchboard_core::dialect::{Dialect, codes};
use switchboard_core::error::ProtocolError;
use tokio::time::{Instant, Sleep};

use crate::server::exchange::budgets::StreamHold;
use crate::server::exchange::respond::{ReplyCounting, StreamedBody};
use crate::server::limits::ServerLimits;
use crate::server::metrics::Metrics;

/// What stands around each update.
pub(crate) enum Framing {
    /// A JSON-RPC response with the request's own id.
    JsonRpc { id: String },
    /// The update alone.
    HttpJson,
}

/// The first capacity of the write buffer: enough for the events of a short answer.
const WRITE_BYTES: usize = 2048;

/// The body of a streaming answer.
pub(crate) struct SseBody {
    updates: UpdateStream,
    framing: Framing,
    dialect: Dialect,
    keep_alive: KeepAlive,
    write_bytes: usize,
    done: bool,
    metrics: Arc<Metrics>,
    hold: Option<StreamHold>,
}

impl fmt::Debug for SseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseBody").finish_non_exhaustive()
    }
}

impl StreamedBody for SseBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<BodyFrame<Bytes>>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let mut out = Vec::new();
        while out.len() < self.write_bytes {
            match self.updates.as_mut().poll_next(cx) {
                Poll::Pending => break,
                Poll::Ready(Some(Ok(frame))) => {
                    self.write_frame(&frame, &mut out);
                    if (self.dialect.rules().ends_stream)(&frame.update.update) {
                        self.done = true;
                        break;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.write_error(&error, &mut out);
                    self.done = true;
                    break;
                }
                Poll::Ready(None) => {
                    self.done = true;
                    break;
                }
            }
        }
        if !out.is_empty() {
            self.keep_alive.wrote();
            let written = match &self.hold {
                Some(hold) => hold.write(out.into()),
                None => Ok(out.into()),
            };
            let written = written.unwrap_or_else(|error| self.broken_off(&error));
            return Poll::Ready(Some(Ok(BodyFrame::data(written))));
        }
        if self.done {
            return Poll::Ready(None);
        }
        self.keep_alive.poll_silence(cx).map(|()| Some(Ok(BodyFrame::data(Bytes::from_static(b": keep-alive\n\n")))))
    }

    fn is_done(&self) -> bool {
        self.done
    }

    /// What is written counts until the client has taken it.
    fn hold(&mut self, counting: ReplyCounting<'_>) -> Result<(), ProtocolError> {
        self.hold = counting.stream();
        Ok(())
    }
}

impl SseBody {
    pub(crate) fn new(
        limits: &ServerLimits,
        metrics: Arc<Metrics>,
        updates: UpdateStream,
        framing: Framing,
        dialect: Dialect,
    ) -> Self {
        let keep_alive = KeepAlive::every(Duration::from_secs(u64::from(limits.keep_alive_s)));
        let write_bytes = limits.stream_write_bytes;
        metrics.stream_opened();
        let framing = match framing {
            Framing::JsonRpc { id } => Framing::JsonRpc { id: with_line_ends_escaped(id) },
            Framing::HttpJson => Framing::HttpJson,
        };
        Self { updates, framing, dialect, keep_alive, write_bytes, done: false, metrics, hold: None }
    }

    fn write_frame(&self, frame: &Frame, out: &mut Vec<u8>) {
        if out.is_empty() {
            out.reserve(WRITE_BYTES);
        }
        let write_update = |out: &mut Vec<u8>| {
            frame.update.write(self.dialect, out, |update, out| {
                self.metrics.encoded();
                let start = out.len();
                self.dialect.write_update(update, out);
                escape_line_ends(out, start);
            });
        };
        if frame.truncated {
            out.extend_from_slice(b": earlier events are no longer kept; this is the task as it stands\n");
        }
        if let Some(seq) = frame.seq {
            out.extend_from_slice(b"id: ");
            write_u64(out, seq);
            out.push(b'\n');
        }
        out.extend_from_slice(b"data: ");
        match &self.framing {
            Framing::JsonRpc { id } => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                out.extend_from_slice(id.as_bytes());
                out.extend_from_slice(b",\"result\":");
                write_update(out);
                out.push(b'}');
            }
            Framing::HttpJson => write_update(out),
        }
        out.extend_from_slice(b"\n\n");
    }

    /// What there was to write is left out, numbers and all, so the client resumes before it.
    #[cold]
    fn broken_off(&mut self, error: &ProtocolError) -> Bytes {
        let mut out = Vec::new();
        self.write_error(error, &mut out);
        self.done = true;
        out.into()
    }

    /// A stream that breaks says why. Clients of the HTTP+JSON binding need the label, those of JSON-RPC do without.
    fn write_error(&self, error: &ProtocolError, out: &mut Vec<u8>) {
        let start = out.len();
        match &self.framing {
            Framing::JsonRpc { id } => {
                out.extend_from_slice(b"data: ");
                self.dialect.write_rpc_error(error, id, out);
            }
            Framing::HttpJson => {
                out.extend_from_slice(b"event: error\ndata: ");
                self.dialect.write_http_error(error, codes::of(error).http, out);
            }
        }
        escape_line_ends(out, start);
        out.extend_from_slice(b"\n\n");
    }
}

/// Escapes the line ends of Unicode in the JSON after `start`. They can only stand in strings, where the escape means the
/// same.
pub(crate) fn escape_line_ends(out: &mut Vec<u8>, start: usize) {
    if is_all_ascii(&out[start..]) {
        return;
    }
    let Some((first, _, _)) = next_line_end(&out[start..]) else { return };
    let rest = out.split_off(start + first);
    let mut rest = rest.as_slice();
    while let Some((at, length, escape)) = next_line_end(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(escape);
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
}

/// Most JSON is ASCII. This reads all bytes, where `is_ascii` stops at the first other one: so the compiler makes it read many bytes at a time.
fn is_all_ascii(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) < 0x80
}

/// Where the next line end is, how many bytes it takes, and its escape.
fn next_line_end(bytes: &[u8]) -> Option<(usize, usize, &'static [u8])> {
    bytes.iter().enumerate().find_map(|(at, byte)| match byte {
        0xc2 if bytes[at..].starts_with("\u{85}".as_bytes()) => Some((at, 2, &b"\\u0085"[..])),
        0xe2 if bytes[at..].starts_with("\u{2028}".as_bytes()) => Some((at, 3, &b"\\u2028"[..])),
        0xe2 if bytes[at..].starts_with("\u{2029}".as_bytes()) => Some((at, 3, &b"\\u2029"[..])),
        _ => None,
    })
}

fn with_line_ends_escaped(text: String) -> String {
    if text.is_ascii() {
        return text;
    }
    let mut bytes = text.into_bytes();
    escape_line_ends(&mut bytes, 0);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Tells when a stream has been silent for too long. Its timer is not moved with every write: when it fires, it is set to
/// the rest of the time.
struct KeepAlive {
    every: Duration,
    /// The last write since the timer was set.
    wrote_at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The task that the timer wakes.
    task: Option<Waker>,
}

impl KeepAlive {
    fn every(every: Duration) -> Self {
        Self { every, wrote_at: None, timer: None, task: None }
    }

    fn wrote(&mut self) {
        if self.timer.is_some() {
            self.wrote_at = Some(Instant::now());
        }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Self { every, wrote_at, timer, task } = self;
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(*every)));
        let is_known = task.as_ref().is_some_and(|task| task.will_wake(cx.waker()));
        if is_known && !timer.is_elapsed() {
            return Poll::Pending;
        }
        *task = Some(cx.waker().clone());
        let mut is_silent = false;
        while timer.as_mut().poll(cx).is_ready() {
            let from = wrote_at.take();
            is_silent |= from.is_none();
            timer.as_mut().reset(from.unwrap_or_else(Instant::now) + *every);
        }
        if is_silent { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for SseBody {
    fn drop(&mut self) {
        self.metrics.stream_closed();
    }
}

#[cfg(test)]
mod tests {
    use super::escape_line_ends;

    #[test]
    fn line_ends_of_unicode_are_escaped_and_nothing_else() {
        for (text, expected) in [
            ("", ""),
            ("{\"a\":1}", "{\"a\":1}"),
            ("\"\u{85}\u{2028}x\u{2029}\"", "\"\\u0085\\u2028x\\u2029\""),
            ("“é” \u{a0}\u{2027}\u{202a}\u{84}\u{86} 界", "“é” \u{a0}\u{2027}\u{202a}\u{84}\u{86} 界"),
            ("\u{2028}\u{2028}", "\\u2028\\u2028"),
        ] {
            let mut out = b"\xe2\x80\xa8 before ".to_vec();
            let start = out.len();
            out.extend_from_slice(text.as_bytes());
            escape_line_ends(&mut out, start);
            assert_eq!(String::from_utf8(out[start..].to_vec()).unwrap(), expected);
            assert_eq!(&out[..start], b"\xe2\x80\xa8 before ");
        }
    }
}
