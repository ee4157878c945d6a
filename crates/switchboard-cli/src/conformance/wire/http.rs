//! JSON-RPC and HTTP+JSON: how a call is put into a request, and what its answer means.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request};
use serde_json::{Value, json};
use switchboard::outbound::{ErrorKind, RequestLimits};
use tokio::time::{Instant, timeout};

use super::sse::Parser;
use super::{
    ANSWER_BYTES_MAX, Binding, Events, Interface, Meaning, Operation, Options, Raw, Refused, Reply, STREAM_BYTES_MAX,
    STREAM_EVENTS_MAX, StreamEnd, StreamEvent, Streamed, Version, Wire, error_info, shown,
};

/// A request as it goes out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Outgoing {
    pub(crate) fn get(url: impl Into<String>) -> Self {
        Self { method: Method::GET, url: url.into(), headers: HeaderMap::new(), body: Bytes::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }
}

impl Wire {
    /// Sends a request and reads the whole answer, whatever it is.
    ///
    /// # Errors
    /// When there is none, in words.
    pub(crate) async fn exchange(&self, outgoing: Outgoing) -> Result<Raw, String> {
        let mut limits = RequestLimits::default();
        limits.total = Some(self.timeout);
        limits.body_bytes_max = Some(ANSWER_BYTES_MAX);
        limits.connect = limits.connect.min(self.timeout);
        let request = request(outgoing)?;
        let answer = self.client(request.uri()).send(request, &limits).await.map_err(|error| error.to_string())?;
        let (head, body) = answer.into_parts();
        let body = body.bytes().await.map_err(|error| error.to_string())?;
        Ok(Raw { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// A body of any kind, posted to the address of a JSON-RPC interface or to a path of an HTTP+JSON one.
    ///
    /// # Errors
    /// As of [`Wire::exchange`].
    pub(crate) async fn post(
        &self,
        to: &Interface,
        path: &str,
        media_type: &'static str,
        body: impl Into<Bytes>,
        options: &Options,
    ) -> Result<Raw, String> {
        let mut headers = self.headers(to, options);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        let url = if path.is_empty() { to.url.clone() } else { format!("{}{path}", base(to)) };
        self.exchange(Outgoing { method: Method::POST, url, headers, body: body.into() }).await
    }

    pub(super) async fn call_jsonrpc(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<Reply, String> {
        let (outgoing, _) = self.jsonrpc_request(to, operation, params, options)?;
        let raw = self.exchange(outgoing).await?;
        let meaning = jsonrpc_meaning(&raw, operation == Operation::DeletePush);
        Ok(Reply { raw, meaning })
    }

    pub(super) async fn call_http_json(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<Reply, String> {
        let outgoing = self.http_json_request(to, operation, params, options)?;
        let mut raw = self.exchange(outgoing.clone()).await?;
        // The annotation of 0.3 makes the configuration the body, and the Python SDK wants the request that holds it.
        let is_old_push = operation == Operation::CreatePush && to.version != Version::V1_0;
        if is_old_push && matches!(raw.status, 400 | 422 | 500) {
            let whole = to.form().params(operation, params).unwrap_or_default().to_string();
            raw = self.exchange(Outgoing { body: whole.into(), ..outgoing }).await?;
        }
        let meaning = http_json_meaning(&raw);
        Ok(Reply { raw, meaning })
    }

    fn jsonrpc_request(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<(Outgoing, Value), String> {
        let mut params = to.form().params(operation, params).ok_or_else(|| no_such_call(to, operation))?;
        if let (Some(tenant), Version::V1_0) = (&to.tenant, to.version) {
            params["tenant"] = json!(tenant);
        }
        let id = options.rpc_id.clone().unwrap_or_else(|| json!(super::super::fresh_id()));
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method(to.version, operation), "params": params });
        let mut headers = self.headers(to, options);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(accepted(operation, "application/json, text/event-stream")));
        let outgoing = Outgoing { method: Method::POST, url: to.url.clone(), headers, body: body.to_string().into() };
        Ok((outgoing, id))
    }

    fn http_json_request(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
    ) -> Result<Outgoing, String> {
        let (method, path) = route(to.version, operation, params).ok_or_else(|| no_such_call(to, operation))?;
        let mut headers = self.headers(to, options);
        let media_type = if to.version == Version::V1_0 { "application/a2a+json" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accepted(operation, "*/*")));
        let body = match operation {
            Operation::Send | Operation::Stream | Operation::CreatePush => {
                let body = to.form().params(operation, params).unwrap_or_else(|| json!({}));
                // In 0.3 the body is the configuration alone.
                let is_old_push = operation == Operation::CreatePush && to.version != Version::V1_0;
                if is_old_push { body["config"].to_string() } else { body.to_string() }
            }
            Operation::Cancel | Operation::Subscribe => "{}".to_owned(),
            Operation::Get
            | Operation::List
            | Operation::GetPush
            | Operation::ListPush
            | Operation::DeletePush
            | Operation::ExtendedCard => String::new(),
        };
        if !body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        Ok(Outgoing { method, url: format!("{}{path}", base(to)), headers, body: body.into() })
    }

    pub(super) async fn stream_http(
        &self,
        to: &Interface,
        operation: Operation,
        params: &Value,
        options: &Options,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Streamed, String> {
        let (outgoing, id) = match to.binding {
            Binding::JsonRpc => self.jsonrpc_request(to, operation, params, options)?,
            Binding::HttpJson | Binding::Grpc => (self.http_json_request(to, operation, params, options)?, Value::Null),
        };
        let streamed = self.follow(to, outgoing.clone(), &id, enough).await?;
        // The text of the specification has POST for a subscription, its protobuf file has GET, and servers may have either.
        match streamed {
            Streamed::Whole(reply)
                if operation == Operation::Subscribe
                    && to.binding == Binding::HttpJson
                    && matches!(reply.raw.status, 404 | 405)
                    && !matches!(&reply.meaning, Meaning::Refused(refused) if refused.reason.is_some()) =>
            {
                let mut again = Outgoing { method: Method::GET, body: Bytes::new(), ..outgoing };
                again.headers.remove(CONTENT_TYPE);
                self.follow(to, again, &id, enough).await
            }
            streamed => Ok(streamed),
        }
    }

    async fn follow(
        &self,
        to: &Interface,
        outgoing: Outgoing,
        id: &Value,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Streamed, String> {
        let started = Instant::now();
        let mut limits = RequestLimits::stream();
        limits.head = Some(self.timeout);
        limits.connect = limits.connect.min(self.timeout);
        limits.idle = Some(self.timeout);
        let request = request(outgoing)?;
        let answer = self.client(request.uri()).send(request, &limits).await.map_err(|error| error.to_string())?;
        let (head, mut body) = answer.into_parts();
        let (opened, head_after) = (Instant::now(), started.elapsed());
        let mut raw = Raw { status: head.status.as_u16(), headers: head.headers, body: Bytes::new() };
        let is_stream = head.status.is_success() && raw.media_type() == "text/event-stream";
        let (mut parser, mut all, mut kept) = (Parser::default(), Vec::new(), Vec::new());
        let end = loop {
            let left = self.timeout.saturating_sub(opened.elapsed());
            let chunk = match timeout(left, body.chunk()).await {
                Err(_) => break StreamEnd::TimedOut,
                Ok(Err(error)) if error.kind() == ErrorKind::TimedOut => break StreamEnd::TimedOut,
                Ok(Err(error)) => break StreamEnd::Broken(error.to_string()),
                Ok(Ok(None)) => break parser.rest().map_or(StreamEnd::Closed, StreamEnd::Broken),
                Ok(Ok(Some(chunk))) => chunk,
            };
            kept.extend_from_slice(&chunk);
            if kept.len() > STREAM_BYTES_MAX || all.len() > STREAM_EVENTS_MAX {
                break StreamEnd::Broken("the checker reads no more: the stream is too long".to_owned());
            }
            if is_stream {
                let after = opened.elapsed();
                all.extend(parser.feed(&chunk).into_iter().map(|frame| stream_event(to, frame, after)));
                if enough(&all) {
                    break StreamEnd::Left;
                }
            }
        };
        raw.body = kept.into();
        if is_stream {
            return Ok(Streamed::Events(Box::new(Events { raw, all, end, head_after, asked_id: id.clone() })));
        }
        if let StreamEnd::Broken(why) = end {
            return Err(why);
        }
        let meaning = match to.binding {
            Binding::JsonRpc => jsonrpc_meaning(&raw, false),
            Binding::HttpJson | Binding::Grpc => http_json_meaning(&raw),
        };
        Ok(Streamed::Whole(Box::new(Reply { raw, meaning })))
    }
}

fn stream_event(to: &Interface, frame: super::sse::Frame, after: Duration) -> StreamEvent {
    let data = frame.data.unwrap_or_default();
    let (json, mut fault) = match serde_json::from_str::<Value>(&data) {
        Ok(json) => (json, frame.fault),
        Err(error) => (Value::Null, Some(format!("the data of an event is not JSON ({error}): {}", shown(&data)))),
    };
    let payload = match to.binding {
        Binding::JsonRpc => {
            if json.get("result").is_none() && fault.is_none() {
                fault = Some(format!("an event has no result: {}", shown(&data)));
            }
            json["result"].clone()
        }
        Binding::HttpJson | Binding::Grpc => json.clone(),
    };
    StreamEvent { payload, json, fault, after }
}

fn request(outgoing: Outgoing) -> Result<Request<Bytes>, String> {
    let mut request = Request::new(outgoing.body);
    *request.method_mut() = outgoing.method;
    *request.uri_mut() = outgoing.url.parse().map_err(|_| format!("{} is no URL", shown(&outgoing.url)))?;
    *request.headers_mut() = outgoing.headers;
    Ok(request)
}

fn accepted(operation: Operation, streamed: &'static str) -> &'static str {
    match operation {
        Operation::Stream | Operation::Subscribe => streamed,
        _ => "application/a2a+json, application/json",
    }
}

fn no_such_call(to: &Interface, operation: Operation) -> String {
    format!("A2A {} has no call for {operation:?} on {}", to.version.name(), to.binding.name())
}

/// The name of an operation over JSON-RPC.
pub(crate) fn method(version: Version, operation: Operation) -> &'static str {
    let (v1, v0) = match operation {
        Operation::Send => ("SendMessage", "message/send"),
        Operation::Stream => ("SendStreamingMessage", "message/stream"),
        Operation::Get => ("GetTask", "tasks/get"),
        Operation::List => ("ListTasks", ""),
        Operation::Cancel => ("CancelTask", "tasks/cancel"),
        Operation::Subscribe => ("SubscribeToTask", "tasks/resubscribe"),
        Operation::CreatePush => ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
        Operation::GetPush => ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
        Operation::ListPush => ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
        Operation::DeletePush => ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
        Operation::ExtendedCard => ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
    };
    if version == Version::V1_0 { v1 } else { v0 }
}

/// What the paths of an HTTP+JSON interface stand behind.
fn base(to: &Interface) -> String {
    let url = to.url.trim_end_matches('/');
    match (to.version, &to.tenant) {
        (Version::V1_0, Some(tenant)) => format!("{url}/{}", encoded(tenant)),
        (Version::V1_0, None) => url.to_owned(),
        // Cards of 0.3 give the address with its version or without.
        (Version::V0_3 | Version::V0_2, _) if url.ends_with("/v1") => url.to_owned(),
        (Version::V0_3 | Version::V0_2, _) => format!("{url}/v1"),
    }
}

/// The verb and path of an operation over HTTP+JSON, with what stands in the path and in the query.
fn route(version: Version, operation: Operation, params: &Value) -> Option<(Method, String)> {
    let text = |name: &str| encoded(params[name].as_str().unwrap_or_default());
    let configs = || format!("/tasks/{}/pushNotificationConfigs", text("taskId"));
    Some(match operation {
        Operation::Send => (Method::POST, "/message:send".to_owned()),
        Operation::Stream => (Method::POST, "/message:stream".to_owned()),
        Operation::Get => (Method::GET, format!("/tasks/{}{}", text("id"), query(params, &["historyLength"]))),
        Operation::List if version == Version::V1_0 => (Method::GET, format!("/tasks{}", query(params, &LIST_QUERY))),
        Operation::List => return None,
        Operation::Cancel => (Method::POST, format!("/tasks/{}:cancel", text("id"))),
        Operation::Subscribe => (Method::POST, format!("/tasks/{}:subscribe", text("id"))),
        Operation::CreatePush => (Method::POST, configs()),
        Operation::ListPush => (Method::GET, configs()),
        Operation::GetPush => (Method::GET, format!("{}/{}", configs(), text("id"))),
        Operation::DeletePush => (Method::DELETE, format!("{}/{}", configs(), text("id"))),
        Operation::ExtendedCard if version == Version::V1_0 => (Method::GET, "/extendedAgentCard".to_owned()),
        Operation::ExtendedCard => (Method::GET, "/card".to_owned()),
    })
}

const LIST_QUERY: [&str; 7] =
    ["contextId", "status", "pageSize", "pageToken", "historyLength", "statusTimestampAfter", "includeArtifacts"];

fn query(params: &Value, names: &[&str]) -> String {
    let mut query = String::new();
    for name in names {
        let value = match params.get(*name) {
            Some(Value::String(text)) => encoded(text),
            Some(Value::Number(_) | Value::Bool(_)) => params[*name].to_string(),
            Some(_) | None => continue,
        };
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(&format!("{name}={value}"));
    }
    query
}

/// A text as one segment of a path or one value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// What the body of an answer means as JSON-RPC. A deletion may have no result at all.
pub(crate) fn jsonrpc_meaning(raw: &Raw, may_be_empty: bool) -> Meaning {
    let Ok(Value::Object(body)) = serde_json::from_slice::<Value>(&raw.body) else {
        return Meaning::Nothing(format!("no JSON-RPC: {}", raw.shown()));
    };
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        let (reason, domain) = error_info(&error["data"]);
        return Meaning::Refused(Refused {
            code: error["code"].as_i64().unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            reason,
            domain,
            json: error.clone(),
        });
    }
    match body.get("result") {
        Some(result) => Meaning::Result(result.clone()),
        None if may_be_empty => Meaning::Result(Value::Null),
        None => Meaning::Nothing(format!("neither a result nor an error: {}", raw.shown())),
    }
}

/// What an answer means as HTTP+JSON.
pub(crate) fn http_json_meaning(raw: &Raw) -> Meaning {
    let json = serde_json::from_slice::<Value>(&raw.body);
    if (200..300).contains(&raw.status) {
        return match json {
            Ok(json) => Meaning::Result(json),
            Err(_) if raw.body.is_empty() => Meaning::Result(Value::Null),
            Err(_) => Meaning::Nothing(format!("no JSON: {}", raw.shown())),
        };
    }
    let json = json.unwrap_or_default();
    let error = json.get("error").unwrap_or(&json);
    let (reason, domain) = error_info(&error["details"]);
    let message = error["message"].as_str().map_or_else(|| shown(&String::from_utf8_lossy(&raw.body)), str::to_owned);
    Meaning::Refused(Refused { code: raw.status.into(), message, reason, domain, json })
}
