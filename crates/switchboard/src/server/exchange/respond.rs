//! The last stage: putting answers into HTTP, and the shapes of their bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;
use switchboard_engine::budget::Charge;

use crate::server::authentication::{BEARER_CHALLENGE, OnRefusal};
use crate::server::exchange::access_log::FollowedBody;
use crate::server::exchange::budgets::{Budgets, StreamHold};
use crate::server::exchange::headers::X_ACCEL_BUFFERING;
use crate::server::exchange::refused::Refused;
use crate::server::exchange::request_record::{Holder, RequestRecord};
use crate::server::transport::unread::{PROGRESS_BYTES_MIN, ServiceBody, ServiceReplies, UnreadBody, UnreadReplies};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

pub(crate) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

pub(crate) fn json(status: StatusCode, content_type: HeaderValue, body: Vec<u8>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Whole(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Whole(body.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// The answer with a stream of events.
pub(crate) fn events(body: impl StreamedBody + 'static) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Streamed(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer would hold events back.
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A refusal over HTTP+JSON.
pub(crate) fn http_error(dialect: Dialect, error: &ProtocolError, content_type: HeaderValue) -> Response<ReplyBody> {
    http_error_as(dialect, http_status(dialect, error), error, content_type)
}

/// A refusal that has another status than its kind usually has.
pub(crate) fn http_error_as(
    dialect: Dialect,
    status: StatusCode,
    error: &ProtocolError,
    content_type: HeaderValue,
) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(512);
    dialect.write_http_error(error, status.as_u16(), &mut body);
    with_hints(json(status, content_type, body), error)
}

/// The refusal of a verb; `allowed` is what the place takes.
pub(crate) fn not_allowed(
    dialect: Dialect,
    error: &ProtocolError,
    allowed: &'static str,
    content_type: HeaderValue,
) -> Response<ReplyBody> {
    let mut response = http_error_as(dialect, StatusCode::METHOD_NOT_ALLOWED, error, content_type);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The refusal of a verb at a place that belongs to no version.
pub(crate) fn takes(allowed: &'static str) -> Response<ReplyBody> {
    let error = ProtocolError::InvalidRequest { reason: format!("this path takes {allowed}") };
    not_allowed(Dialect::V1_0, &error, allowed, A2A_JSON)
}

pub(crate) fn http_status(dialect: Dialect, error: &ProtocolError) -> StatusCode {
    StatusCode::from_u16(dialect.http_status(error)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Headers that tell a client what to do about a refusal. The answer is marked as one.
pub(crate) fn with_hints(mut response: Response<ReplyBody>, error: &ProtocolError) -> Response<ReplyBody> {
    Refused::mark(&mut response, error);
    let headers = response.headers_mut();
    match error {
        ProtocolError::Unauthenticated { .. } => {
            headers.insert(header::WWW_AUTHENTICATE, BEARER_CHALLENGE);
        }
        ProtocolError::Unavailable { retry_after_s, .. } | ProtocolError::ResourceExhausted { retry_after_s, .. }
            if *retry_after_s > 0 =>
        {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after_s));
        }
        _ => {}
    }
    response
}

/// The body of an answer that comes piece by piece.
pub trait StreamedBody: Send {
    /// The next piece, or the trailers.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>>;

    /// Whether there is nothing more to come.
    fn is_done(&self) -> bool;

    /// How many bytes are left, where that is known.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }

    /// Counts what it holds until its client has taken it.
    #[doc(hidden)]
    fn hold(&mut self, counting: ReplyCounting<'_>) -> Result<(), ProtocolError>;
}

/// Where an answer is counted until its client has taken it.
#[doc(hidden)]
pub struct ReplyCounting<'a> {
    budgets: &'a Budgets,
    note: &'a RequestRecord,
    /// Its place among the streams.
    stream: Option<Charge<Holder>>,
    on_refusal: Option<OnRefusal>,
}

impl fmt::Debug for ReplyCounting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyCounting").finish_non_exhaustive()
    }
}

impl ReplyCounting<'_> {
    /// A whole answer.
    #[cfg(feature = "grpc")]
    pub(crate) fn whole(self, bytes: &mut Bytes) -> Result<(), ProtocolError> {
        self.budgets.hold(bytes, self.note)
    }

    /// One that holds so many bytes at a time.
    pub(crate) fn piece(self, bytes: u64) -> Result<Charge<Holder>, ProtocolError> {
        self.budgets.hold_piece(bytes, self.note)
    }

    /// A stream, which counts what it writes; none if it has no place among the streams.
    pub(crate) fn stream(self) -> Option<StreamHold> {
        self.stream.map(|place| self.budgets.hold_stream(place, self.note, self.on_refusal))
    }
}

/// The body of an answer.
#[derive(Default)]
pub enum ReplyBody {
    #[default]
    Empty,
    Whole(Bytes),
    /// Events, a file piece by piece, or what gRPC frames.
    #[doc(hidden)]
    Streamed(Box<dyn StreamedBody>),
    /// One over HTTP/2, which notes when its client takes something of it.
    #[doc(hidden)]
    Unread(Box<UnreadBody<ReplyBody>>),
    /// One of a service in an application, which is let go if its client takes nothing of it.
    #[doc(hidden)]
    Service(Box<ServiceBody<ReplyBody>>),
    /// One whose end the access log waits for.
    #[doc(hidden)]
    Followed(Box<FollowedBody<ReplyBody>>),
}

impl ReplyBody {
    /// Counts the answer until its client has taken it. `stream` is its place among the streams.
    pub(crate) fn hold(
        &mut self,
        budgets: &Budgets,
        note: &RequestRecord,
        stream: Option<Charge<Holder>>,
        on_refusal: Option<OnRefusal>,
    ) -> Result<(), ProtocolError> {
        match self {
            Self::Whole(bytes) => budgets.hold(bytes, note),
            Self::Streamed(body) => body.hold(ReplyCounting { budgets, note, stream, on_refusal }),
            Self::Empty | Self::Followed(_) | Self::Unread(_) | Self::Service(_) => Ok(()),
        }
    }

    /// The body, which notes when its client takes something of it.
    pub(crate) fn watched_by(self, unread: &UnreadReplies) -> Self {
        if self.is_end_stream() { self } else { Self::Unread(Box::new(unread.watch(self))) }
    }

    /// The body, which is let go if its client takes nothing of it. A small one is not watched.
    pub(crate) fn held_for(self, unread: &ServiceReplies<Self>) -> Self {
        if self.is_end_stream() || matches!(&self, Self::Whole(bytes) if bytes.len() <= PROGRESS_BYTES_MIN) {
            return self;
        }
        Self::Service(Box::new(unread.watch(self)))
    }
}

// By hand: an answer may hold what people wrote, so its length is shown and not its text.
impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Streamed(_) => f.write_str("Streamed(..)"),
            Self::Unread(_) => f.write_str("Unread(..)"),
            Self::Service(_) => f.write_str("Service(..)"),
            Self::Followed(body) => f.debug_tuple("Followed").field(body).finish(),
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    /// Only a download can break off, and what was let go because its client did not read.
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = self.get_mut();
        match this {
            Self::Empty => Poll::Ready(None),
            Self::Whole(_) => match std::mem::take(this) {
                Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
            Self::Streamed(body) => body.poll(cx),
            Self::Unread(unread) => unread.poll(cx),
            Self::Service(service) => service.poll(cx),
            Self::Followed(followed) => followed.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(_) => false,
            Self::Streamed(body) => body.is_done(),
            Self::Unread(unread) => unread.is_done(),
            Self::Service(service) => service.is_done(),
            Self::Followed(followed) => followed.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streamed(body) => body.size_hint(),
            Self::Unread(unread) => unread.hint(),
            Self::Service(service) => service.hint(),
            Self::Followed(followed) => followed.hint(),
        }
    }
}
