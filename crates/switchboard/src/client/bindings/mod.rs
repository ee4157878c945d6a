//! One exchange with an agent: writes the request of a call in the form of its target, sends it, and reads the head of the answer:
//! a reply, a refusal, or the beginning of a stream. Whether it is made again is decided elsewhere.

#[cfg(feature = "grpc")]
mod grpc;
mod http_json;
mod jsonrpc;
mod nested_base64;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use switchboard_core::call::{Caller, Reply, Request};
use switchboard_core::dialect::json::{DecodeLimits, excerpt};
use switchboard_core::dialect::wire::ReceivedError;
use switchboard_core::dialect::{Dialect, OutgoingCall, Transport, WrittenCall};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::Update;
use tokio::time::{Instant, timeout_at};

use super::credentials::Proof;
use super::http::{AnswerBody, Http, Named, escaped, read, read_at_most, read_refusal};
use super::interceptor::Received;
use super::negotiation::{Form, Target};
use super::sse::{SseEvent, SseParser};
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::{RequestLimits, retry_after_ms};

/// The text of an error that a server sent is kept up to this length.
const WIRE_TEXT_BYTES_MAX: usize = 4_096;

pub(super) const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
/// What it was called before 1.0.
const X_A2A_EXTENSIONS: HeaderName = HeaderName::from_static("x-a2a-extensions");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The headers of an ordinary call, with those that the connection adds; room for them is made at once.
const HEADERS_USUAL: usize = 10;
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// One call on its way to one place.
pub(super) struct Exchange<'a> {
    pub(super) http: &'a Http,
    pub(super) named: &'a Named,
    pub(super) target: &'a Target,
    pub(super) request: &'a Request,
    pub(super) caller: &'a Caller,
    pub(super) proof: &'a Proof,
    /// Until when the answer, or the beginning of the stream, must be there.
    pub(super) until: Instant,
    /// How long that was from the beginning of the call, for the text of an error.
    pub(super) limit: Duration,
}

/// What a call was answered with.
pub(super) enum Answered {
    Reply(Reply),
    Events(EventReader),
}

/// Why an exchange came to nothing.
pub(super) enum Failure {
    /// The agent is not there, or not in this version; it may be at the next place. The call was not begun.
    NotHere(CallError),
    Failed(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error.kind() {
            CallErrorKind::Unreachable | CallErrorKind::NotAllowed => Self::NotHere(error),
            _ => Self::Failed(error),
        }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotHere(error) | Failure::Failed(error) => error,
        }
    }
}

/// The events of a stream as they are read.
pub(super) enum EventReader {
    Sse(Box<SseReader>),
    #[cfg(feature = "grpc")]
    Grpc(Box<grpc::GrpcReader>),
}

impl EventReader {
    /// The next update; none at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<ReceivedUpdate>, CallError> {
        match self {
            Self::Sse(reader) => reader.next().await,
            #[cfg(feature = "grpc")]
            Self::Grpc(reader) => reader.next().await,
        }
    }

    /// Ends with a stream that has nothing more to say.
    pub(super) fn release(self) {
        match self {
            Self::Sse(reader) => reader.body.release(),
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => {}
        }
    }
}

/// Server-sent events.
pub(super) struct SseReader {
    body: AnswerBody,
    parser: SseParser,
    /// What has come and was not parsed yet.
    rest: Bytes,
    dialect: Dialect,
    /// Whether each event is a response of JSON-RPC.
    has_envelope: bool,
    limits: DecodeLimits,
}

/// One update as it came.
pub(super) struct ReceivedUpdate {
    /// The id of the event, by which a stream is resumed.
    pub(super) id: Option<String>,
    pub(super) update: Update,
}

/// A request in the form that HTTP sends.
struct HttpCall {
    verb: &'static str,
    uri: Uri,
    content_type: Option<HeaderValue>,
    accept: HeaderValue,
    body: Bytes,
}

/// The body that sets a push config over 0.3's HTTP+JSON, which servers read in two ways.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PushBody {
    /// The whole request: most servers.
    Whole,
    /// What is in its `config`, as the proto has it: @a2a-js/sdk 1.x.
    ConfigAlone,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream, application/json");

impl Exchange<'_> {
    /// Makes the call.
    pub(super) async fn make(&self) -> Result<Answered, Failure> {
        if !self.proof.is_empty()
            && self.target.uri.scheme_str() == Some("http")
            && !self.named.covers(&self.target.uri)
        {
            let why = format!(
                "credentials are not sent over http to {}, which the card names and the user does not",
                self.target.uri.authority().map_or("", |authority| authority.as_str())
            );
            return Err(Failure::NotHere(CallError::new(CallErrorKind::NotAllowed, why)));
        }
        let late = || Failure::Failed(CallError::timed_out(self.limit).having_arrived());
        // The limits of an HTTP request keep the deadline of a whole answer, so a second timer is not set for it.
        if self.is_within_request_limits() {
            return match self.make_now().await {
                Err(Failure::Failed(_)) if Instant::now() >= self.until => Err(late()),
                outcome => outcome,
            };
        }
        timeout_at(self.until, self.make_now()).await.unwrap_or_else(|_| Err(late()))
    }

    fn is_within_request_limits(&self) -> bool {
        !self.is_streamed() && matches!(self.target.form, Form::JsonRpc(_) | Form::Http(_))
    }

    async fn make_now(&self) -> Result<Answered, Failure> {
        let (over, dialect) = match self.target.form {
            Form::JsonRpc(dialect) => (Transport::JsonRpc, dialect),
            Form::Http(dialect) => (Transport::Http, dialect),
            #[cfg(feature = "grpc")]
            Form::Grpc(package) => return Box::pin(grpc::call(self, package)).await,
        };
        let answer = self.send(dialect, over, PushBody::Whole).await?;
        match self.read(dialect, answer).await {
            Err(Failure::Failed(error)) if self.wants_config_alone(dialect, &error) => {
                let answer = self.send(dialect, over, PushBody::ConfigAlone).await?;
                self.read(dialect, answer).await
            }
            answered => answered,
        }
    }

    /// Whether the server refused the body that sets a push config because it reads another one.
    fn wants_config_alone(&self, dialect: Dialect, error: &CallError) -> bool {
        dialect == Dialect::V0_3Rest
            && matches!(self.request, Request::CreatePushConfig(_))
            && matches!(error.protocol_error(), Some(ProtocolError::InvalidParams { .. }))
    }

    fn written(&self, dialect: Dialect, over: Transport, push: PushBody) -> Result<http::Request<Bytes>, CallError> {
        let call = OutgoingCall {
            request: self.request,
            over,
            tenant: self.target.tenant.as_deref(),
            idempotency_key: self.caller.idempotency_key.as_deref(),
        };
        let call = match dialect.write_call(&call).map_err(CallError::unwritable)? {
            WrittenCall::JsonRpc { method, params } => jsonrpc::request(self, method, &params),
            WrittenCall::Http { verb, path, mut body } => {
                if push == PushBody::ConfigAlone {
                    body = http_json::config_alone(&body).unwrap_or(body);
                }
                http_json::request(self, verb, &path, body)?
            }
        };
        let mut request = http::Request::new(call.body);
        *request.method_mut() = call.verb.parse().map_err(|_| unsendable("the method"))?;
        *request.uri_mut() = with_query(call.uri, self.proof)?;
        let headers = request.headers_mut();
        headers.reserve(HEADERS_USUAL);
        self.put_headers(headers)?;
        headers.insert(ACCEPT, call.accept);
        call.content_type.map(|content_type| headers.insert(CONTENT_TYPE, content_type));
        Ok(request)
    }

    fn is_streamed(&self) -> bool {
        matches!(self.request, Request::SendStreamingMessage(_) | Request::SubscribeToTask { .. })
    }

    async fn send(&self, dialect: Dialect, over: Transport, push: PushBody) -> Result<Response<AnswerBody>, CallError> {
        let left = self.until.saturating_duration_since(Instant::now());
        let mut limits = if self.is_streamed() { RequestLimits::stream() } else { RequestLimits::default() };
        if self.is_streamed() {
            limits.head = Some(left);
            limits.idle = Some(self.http.limits.stream_idle);
        } else {
            limits.total = Some(left);
            limits.body_bytes_max = Some(self.http.limits.reply_bytes_max);
        }
        // Whether a message is sent again is decided by the caller, who keeps in mind that it may have arrived.
        let is_send = matches!(self.request, Request::SendMessage(_) | Request::SendStreamingMessage(_));
        self.http.send(|| self.written(dialect, over, push), &limits, self.named, !is_send).await
    }

    fn put_headers(&self, headers: &mut HeaderMap) -> Result<(), CallError> {
        let version = self.target.form.version();
        if let Some(version) = version {
            headers.insert(A2A_VERSION, HeaderValue::from_static(version));
        }
        let mut put = |name: HeaderName, value: Option<&str>| -> Result<(), CallError> {
            if let Some(value) = value {
                let value = HeaderValue::from_str(value).map_err(|_| unsendable(name.as_str()))?;
                headers.insert(name, value);
            }
            Ok(())
        };
        if !self.caller.extensions.is_empty() {
            let name = if version == Some("1.0") { A2A_EXTENSIONS } else { X_A2A_EXTENSIONS };
            put(name, Some(&self.caller.extensions.join(", ")))?;
        }
        put(IDEMPOTENCY_KEY, self.caller.idempotency_key.as_deref())?;
        put(LAST_EVENT_ID, self.caller.last_event_id.as_deref())?;
        if let Some(trace) = &self.caller.trace {
            put(TRACEPARENT, Some(&trace.trace_parent()))?;
            put(TRACESTATE, trace.trace_state())?;
        }
        if !self.proof.headers.is_empty() {
            headers.extend(self.proof.headers.clone());
        }
        Ok(())
    }

    async fn read(&self, dialect: Dialect, answer: Response<AnswerBody>) -> Result<Answered, Failure> {
        let (head, mut body) = answer.into_parts();
        let status = head.status.as_u16();
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !head.status.is_success() {
            return Err(self.refusal(dialect, status, &head.headers, &read_refusal(body).await));
        }
        // agent-native says nothing about the type of its streams.
        let is_untyped_stream = self.is_streamed() && media_type.is_empty();
        let begun = match is_untyped_stream {
            true => body.chunk().await?.unwrap_or_default(),
            false => Bytes::new(),
        };
        // The first letter of a comment, or of `data`, `event`, `id` or `retry`. JSON begins with none of them.
        let looks_like_events = matches!(begun.first(), Some(b':' | b'd' | b'e' | b'i' | b'r'));
        if media_type.eq_ignore_ascii_case("text/event-stream") || looks_like_events {
            let mut events = Box::new(SseReader {
                body,
                parser: SseParser::new(self.http.limits.event_bytes_max),
                rest: begun,
                dialect,
                has_envelope: matches!(self.target.form, Form::JsonRpc(_)),
                limits: self.http.limits.decode,
            });
            return match self.is_streamed() {
                true => Ok(Answered::Events(EventReader::Sse(events))),
                // Some servers stream whatever they are asked. The first event that answers the call is its answer.
                false => match events.next_event().await? {
                    Some(event) => self.reply(dialect, event.data.as_bytes(), status, media_type).map(Answered::Reply),
                    None => Err(CallError::invalid_answer("the answer is a stream without events").into()),
                },
            };
        }
        let body = match self.is_streamed() {
            // The limits of a stream do not bound its size.
            true => read_at_most(begun, body, self.http.limits.reply_bytes_max).await?,
            false => read(body).await?,
        };
        self.reply(dialect, &body, status, media_type).map(Answered::Reply)
    }

    /// Reads the body of an answer that says it is one.
    fn reply(&self, dialect: Dialect, body: &[u8], status: u16, media_type: &str) -> Result<Reply, Failure> {
        // The answers to these calls are read to their end and in the usual form stand last in their envelope, which then need not be
        // read on its own.
        if matches!(self.target.form, Form::JsonRpc(Dialect::V1_0 | Dialect::V0_3))
            && matches!(self.request, Request::SendMessage(_) | Request::GetTask { .. })
            && let Some(result) = jsonrpc::last_result(body)
            && let Ok(reply) = dialect.read_reply(self.request, result, &self.http.limits.decode)
        {
            return Ok(reply);
        }
        let result = match matches!(self.target.form, Form::JsonRpc(_)) {
            true => match jsonrpc::open(body) {
                jsonrpc::Opened::Result(result) => result,
                jsonrpc::Opened::Refusal => {
                    return Err(self.refusal(dialect, status, &HeaderMap::new(), body));
                }
                jsonrpc::Opened::Neither => return Err(not_a2a(media_type, "no JSON-RPC response").into()),
            },
            false => body,
        };
        let reply = dialect.read_reply(self.request, result, &self.http.limits.decode);
        let reply = reply.map_err(|error| not_a2a(media_type, &error.to_string()))?;
        Ok(if dialect == Dialect::V0_3Rest { nested_base64::unwrap_reply(reply) } else { reply })
    }

    /// What a refusal means.
    fn refusal(&self, dialect: Dialect, status: u16, headers: &HeaderMap, body: &[u8]) -> Failure {
        let read = dialect.read_error(body, Some(status));
        let is_read = read.is_some();
        let error = refused(read, Some(status));
        let pause = retry_after_ms(headers).map(Duration::from_millis);
        let error = error.with_retry_after(pause);
        let is_absent = matches!(status, 404 | 405) && !is_read;
        let is_other_version = matches!(error.protocol_error(), Some(ProtocolError::VersionNotSupported { .. }));
        if is_absent || is_other_version { Failure::NotHere(error) } else { Failure::Failed(error) }
    }
}

/// A refusal as it was read, or a status alone.
fn refused(read: Option<ReceivedError>, status: Option<u16>) -> CallError {
    // The status of a success says nothing about the refusal in its body.
    let status_of_error = status.filter(|status| *status >= 300);
    let told = read.unwrap_or_default();
    let refusal = told.protocol_error(status_of_error);
    CallError::refused(refusal, status, Some((told.code, excerpt(&told.message, WIRE_TEXT_BYTES_MAX))))
}

fn unsendable(what: &str) -> CallError {
    CallError::new(CallErrorKind::InvalidRequest, format!("{what} cannot be sent over HTTP"))
}

fn not_a2a(media_type: &str, why: &str) -> CallError {
    let media_type = if media_type.is_empty() { "nothing said about its type" } else { media_type };
    CallError::invalid_answer(format!("the answer ({}) is not one of A2A: {why}", excerpt(media_type, 64)))
}

fn with_query(uri: Uri, proof: &Proof) -> Result<Uri, CallError> {
    if proof.query.is_empty() {
        return Ok(uri);
    }
    let mut text = uri.to_string();
    for (name, value) in &proof.query {
        let joint = if text.contains('?') { '&' } else { '?' };
        text.push_str(&format!("{joint}{}={}", escaped(name), escaped(value)));
    }
    // The text of the error names nothing, because the key is secret.
    text.parse().map_err(|_| unsendable("the URL with its key"))
}

impl SseReader {
    async fn next(&mut self) -> Result<Option<ReceivedUpdate>, CallError> {
        let Some(event) = self.next_event().await? else { return Ok(None) };
        let data = event.data.as_bytes();
        let told = || refused(self.dialect.read_error(data, None), None);
        let result = match self.has_envelope {
            true => match jsonrpc::open(data) {
                jsonrpc::Opened::Result(result) => result,
                jsonrpc::Opened::Refusal => return Err(told()),
                jsonrpc::Opened::Neither => return Err(not_a2a("text/event-stream", "no JSON-RPC response")),
            },
            false if event.kind == "error" => return Err(told()),
            false => data,
        };
        match self.dialect.read_update(result, &self.limits) {
            Ok(update) if self.dialect == Dialect::V0_3Rest => {
                Ok(Some(ReceivedUpdate { id: event.id, update: nested_base64::unwrap_update(update) }))
            }
            Ok(update) => Ok(Some(ReceivedUpdate { id: event.id, update })),
            // Some servers send a refusal as an event like any other.
            Err(_) if self.dialect.read_error(data, None).is_some() => Err(told()),
            Err(error) => Err(not_a2a("text/event-stream", &error.to_string())),
        }
    }

    /// The next event that has data. Cancelling loses nothing.
    async fn next_event(&mut self) -> Result<Option<SseEvent>, CallError> {
        loop {
            while !self.rest.is_empty() {
                let Ok((taken, event)) = self.parser.take(&self.rest) else {
                    let max = self.parser.event_bytes_max();
                    let error = CallError::invalid_answer(format!("an event of the stream is larger than {max} bytes"));
                    self.body.show(Received::Failed(&error));
                    return Err(error);
                };
                self.rest = self.rest.slice(taken..);
                // An event without content only keeps the connection open.
                if let Some(event) = event.filter(|event| !event.data.is_empty()) {
                    let SseEvent { id, kind, data } = &event;
                    self.body.show(Received::Event { id: id.as_deref(), kind, data });
                    return Ok(Some(event));
                }
            }
            match self.body.chunk().await? {
                Some(chunk) => self.rest = chunk,
                None => {
                    self.body.show(Received::End { trailers: None });
                    return Ok(None);
                }
            }
        }
    }
}
