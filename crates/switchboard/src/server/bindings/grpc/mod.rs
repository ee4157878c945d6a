//! The gRPC binding: two services, `lf.a2a.v1.A2AService` of A2A 1.0 and `a2a.v1.A2AService` of 0.3, on the port of everything
//! else and told apart from it by their content type. A call goes the same way as over the other bindings; what is gRPC's own
//! is in `call` (what stands in a request's metadata), `frame` (messages on the wire), `status` (how a call ends), `stream`
//! (the bodies of answers) and `respond` (their heads).

mod call;
mod frame;
mod respond;
mod status;
pub(crate) mod stream;

use std::pin::{Pin, pin};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use http_body::Body;
use switchboard_core::call::{Reply, UpdateStream};
use switchboard_core::dialect::detect::{Door, Refusal};
use switchboard_core::dialect::{Dialect, Package};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::AgentCard;
use tokio::time::{Duration, Instant, timeout_at};

use self::call::{Called, deadline};
use self::status::Ending;
use self::stream::GrpcBody;
use crate::server::bindings::Calling;
use crate::server::edge::body::{ReplyBody, read_while};
use crate::server::edge::header_names::grpc::{ENCODING, FIRST_EVENT_ID};
use crate::server::edge::note::{Binding, Note, Refused as Mark};
use crate::server::edge::origins::named_authority;
use crate::server::edge::respond::text;
use crate::server::edge::shared::{Head, Mounted, Shared};
use crate::server::operator::metrics::Outcome;

/// Whether a request is a gRPC call, by its content type.
pub(crate) fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    // What follows is a codec or a parameter; `application/grpc-web` is another protocol.
    let rest = kind.get(..GRPC.len()).filter(|kind| kind.eq_ignore_ascii_case(GRPC)).and(kind.get(GRPC.len()..));
    rest.is_some_and(|rest| rest.first().is_none_or(|next| matches!(next, b'+' | b';' | b' ')))
}

const GRPC: &[u8] = b"application/grpc";

/// Answers a call. `gate` is what the gate said about it.
pub(crate) async fn answer<B>(
    shared: &Shared,
    parts: &Parts,
    note: &Note,
    gate: Result<(), &'static str>,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    note.binding(Binding::Grpc);
    if parts.version < Version::HTTP_2 {
        return text(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2\n");
    }
    if parts.method != Method::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "a gRPC call is a POST\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    if !takes_protobuf(&parts.headers) {
        return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, "messages are protobuf: application/grpc+proto\n");
    }
    let called = Called::parse(parts.uri.path(), shared.mount.base_of(parts));
    let package = called.as_ref().map_or(Package::V1_0, |called| called.package);
    let answered = async {
        gate.map_err(|why| ProtocolError::PermissionDenied { reason: why.to_owned() })?;
        let unknown = || ProtocolError::MethodNotFound { method: format!("{:.200}", parts.uri.path()), hint: None };
        let called = called.as_ref().ok_or_else(unknown)?;
        let site = shared.site(named_authority(&parts.uri, &parts.headers));
        let agent = site.agent(called.agent.as_deref()).ok_or_else(unknown)?;
        let head = Head { uri: &parts.uri, headers: &parts.headers, note };
        serve(shared, agent, called, &head, body).await
    };
    answered.await.unwrap_or_else(|refused: Refused| refused.response(package))
}

fn takes_protobuf(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let codec = kind.get(GRPC.len()..).unwrap_or_default();
    let codec = codec.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    codec.is_empty() || codec.eq_ignore_ascii_case(b"+proto")
}

/// Why a call was not answered.
enum Refused {
    /// In the protocol's words.
    InWords(ProtocolError),
    /// In gRPC's own.
    InGrpc(Ending),
}

impl From<ProtocolError> for Refused {
    fn from(error: ProtocolError) -> Self {
        Self::InWords(error)
    }
}

impl Refused {
    fn response(self, package: Package) -> Response<ReplyBody> {
        match self {
            Self::InWords(error) => {
                let mut response = respond::ended(&Ending::of(package, &error));
                Mark::mark(&mut response, &error);
                response
            }
            Self::InGrpc(ending) => {
                let mut response = respond::ended(&ending);
                let mark = Mark { code: ending.code().into(), reason: "GRPC", outcome: Outcome::Refused };
                response.extensions_mut().insert(mark);
                response
            }
        }
    }
}

async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    called: &Called<'_>,
    head: &Head<'_>,
    body: B,
) -> Result<Response<ReplyBody>, Refused>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let package = called.package;
    head.note.agent(agent);
    // Authentication looks at metadata alone, before a byte of the body is read.
    let identity = shared.identify(head)?;
    let verdict = shared.dialect(agent, head, Door::Grpc(package));
    let dialect = verdict.map_err(|Refusal { error, .. }| error)?.dialect;
    let deadline = deadline(head.headers)?;
    let message = {
        let reading = pin!(read_message(shared, head.headers, body));
        before(deadline, reading).await
    };
    let message = message.unwrap_or_else(|| Err(Refused::InGrpc(Ending::deadline(package))))?;
    let decoded = package.read_call(called.method, message, &shared.decode_limits)?;
    let mut caller = shared.caller(agent, &identity, decoded.tenant.as_deref(), dialect, head)?;
    caller.takes_frames = true;
    let resumes = caller.last_event_id.is_some();
    let mut calling = Calling::begin(head.note, agent, caller, decoded.request);
    let reply = {
        let replying = pin!(calling.reply());
        before(deadline, replying).await
    };
    let Some(reply) = reply else {
        return Err(Refused::InGrpc(Ending::deadline(package)));
    };
    let mut response = match reply {
        Ok(Reply::Stream(updates)) => stream(shared, package, dialect, updates, deadline, resumes).await?,
        Ok(reply) => whole(agent, package, reply)?,
        Err(error) => return Err(Refused::InWords(error)),
    };
    calling.mark(dialect, &mut response);
    Ok(response)
}

/// Waits at most until the caller's own deadline; none if it passed. What is waited for stays where it is: it would be
/// copied on its way into here and again into the clock's hands.
async fn before<T>(deadline: Option<Instant>, waiting: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline, waiting).await.ok(),
        None => Some(waiting.await),
    }
}

/// Reads the one message of a call. Its limit is the limit of a body over the other bindings.
async fn read_message<B>(shared: &Shared, headers: &HeaderMap, body: B) -> Result<Bytes, Refused>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    let encoding = headers.get(ENCODING).map(HeaderValue::as_bytes).filter(|encoding| *encoding != b"identity");
    if let Some(encoding) = encoding {
        return Err(Refused::InGrpc(Ending::unknown_encoding(&String::from_utf8_lossy(encoding))));
    }
    let bytes_max = shared.limits.body_bytes_max;
    let too_large = || ProtocolError::TooLarge { what: "message".into(), bytes_max: bytes_max as u64 };
    // A message says how long it is in its first bytes, and what is too long is not read any further.
    let watch = |come: &[u8]| match frame::declared(come) {
        Some(length) if length > bytes_max => Err(too_large()),
        Some(_) | None => Ok(()),
    };
    let patience = Duration::from_secs(u64::from(shared.limits.body_read_s_max));
    let body = read_while(headers, body, bytes_max.saturating_add(frame::PREFIX_BYTES), patience, watch).await;
    let body = body.map_err(|error| match error {
        ProtocolError::TooLarge { .. } => too_large(),
        error => error,
    })?;
    frame::unframe(body).map_err(Refused::InGrpc)
}

/// The answer of a call that has one.
fn whole(agent: &Mounted, package: Package, reply: Reply) -> Result<Response<ReplyBody>, Refused> {
    // Only the server knows the addresses it is reached at.
    let reply = match reply {
        Reply::Card(card) => {
            Reply::Card(AgentCard { supported_interfaces: agent.interfaces.clone(), ..(*card).clone() }.into())
        }
        reply => reply,
    };
    let message = frame::framed(|out| package.write_reply(&reply, out)).map_err(Refused::InGrpc)?;
    Ok(respond::success(GrpcBody::whole(message)))
}

/// The answer of a call that goes on. Messages of gRPC carry no number of their own, so the head of the answer has that of the
/// first one, and from there a client counts. The first update is at hand at once, unless the agent may yet answer with a
/// message; a stream that is resumed may have none for long, and whoever resumes knows the number already.
async fn stream(
    shared: &Shared,
    package: Package,
    dialect: Dialect,
    mut updates: UpdateStream,
    deadline: Option<Instant>,
    resumes: bool,
) -> Result<Response<ReplyBody>, Refused> {
    let next = std::future::poll_fn(|cx| updates.as_mut().poll_next(cx));
    let patience = Duration::from_millis(u64::from(shared.limits.first_update_wait_ms));
    let first = if resumes {
        let until = deadline.map_or(Instant::now() + patience, |deadline| deadline.min(Instant::now() + patience));
        timeout_at(until, next).await.ok()
    } else {
        Some(before(deadline, pin!(next)).await.ok_or(Refused::InGrpc(Ending::deadline(package)))?)
    };
    let first = match first {
        Some(Some(Err(error))) => return Err(Refused::InWords(error)),
        Some(Some(Ok(frame))) => stream::First::Frame(frame),
        Some(None) => stream::First::End,
        None => stream::First::NotYet,
    };
    let seq = first.seq();
    let bytes_max = shared.limits.stream_write_bytes;
    let body = GrpcBody::stream(package, dialect, first, updates, deadline, bytes_max, shared.metrics.clone());
    let mut response = respond::success(body);
    if let Some(seq) = seq {
        response.headers_mut().insert(FIRST_EVENT_ID, seq.into());
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
