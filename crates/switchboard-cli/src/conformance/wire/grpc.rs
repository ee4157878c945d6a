//! gRPC: one message out, one or many back, and the trailers that say how the call ended.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderValue, Method, Request};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use switchboard::outbound::{ErrorKind, RequestLimits};
use tokio::time::{Instant, timeout};

use super::http::method;
use super::proto::{self, Field, v0_3, v1};
use super::{
    Events, Interface, Meaning, Operation, Options, Raw, Refused, Reply, STREAM_BYTES_MAX, STREAM_EVENTS_MAX,
    StreamEnd, StreamEvent, Streamed, Version, Wire, error_info, shown,
};

/// Whether a message is compressed, and how long it is.
const PREFIX_BYTES: usize = 5;
/// Headers may carry base64 with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A message, and when it came.
type Received = (Bytes, Duration);

/// The messages of a call, and how it ended.
struct Answered {
    raw: Raw,
    messages: Vec<Received>,
    end: StreamEnd,
    head_after: Duration,
}

impl Wire {
    pub(super) async fn call_grpc(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<Reply, String> {
        let (name, written) = written(to, operation, params)?;
        let answered = self.invoke_grpc(to, name, written, options, &mut |_| false).await?;
        Ok(reply(to, operation, answered))
    }

    /// Calls a method that no service has.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn call_grpc_method(
        &self,
        to: &Interface,
        name: &str,
        options: &Options,
    ) -> Result<Reply, String> {
        let answered = self.invoke_grpc(to, name, Vec::new(), options, &mut |_| false).await?;
        Ok(reply(to, Operation::DeletePush, answered))
    }

    pub(super) async fn stream_grpc(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Streamed, String> {
        let (name, written) = written(to, operation, params)?;
        let mut all = Vec::new();
        let mut received = |message: &Received| {
            all.push(event(to, message));
            enough(&all)
        };
        let answered = self.invoke_grpc(to, name, written, options, &mut received).await?;
        let is_refused = answered.raw.header("grpc-status") != "0" && !answered.raw.header("grpc-status").is_empty();
        if is_refused && answered.messages.is_empty() {
            return Ok(Streamed::Whole(Box::new(reply(to, operation, answered))));
        }
        let end = match answered.end {
            StreamEnd::Closed if is_refused => StreamEnd::Broken(format!(
                "the call ended with the status {}",
                shown(answered.raw.header("grpc-status"))
            )),
            end => end,
        };
        Ok(Streamed::Events(Box::new(Events {
            all,
            raw: answered.raw,
            end,
            head_after: answered.head_after,
            asked_id: Value::Null,
        })))
    }

    async fn invoke_grpc(
        &self,
        to: &Interface,
        name: &str,
        message: Vec<u8>,
        options: &Options,
        enough: &mut dyn FnMut(&Received) -> bool,
    ) -> Result<Answered, String> {
        let started = Instant::now();
        let request = self.grpc_request(to, name, &message, options)?;
        let mut limits = RequestLimits::stream();
        (limits.head, limits.idle) = (Some(self.timeout), Some(self.timeout));
        limits.connect = limits.connect.min(self.timeout);
        let client = self.client(request.uri());
        let (head, mut body) = client.send_http2(request, &limits).await.map_err(|error| error.to_string())?;
        let (opened, head_after) = (Instant::now(), started.elapsed());
        let mut raw = Raw { status: head.status.as_u16(), headers: head.headers, body: Bytes::new() };
        let (mut buffer, mut messages, mut read_bytes) = (BytesMut::new(), Vec::new(), 0);
        let is_grpc = raw.media_type().starts_with("application/grpc");
        let end = loop {
            let left = self.timeout.saturating_sub(opened.elapsed());
            let chunk = match timeout(left, body.chunk()).await {
                Err(_) => break StreamEnd::TimedOut,
                Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => break StreamEnd::TimedOut,
                Ok(Err(error)) => break StreamEnd::Broken(error.to_string()),
                Ok(Ok(None)) => break StreamEnd::Closed,
                Ok(Ok(Some(chunk))) => chunk,
            };
            read_bytes += chunk.len();
            buffer.extend_from_slice(&chunk);
            let mut has_enough = false;
            while let Some(message) = next_message(&mut buffer).filter(|_| is_grpc) {
                let received = (message, opened.elapsed());
                has_enough |= enough(&received);
                messages.push(received);
            }
            if read_bytes > STREAM_BYTES_MAX || messages.len() > STREAM_EVENTS_MAX {
                break StreamEnd::Broken("the checker reads no more: the answer is too long".to_owned());
            }
            if has_enough {
                break StreamEnd::Left;
            }
        };
        if end == StreamEnd::Closed
            && let Ok(Some(trailers)) = body.trailers().await
        {
            raw.headers.extend(trailers);
        }
        raw.body = buffer.freeze();
        Ok(Answered { raw, messages, end, head_after })
    }

    fn grpc_request(
        &self,
        to: &Interface,
        name: &str,
        message: &[u8],
        options: &Options,
    ) -> Result<Request<Bytes>, String> {
        let service = match to.version {
            Version::V1_0 => "lf.a2a.v1.A2AService",
            Version::V0_3 | Version::V0_2 => "a2a.v1.A2AService",
        };
        let length = u32::try_from(message.len()).map_err(|_| "the message is too long".to_owned())?;
        let mut body = vec![0];
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(message);
        let mut request = Request::new(Bytes::from(body));
        *request.method_mut() = Method::POST;
        let url = format!("{}/{service}/{name}", to.url.trim_end_matches('/'));
        *request.uri_mut() = url.parse().map_err(|_| format!("{} is no URL", shown(&url)))?;
        *request.headers_mut() = self.headers(to, options);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
        Ok(request)
    }
}

/// The name of the method, and its message.
fn written(to: &Interface, operation: Operation, params: &Value) -> Result<(&'static str, Vec<u8>), String> {
    let none = || format!("A2A {} has no call for {operation:?} on gRPC", to.version.name());
    let mut json = to.form().params(operation, params).ok_or_else(none)?;
    let (name, fields): (_, &[Field]) = match (to.version, operation) {
        (Version::V1_0, operation) => {
            if let Some(tenant) = &to.tenant {
                json["tenant"] = json!(tenant);
            }
            (method(Version::V1_0, operation), v1_request(operation))
        }
        (Version::V0_3 | Version::V0_2, operation) => match operation {
            Operation::Send => ("SendMessage", v0_3::SEND),
            Operation::Stream => ("SendStreamingMessage", v0_3::SEND),
            Operation::Get => ("GetTask", v0_3::NAME),
            Operation::Cancel => ("CancelTask", v0_3::NAME),
            Operation::Subscribe => ("TaskSubscription", v0_3::NAME),
            Operation::CreatePush => ("CreateTaskPushNotificationConfig", v0_3::CREATE_PUSH),
            Operation::GetPush => ("GetTaskPushNotificationConfig", v0_3::NAME),
            Operation::ListPush => ("ListTaskPushNotificationConfig", v0_3::PARENT),
            Operation::DeletePush => ("DeleteTaskPushNotificationConfig", v0_3::NAME),
            Operation::ExtendedCard => ("GetAgentCard", proto::EMPTY),
            Operation::List => return Err(none()),
        },
    };
    Ok((name, proto::write(fields, &json)))
}

fn v1_request(operation: Operation) -> &'static [Field] {
    match operation {
        Operation::Send | Operation::Stream => v1::SEND,
        Operation::Get | Operation::Cancel | Operation::Subscribe => v1::GET,
        Operation::List => v1::LIST,
        Operation::CreatePush => v1::PUSH_CONFIG,
        Operation::GetPush | Operation::DeletePush => v1::GET_PUSH,
        Operation::ListPush => v1::LIST_PUSH,
        Operation::ExtendedCard => v1::TENANT,
    }
}

fn response(version: Version, operation: Operation) -> &'static [Field] {
    let is_new = version == Version::V1_0;
    match operation {
        Operation::Send | Operation::Stream | Operation::Subscribe if is_new => v1::STREAM_RESPONSE,
        Operation::Send | Operation::Stream | Operation::Subscribe => v0_3::STREAM_RESPONSE,
        Operation::Get | Operation::Cancel if is_new => v1::TASK,
        Operation::Get | Operation::Cancel => v0_3::TASK,
        Operation::List => v1::LISTED,
        Operation::CreatePush | Operation::GetPush if is_new => v1::PUSH_CONFIG,
        Operation::CreatePush | Operation::GetPush => v0_3::PUSH_CONFIG,
        Operation::ListPush if is_new => v1::PUSH_CONFIGS,
        Operation::ListPush => v0_3::PUSH_CONFIGS,
        Operation::DeletePush => proto::EMPTY,
        // The first fields of cards are the same in both versions.
        Operation::ExtendedCard => v1::CARD,
    }
}

fn event(to: &Interface, (message, after): &Received) -> StreamEvent {
    let (payload, fault) = match proto::read(response(to.version, Operation::Stream), message) {
        Ok(payload) => (payload, None),
        Err(why) => (Value::Null, Some(why)),
    };
    StreamEvent { json: payload.clone(), payload, fault, after: *after }
}

/// The next message behind its length, if all of it is there.
fn next_message(buffer: &mut BytesMut) -> Option<Bytes> {
    let [_, length @ ..] = *buffer.first_chunk::<PREFIX_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
    if buffer.len() < PREFIX_BYTES + length {
        return None;
    }
    buffer.advance(PREFIX_BYTES);
    Some(buffer.split_to(length).freeze())
}

fn reply(to: &Interface, operation: Operation, answered: Answered) -> Reply {
    let raw = answered.raw;
    let meaning = match raw.header("grpc-status").parse::<i64>() {
        Err(_) => match answered.end {
            StreamEnd::Closed => Meaning::Nothing(format!("no status of gRPC: {}", raw.shown())),
            end => Meaning::Nothing(format!("the call did not end: {end:?}")),
        },
        Ok(0) => match answered.messages.first() {
            Some((message, _)) => match proto::read(response(to.version, operation), message) {
                Ok(json) => Meaning::Result(json),
                Err(why) => Meaning::Nothing(format!("the answer is no message of this call: {why}")),
            },
            None => Meaning::Nothing("the status OK, and no message".to_owned()),
        },
        Ok(code) => Meaning::Refused(refused(&raw, code)),
    };
    Reply { raw, meaning }
}

fn refused(raw: &Raw, code: i64) -> Refused {
    let details = BASE64.decode(raw.header("grpc-status-details-bin").trim()).unwrap_or_default();
    let json = proto::read_status(&details).unwrap_or_default();
    let (reason, domain) = error_info(&json["details"]);
    let message = percent_decode_str(raw.header("grpc-message")).decode_utf8_lossy().into_owned();
    Refused { code, message, reason, domain, json }
}
