//! The last stage: putting answers into HTTP, and the shapes of their bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use switchboard_core::dialect::Dialect;
use switchboard_core::error::ProtocolError;
use switchboard_engine::budget::Charge;

use crate::server::authentication::{BEARER_CHALLENGE, OnRefusal};
#[cfg(feature = "grpc")]
use crate::server::bindings::grpc::stream::GrpcBody;
use crate::server::bindings::sse::{SseBody, escape_line_ends};
use crate::server::downloads::body::DownloadBody;
use crate::server::edge::access_log::FollowedBody;
use crate::server::edge::budgets::Budgets;
use crate::server::edge::headers::X_ACCEL_BUFFERING;
use crate::server::edge::holder::Holder;
use crate::server::edge::refused::Refused;
use crate::server::edge::request_record::RequestRecord;
use crate::server::transport::unread::{PROGRESS_BYTES_MIN, ServiceBody, ServiceReplies, UnreadBody, UnreadReplies};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json");

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

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

pub(crate) fn events(body: SseBody) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Events(Box::new(body)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENTS);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that buffer would hold events back.
    headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A JSON-RPC response with a result.
pub(crate) fn rpc_result(id: &str, write_result: impl FnOnce(&mut Vec<u8>)) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(b",\"result\":");
    write_result(&mut body);
    body.push(b'}');
    json(StatusCode::OK, JSON, body)
}

/// A refusal as a JSON-RPC response. The HTTP status is 200, as clients of this binding expect, unless the request was
/// turned away before it was one. `only_events` is for clients that read nothing but events.
pub(crate) fn rpc_error(dialect: Dialect, error: &ProtocolError, id: &str, only_events: bool) -> Response<ReplyBody> {
    let mut body = Vec::with_capacity(512);
    let status = match error {
        ProtocolError::Unauthenticated { .. }
        | ProtocolError::PermissionDenied { .. }
        | ProtocolError::TooLarge { .. }
        | ProtocolError::Unavailable { .. }
        | ProtocolError::ResourceExhausted { .. } => http_status(dialect, error),
        _ => StatusCode::OK,
    };
    if status == StatusCode::OK && only_events {
        body.extend_from_slice(b"data: ");
        dialect.write_rpc_error(error, id, &mut body);
        escape_line_ends(&mut body, 0);
        body.extend_from_slice(b"\n\n");
        let mut response = json(status, EVENTS, body);
        Refused::mark(&mut response, error);
        return response;
    }
    dialect.write_rpc_error(error, id, &mut body);
    with_hints(json(status, JSON, body), error)
}

/// Whether a refusal of a JSON-RPC call must be an event, since a plain answer would hide from the client what was wrong.
/// Clients of 0.3 read nothing but events where they ask for a stream, and say so on any of their `Accept` lines: the
/// Python SDK sends `*/*` on another. One that names JSON as well gets events only for a method that streams; `method` is
/// empty where it is not known yet.
pub(crate) fn only_events(dialect: Dialect, method: &str, asked: &HeaderMap) -> bool {
    const STREAMS: [&str; 3] = ["message/stream", "tasks/resubscribe", "tasks/sendSubscribe"];
    dialect == Dialect::V0_3
        && accepts(asked, "text/event-stream")
        && (STREAMS.contains(&method) || !accepts(asked, "application/json"))
}

/// Whether a line of `Accept` names this media type itself; a range such as `*/*` does not.
fn accepts(asked: &HeaderMap, media_type: &str) -> bool {
    let names = |range: &str| range.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type);
    let lines = asked.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(names)
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

fn http_status(dialect: Dialect, error: &ProtocolError) -> StatusCode {
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

/// The body of an answer: all of it, a stream of events, a file piece by piece, or what gRPC frames.
#[derive(Default)]
pub enum ReplyBody {
    #[default]
    Empty,
    Whole(Bytes),
    #[doc(hidden)]
    Events(Box<SseBody>),
    #[doc(hidden)]
    Download(Box<DownloadBody>),
    /// One over HTTP/2, which notes when its client takes something of it.
    #[doc(hidden)]
    Unread(Box<UnreadBody<ReplyBody>>),
    /// One of a service in an application, which is let go if its client takes nothing of it.
    #[doc(hidden)]
    Service(Box<ServiceBody<ReplyBody>>),
    /// One whose end the access log waits for.
    #[doc(hidden)]
    Followed(Box<FollowedBody<ReplyBody>>),
    #[doc(hidden)]
    #[cfg(feature = "grpc")]
    Grpc(Box<GrpcBody>),
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
        let following = |on_refusal| stream.map(|place| budgets.hold_stream(place, note, on_refusal));
        match self {
            Self::Whole(bytes) => budgets.hold(bytes, note),
            Self::Events(events) => {
                events.hold(following(on_refusal));
                Ok(())
            }
            // A download holds one piece at a time.
            Self::Download(download) => {
                download.hold(budgets.hold_piece(download.piece_bytes(), note)?);
                Ok(())
            }
            #[cfg(feature = "grpc")]
            Self::Grpc(body) => match body.whole_mut() {
                Some(bytes) => budgets.hold(bytes, note),
                None => {
                    body.hold(following(on_refusal));
                    Ok(())
                }
            },
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
            Self::Events(_) => f.write_str("Events(..)"),
            Self::Download(_) => f.write_str("Download(..)"),
            Self::Unread(_) => f.write_str("Unread(..)"),
            Self::Service(_) => f.write_str("Service(..)"),
            Self::Followed(body) => f.debug_tuple("Followed").field(body).finish(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => f.write_str("Grpc(..)"),
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
            Self::Download(download) => download.poll(cx).map(|piece| piece.map(|bytes| bytes.map(Frame::data))),
            Self::Unread(unread) => unread.poll(cx),
            Self::Service(service) => service.poll(cx),
            Self::Followed(followed) => followed.poll(cx),
            Self::Events(events) => events.poll(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
            #[cfg(feature = "grpc")]
            Self::Grpc(body) => body.poll(cx).map(|frame| frame.map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Whole(_) => false,
            Self::Events(events) => events.is_done(),
            Self::Download(download) => download.left() == 0,
            Self::Unread(unread) => unread.is_done(),
            Self::Service(service) => service.is_done(),
            Self::Followed(followed) => followed.is_done(),
            #[cfg(feature = "grpc")]
            Self::Grpc(body) => body.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::default(),
            Self::Download(download) => SizeHint::with_exact(download.left()),
            Self::Unread(unread) => unread.hint(),
            Self::Service(service) => service.hint(),
            Self::Followed(followed) => followed.hint(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => SizeHint::default(),
        }
    }
}
