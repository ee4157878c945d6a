//! A call over gRPC: one message out, and one message or many back, each behind five bytes that say how long it is; then the trailers
//! that say how the call ended.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName, TE};
use http::{HeaderMap, HeaderValue, Method, Request};
use percent_encoding::percent_decode_str;
use switchboard_core::dialect::Package;
use switchboard_core::dialect::json::{DecodeLimits, excerpt};
use switchboard_core::dialect::protobuf::{Status, read_error};
use switchboard_core::error::ProtocolError;
use tokio::time::Instant;

use super::{
    Answered, EventReader, Exchange, Failure, ReceivedUpdate, WIRE_TEXT_BYTES_MAX, nested_base64, not_a2a, refused,
    unsendable,
};
use crate::call_error::CallError;
use crate::client::interceptor::{Received, Watch};
use crate::outbound::{self, Http2Body, RequestLimits};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// The number of the first update of a stream, where the agent numbers them.
const FIRST_EVENT_ID: HeaderName = HeaderName::from_static("first-event-id");

/// Whether it is compressed, and how long it is.
const PREFIX_BYTES: usize = 5;

fn service(package: Package) -> &'static str {
    match package {
        Package::V1_0 => "lf.a2a.v1.A2AService",
        Package::V0_3 => "a2a.v1.A2AService",
    }
}

pub(super) async fn call(exchange: &Exchange<'_>, package: Package) -> Result<Answered, Failure> {
    let mut body = vec![0; PREFIX_BYTES];
    let Some(method) = package.write_call(exchange.request, exchange.target.tenant.as_deref(), &mut body) else {
        let reason = format!("0.3 has no call for {} over gRPC", exchange.request.operation());
        return Err(CallError::unwritable(ProtocolError::UnsupportedOperation { reason }).into());
    };
    let length = u32::try_from(body.len() - PREFIX_BYTES).map_err(|_| unsendable("the message"))?;
    body[1..PREFIX_BYTES].copy_from_slice(&length.to_be_bytes());
    let uri = exchange.target.uri.to_string();
    let uri = format!("{}/{}/{method}", uri.trim_end_matches('/'), service(package));
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.parse().map_err(|_| unsendable("the URL of the call"))?;
    let headers = request.headers_mut();
    exchange.put_headers(headers)?;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    let mut limits = RequestLimits::stream();
    limits.head = Some(exchange.until.saturating_duration_since(Instant::now()));
    limits.idle = exchange.is_streamed().then_some(exchange.http.limits.stream_idle);
    let http = exchange.http;
    let mut watch = http.interceptors.begin(&mut request);
    let client = http.client_for(request.uri(), exchange.named);
    let (head, body) = client.send_http2(request, &limits).await.map_err(|error| failed(&error, &mut watch))?;
    show(&mut watch, Received::Head { status: head.status.as_u16(), headers: &head.headers });
    if let Some(error) = refusal(&head.headers) {
        show(&mut watch, Received::End { trailers: None });
        return Err(error);
    }
    let media_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media_type.starts_with("application/grpc") {
        let status = head.status.as_u16();
        show(&mut watch, Received::End { trailers: None });
        return Err(match head.status.is_success() {
            true => Failure::Failed(not_a2a(media_type, "it is not gRPC")),
            false if matches!(status, 404 | 405 | 415) => Failure::NotHere(refused(None, Some(status))),
            false => Failure::Failed(refused(None, Some(status))),
        });
    }
    let first = head.headers.get(FIRST_EVENT_ID).and_then(|value| value.to_str().ok()?.parse().ok());
    let resumed = exchange.caller.last_event_id.as_deref().and_then(|id| id.parse::<u64>().ok());
    let mut reader = GrpcReader {
        body,
        watch,
        buffer: BytesMut::new(),
        next_seq: first.or(resumed.map(|last| last + 1)),
        package,
        message_bytes_max: match exchange.is_streamed() {
            true => exchange.http.limits.event_bytes_max,
            false => usize::try_from(exchange.http.limits.reply_bytes_max).unwrap_or(usize::MAX),
        },
        limits: exchange.http.limits.decode,
    };
    if exchange.is_streamed() {
        return Ok(Answered::Events(EventReader::Grpc(Box::new(reader))));
    }
    let message = reader.message().await?;
    let message = message.ok_or_else(|| CallError::invalid_answer("the call ended well, and without an answer"))?;
    let reply = package.read_reply(method, message, &exchange.http.limits.decode);
    // How the call ended stands behind its message.
    reader.message().await?;
    let reply = reply.map_err(|error| not_a2a("application/grpc", &error.to_string()))?;
    Ok(Answered::Reply(if package == Package::V0_3 { nested_base64::unwrap_reply(reply) } else { reply }))
}

/// The messages of a stream.
pub(in crate::client) struct GrpcReader {
    body: Http2Body,
    watch: Option<Watch>,
    buffer: BytesMut,
    /// The number of the next update. They come without one, and without gaps.
    next_seq: Option<u64>,
    package: Package,
    message_bytes_max: usize,
    limits: DecodeLimits,
}

impl GrpcReader {
    pub(super) async fn next(&mut self) -> Result<Option<ReceivedUpdate>, CallError> {
        let Some(message) = self.message().await? else { return Ok(None) };
        let update = self.package.read_update(message, &self.limits);
        let update = update.map_err(|error| not_a2a("application/grpc", &error.to_string()))?;
        let update = if self.package == Package::V0_3 { nested_base64::unwrap_update(update) } else { update };
        let id = self.next_seq.map(|seq| seq.to_string());
        self.next_seq = self.next_seq.map(|seq| seq + 1);
        Ok(Some(ReceivedUpdate { id, update }))
    }

    /// The next message; none when the call has ended well. Cancelling loses nothing.
    async fn message(&mut self) -> Result<Option<Bytes>, CallError> {
        loop {
            if let Some([is_compressed, length @ ..]) = self.buffer.first_chunk::<PREFIX_BYTES>().copied() {
                let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                if length > self.message_bytes_max {
                    let max = self.message_bytes_max;
                    return Err(CallError::invalid_answer(format!("a message is larger than {max} bytes")));
                }
                if is_compressed != 0 {
                    return Err(CallError::invalid_answer("a message is compressed, which was not asked for"));
                }
                if self.buffer.len() >= PREFIX_BYTES + length {
                    self.buffer.advance(PREFIX_BYTES);
                    let message = self.buffer.split_to(length).freeze();
                    show(&mut self.watch, Received::Message(&message));
                    return Ok(Some(message));
                }
            }
            match self.body.chunk().await.map_err(|error| failed(&error, &mut self.watch))? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => break,
            }
        }
        let trailers = self.body.trailers().await.map_err(|error| failed(&error, &mut self.watch))?;
        show(&mut self.watch, Received::End { trailers: trailers.as_ref() });
        match trailers {
            Some(trailers) => refusal(&trailers).map_or(Ok(None), |failure| Err(failure.into())),
            None => Err(CallError::invalid_answer("the call ended without a status")),
        }
    }
}

fn show(watch: &mut Option<Watch>, received: Received<'_>) {
    if let Some(watch) = watch {
        watch.show(received);
    }
}

fn failed(error: &outbound::Error, watch: &mut Option<Watch>) -> CallError {
    let error = CallError::of_outbound(error);
    show(watch, Received::Failed(&error));
    error
}

/// Why a call was refused, by its trailers or by the head of an answer that has none; none if it was not.
fn refusal(headers: &HeaderMap) -> Option<Failure> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let code: u8 = text(STATUS).parse().ok().filter(|code| *code != 0)?;
    let message = percent_decode_str(text(MESSAGE)).decode_utf8_lossy();
    let message = excerpt(&message, WIRE_TEXT_BYTES_MAX);
    let told = read_error(&Status { code, message: message.clone(), details: text(STATUS_DETAILS).to_owned() });
    let pause = told.retry_after_s.map(|seconds| Duration::from_secs(seconds.into()));
    let error = CallError::refused(told.protocol_error(None), None, Some((code.into(), message)));
    let error = error.with_retry_after(pause);
    Some(match error.protocol_error() {
        Some(ProtocolError::VersionNotSupported { .. }) => Failure::NotHere(error),
        _ => Failure::Failed(error),
    })
}
