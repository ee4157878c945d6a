//! The gRPC binding: two services, `lf.a2a.v1.A2AService` of A2A 1.0 and `a2a.v1.A2AService` of 0.3, on the port of everything
//! else and told apart from it by their content type. A call goes the same way as over the other bindings; what is gRPC's own
//! is in `status` (how a call ends) and `stream` (messages on the wire, and the bodies of answers).

mod status;
pub(crate) mod stream;

use std::pin::{Pin, pin};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use switchboard_core::call::{Caller, Reply, UpdateStream};
use switchboard_core::dialect::detect::{Detected, Ingress};
use switchboard_core::dialect::json::Decoded;
use switchboard_core::dialect::{Dialect, Package};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::AgentCard;
use tokio::time::{Duration, Instant, timeout_at};

use self::status::GrpcStatus;
use self::stream::GrpcBody;
use super::envelope::Envelope;
use super::{Binding, Rejection};
use crate::server::authentication::BEARER_CHALLENGE;
use crate::server::cards;
use crate::server::exchange::headers::grpc::{ACCEPT_ENCODING, ENCODING, FIRST_EVENT_ID, TIMEOUT};
use crate::server::exchange::refused::Refused;
use crate::server::exchange::respond::{ReplyBody, text};
use crate::server::metrics::Outcome;
use crate::server::shared::{Incoming, Mounted, Shared};

/// The answer to a request that says it is a gRPC call and cannot be one.
pub(crate) fn misused(parts: &Parts) -> Option<Response<ReplyBody>> {
    if parts.version < Version::HTTP_2 {
        return Some(text(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2\n"));
    }
    if parts.method != Method::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "a gRPC call is a POST\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return Some(response);
    }
    (!takes_protobuf(&parts.headers))
        .then(|| text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are protobuf: application/grpc+proto\n"))
}

fn takes_protobuf(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let codec = kind.get(b"application/grpc".len()..).unwrap_or_default();
    let codec = codec.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    codec.is_empty() || codec.eq_ignore_ascii_case(b"+proto")
}

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// An answer whose messages follow.
fn success(body: GrpcBody) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Streamed(Box::new(body)));
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
    response
}

/// An answer without messages: its head is also its end.
fn ended(ending: &GrpcStatus) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, GRPC);
    // The gRPC specification requires it where the encoding was refused; it is also right in all other answers.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if ending.challenges {
        headers.insert(header::WWW_AUTHENTICATE, BEARER_CHALLENGE);
    }
    ending.write(headers);
    response
}

/// The refusal of a call in the protocol's words.
pub(crate) fn refused(package: Package, error: &ProtocolError) -> Response<ReplyBody> {
    let mut response = ended(&GrpcStatus::of(package, error));
    Refused::mark(&mut response, error);
    response
}

/// The refusal of a call in gRPC's own words.
impl From<GrpcStatus> for Rejection {
    fn from(ending: GrpcStatus) -> Self {
        let mut response = ended(&ending);
        let refused = Refused { code: ending.code().into(), reason: "GRPC", outcome: Outcome::Refused, audited: false };
        response.extensions_mut().insert(refused);
        response.into()
    }
}

pub(crate) struct Grpc {
    package: Package,
    dialect: Dialect,
    /// Until when the caller waits.
    deadline: Option<Instant>,
    /// Whether a stream goes on from where an earlier one ended.
    resumes: bool,
}

impl Grpc {
    pub(crate) fn new(package: Package) -> Self {
        Self { package, dialect: Dialect::V1_0, deadline: None, resumes: false }
    }
}

impl Binding for Grpc {
    fn ingress(&self) -> Option<Ingress<'static>> {
        Some(Ingress::Grpc(self.package))
    }

    fn learn(&mut self, _: &Incoming<'_, '_>, verdict: Detected, _: &Envelope<'_>) {
        self.dialect = verdict.dialect;
    }

    fn check(&mut self, request: &Incoming<'_, '_>) -> Result<(), Rejection> {
        if !request.head.present.grpc_call {
            return Ok(());
        }
        let headers = request.head.headers;
        self.deadline = deadline(headers)?;
        let encoding = headers.get(ENCODING).map(HeaderValue::as_bytes).filter(|encoding| *encoding != b"identity");
        match encoding {
            Some(encoding) => Err(GrpcStatus::unknown_encoding(&String::from_utf8_lossy(encoding)).into()),
            None => Ok(()),
        }
    }

    fn body_bytes_max(&self, request: &Incoming<'_, '_>) -> Option<usize> {
        Some(request.shared.limits.body_bytes_max.saturating_add(stream::PREFIX_BYTES))
    }

    /// A message says how long it is in its first bytes, and what is too long is not read any further.
    fn watch(&self, request: &Incoming<'_, '_>, come: &[u8]) -> Result<(), ProtocolError> {
        match stream::declared(come) {
            Some(length) if length > request.shared.limits.body_bytes_max => Err(too_large(request)),
            Some(_) | None => Ok(()),
        }
    }

    fn patience(&self, request: &Incoming<'_, '_>) -> Duration {
        let patience = Duration::from_secs(u64::from(request.shared.limits.body_read_s_max));
        self.deadline.map_or(patience, |deadline| patience.min(deadline.saturating_duration_since(Instant::now())))
    }

    fn unread(&self, request: &Incoming<'_, '_>, error: ProtocolError) -> Rejection {
        match error {
            ProtocolError::TooLarge { .. } => too_large(request).into(),
            _ if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                GrpcStatus::deadline(self.package).into()
            }
            error => error.into(),
        }
    }

    fn decode(&mut self, request: &Incoming<'_, '_>, _: &Envelope<'_>, body: &Bytes) -> Result<Decoded, Rejection> {
        let message = stream::unframe(body.clone())?;
        let method = request.head.uri.path().rsplit('/').next().unwrap_or_default();
        Ok(self.package.read_call(method, message, &request.shared.decode_limits)?)
    }

    fn set_caller(&mut self, caller: &mut Caller) {
        caller.takes_frames = true;
        self.resumes = caller.last_event_id.is_some();
    }

    async fn wait<T: Send>(&self, waiting: Pin<&mut (impl Future<Output = T> + Send)>) -> Result<T, Rejection> {
        before(self.deadline, waiting).await.ok_or_else(|| GrpcStatus::deadline(self.package).into())
    }

    fn reply(&mut self, agent: &Mounted, reply: Reply) -> Result<Response<ReplyBody>, Rejection> {
        // Only the server knows the addresses it is reached at.
        let reply = match reply {
            Reply::Card(card) => {
                let (supported_interfaces, signatures) = (agent.interfaces.clone(), Vec::new());
                let mut card = AgentCard { supported_interfaces, signatures, ..(*card).clone() };
                card.signatures = cards::signatures(self.dialect, &card, agent.signer.as_ref());
                Reply::Card(card.into())
            }
            reply => reply,
        };
        let message = stream::framed(|out| self.package.write_reply(&reply, out))?;
        Ok(success(GrpcBody::whole(message)))
    }

    /// Messages of gRPC carry no number of their own, so the head of the answer has that of the first one, and from
    /// there a client counts. The first update is at hand at once, unless the agent may yet answer with a message; a
    /// stream that is resumed may have none for long, and its client knows the number already.
    async fn stream(
        &mut self,
        shared: &Shared,
        _: &Mounted,
        mut updates: UpdateStream,
    ) -> Result<Response<ReplyBody>, Rejection> {
        let &mut Self { package, dialect, deadline, resumes } = self;
        let next = std::future::poll_fn(|cx| updates.as_mut().poll_next(cx));
        let patience = Duration::from_millis(u64::from(shared.limits.first_update_wait_ms));
        let first = if resumes {
            let until = deadline.map_or(Instant::now() + patience, |deadline| deadline.min(Instant::now() + patience));
            timeout_at(until, next).await.ok()
        } else {
            Some(self.wait(pin!(next)).await?)
        };
        let first = match first {
            Some(Some(Err(error))) => return Err(Rejection::Error(error)),
            Some(Some(Ok(frame))) => stream::FirstFrame::Frame(frame),
            Some(None) => stream::FirstFrame::End,
            None => stream::FirstFrame::NotYet,
        };
        let seq = first.seq();
        let bytes_max = shared.limits.stream_write_bytes;
        let body = GrpcBody::stream(package, dialect, first, updates, deadline, bytes_max, shared.metrics.clone());
        let mut response = success(body);
        if let Some(seq) = seq {
            response.headers_mut().insert(FIRST_EVENT_ID, seq.into());
        }
        Ok(response)
    }

    fn error(&self, error: &ProtocolError) -> Response<ReplyBody> {
        refused(self.package, error)
    }

    fn marks(&self, refused: bool) -> bool {
        !refused
    }
}

/// Waits at most until the caller's own deadline; none if it passed. The future is taken by reference: by value it
/// would be copied into this function and again into the timeout.
async fn before<T>(deadline: Option<Instant>, waiting: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, waiting).await.ok(),
        None => Some(waiting.await),
    }
}

/// The limit of a message is the limit of a body over the other bindings.
fn too_large(request: &Incoming<'_, '_>) -> ProtocolError {
    let bytes_max = request.shared.limits.body_bytes_max as u64;
    ProtocolError::TooLarge { what: "message".into(), bytes_max }
}

/// Until when the caller waits, from `grpc-timeout`: up to eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, ProtocolError> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let timeout = value.to_str().ok().and_then(parse_timeout);
    let timeout = timeout.ok_or_else(|| ProtocolError::InvalidRequest {
        reason: "grpc-timeout must be up to eight digits and one of H, M, S, m, u, n".to_owned(),
    })?;
    Ok(Instant::now().checked_add(timeout))
}

fn parse_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().last().filter(char::is_ascii)?;
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(number * 3600)),
        'M' => Some(Duration::from_secs(number * 60)),
        'S' => Some(Duration::from_secs(number)),
        'm' => Some(Duration::from_millis(number)),
        'u' => Some(Duration::from_micros(number)),
        'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
