//! The body of an answer: one message, or one for each update of a stream, and then the trailers that say how it ended.
//! On the wire a message has a byte in front that says whether it is compressed, and four that say how long it is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame as BodyFrame;
use switchboard_core::call::{Frame, UpdateStream};
use switchboard_core::dialect::{Dialect, Package};
use switchboard_core::error::ProtocolError;
use tokio::time::{Instant, Sleep, sleep_until};

use super::status::GrpcStatus;
use crate::server::exchange::budgets::StreamHold;
use crate::server::exchange::headers::LAST_EVENT_ID;
use crate::server::exchange::respond::{ReplyCounting, StreamedBody};
use crate::server::metrics::Metrics;

/// The body of a gRPC answer.
pub(crate) struct GrpcBody(State);

enum State {
    Whole(Bytes),
    Streaming(Box<Streaming>),
    Ending(HeaderMap),
    Done,
}

/// What is known of a stream when its answer begins.
pub(super) enum FirstFrame {
    Frame(Frame),
    NotYet,
    End,
}

impl FirstFrame {
    pub(super) fn seq(&self) -> Option<u64> {
        match self {
            Self::Frame(frame) => frame.seq,
            Self::NotYet | Self::End => None,
        }
    }
}

impl fmt::Debug for GrpcBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBody").finish_non_exhaustive()
    }
}

impl GrpcBody {
    pub(super) fn whole(message: Bytes) -> Self {
        Self(State::Whole(message))
    }

    pub(super) fn stream(
        package: Package,
        dialect: Dialect,
        first: FirstFrame,
        updates: UpdateStream,
        deadline: Option<Instant>,
        write_bytes: usize,
        metrics: Arc<Metrics>,
    ) -> Self {
        metrics.stream_opened();
        let deadline = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
        let (first, last_seq) = (Some(first), None);
        Self(State::Streaming(Box::new(Streaming {
            package,
            dialect,
            first,
            updates,
            deadline,
            last_seq,
            write_bytes,
            metrics,
            hold: None,
        })))
    }
}

impl StreamedBody for GrpcBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<BodyFrame<Bytes>>>> {
        loop {
            match std::mem::replace(&mut self.0, State::Done) {
                State::Whole(message) => {
                    self.0 = State::Ending(trailers(&GrpcStatus::ok(), None));
                    return Poll::Ready(Some(Ok(BodyFrame::data(message))));
                }
                State::Ending(trailers) => return Poll::Ready(Some(Ok(BodyFrame::trailers(trailers)))),
                State::Done => return Poll::Ready(None),
                State::Streaming(mut streaming) => {
                    let (bytes, ending) = streaming.poll(cx);
                    let is_over = ending.is_some();
                    self.0 = match ending {
                        Some(ending) => State::Ending(trailers(&ending, streaming.last_seq)),
                        None => State::Streaming(streaming),
                    };
                    match bytes {
                        Some(bytes) => return Poll::Ready(Some(Ok(BodyFrame::data(bytes)))),
                        None if is_over => {}
                        None => return Poll::Pending,
                    }
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    fn hold(&mut self, counting: ReplyCounting<'_>) -> Result<(), ProtocolError> {
        match &mut self.0 {
            State::Whole(message) => counting.whole(message),
            State::Streaming(streaming) => {
                streaming.hold = counting.stream();
                Ok(())
            }
            State::Ending(_) | State::Done => Ok(()),
        }
    }
}

fn trailers(ending: &GrpcStatus, last_seq: Option<u64>) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(4);
    ending.write(&mut trailers);
    if let Some(seq) = last_seq {
        trailers.insert(LAST_EVENT_ID, seq.into());
    }
    trailers
}

struct Streaming {
    package: Package,
    dialect: Dialect,
    first: Option<FirstFrame>,
    updates: UpdateStream,
    deadline: Option<Pin<Box<Sleep>>>,
    /// The number of the last update that was written.
    last_seq: Option<u64>,
    write_bytes: usize,
    metrics: Arc<Metrics>,
    hold: Option<StreamHold>,
}

impl Streaming {
    /// What is there to write, and how the stream ended if it did. A single update is handed on as it is shared by all who
    /// follow; several are written together.
    fn poll(&mut self, cx: &mut Context<'_>) -> (Option<Bytes>, Option<GrpcStatus>) {
        let mut alone: Option<Bytes> = None;
        let mut together: Vec<u8> = Vec::new();
        let mut ending = None;
        let seq_before = self.last_seq;
        while ending.is_none() && together.len().max(alone.as_ref().map_or(0, Bytes::len)) < self.write_bytes {
            let frame = match self.next(cx) {
                Poll::Pending => break,
                Poll::Ready(Ok(Some(frame))) => frame,
                Poll::Ready(Ok(None)) => {
                    ending = Some(GrpcStatus::ok());
                    break;
                }
                Poll::Ready(Err(error)) => {
                    ending = Some(error);
                    break;
                }
            };
            let Some(message) = self.message(&frame) else {
                ending = Some(GrpcStatus::too_large());
                break;
            };
            self.last_seq = frame.seq.or(self.last_seq);
            match alone.take() {
                None if together.is_empty() => alone = Some(message),
                earlier => {
                    together.extend_from_slice(earlier.as_deref().unwrap_or_default());
                    together.extend_from_slice(&message);
                }
            }
            if (self.dialect.rules().ends_stream)(&frame.update.update) {
                ending = Some(GrpcStatus::ok());
            }
        }
        if ending.is_none()
            && let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            ending = Some(GrpcStatus::deadline(self.package));
        }
        let written = alone.or_else(|| (!together.is_empty()).then(|| together.into()));
        match (written, &self.hold) {
            (Some(bytes), Some(hold)) => match hold.write(bytes) {
                Ok(bytes) => (Some(bytes), ending),
                // What there was to write is left out, so the client resumes before it.
                Err(error) => {
                    self.last_seq = seq_before;
                    (None, Some(GrpcStatus::of(self.package, &error)))
                }
            },
            (written, _) => (written, ending),
        }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame>, GrpcStatus>> {
        match self.first.take() {
            Some(FirstFrame::Frame(frame)) => return Poll::Ready(Ok(Some(frame))),
            Some(FirstFrame::End) => return Poll::Ready(Ok(None)),
            Some(FirstFrame::NotYet) | None => {}
        }
        let polled = self.updates.as_mut().poll_next(cx);
        polled.map(|next| next.transpose().map_err(|error| GrpcStatus::of(self.package, &error)))
    }

    /// The update as a framed message, made once for all who follow over gRPC; none if it is too long for a frame.
    fn message(&self, frame: &Frame) -> Option<Bytes> {
        let message = frame.update.message(self.package, |update| {
            self.metrics.encoded();
            framed(|out| self.package.write_update(update, out)).unwrap_or_default()
        });
        (!message.is_empty()).then(|| message.clone())
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.metrics.stream_closed();
    }
}

pub(super) const PREFIX_BYTES: usize = 5;

/// How long a message says it is; none before its prefix has come.
pub(super) fn declared(body: &[u8]) -> Option<usize> {
    let [_, length @ ..] = *body.first_chunk::<PREFIX_BYTES>()?;
    Some(usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
}

/// The one message of a request.
pub(super) fn unframe(mut body: Bytes) -> Result<Bytes, GrpcStatus> {
    let Some(length) = declared(&body) else { return Err(GrpcStatus::no_message()) };
    if body[0] != 0 {
        return Err(GrpcStatus::compressed());
    }
    let message = body.split_off(PREFIX_BYTES);
    if message.len() < length {
        let reason = format!("the message ends after {} of {length} bytes", message.len());
        return Err(GrpcStatus::of(Package::V1_0, &ProtocolError::InvalidRequest { reason }));
    }
    if message.len() > length {
        return Err(GrpcStatus::several_messages());
    }
    Ok(message)
}

/// A message with its prefix.
pub(super) fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Result<Bytes, GrpcStatus> {
    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    write(&mut out);
    let length = u32::try_from(out.len() - PREFIX_BYTES).map_err(|_| GrpcStatus::too_large())?;
    out[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(out.into())
}
