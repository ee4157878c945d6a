//! The client of the load: just enough A2A to send, follow and cancel, over both bindings, and to notice exactly how a
//! request ended. It never repeats anything by itself.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use switchboard::outbound::{self, AddressPolicy, Body, RequestLimits};
use tokio::time::timeout;

use super::wish::Whom;
use crate::failure::Failure;

/// Longer than anything that is asked for may take, a freeze included. Streams say at least that often that they live.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Client {
    http: outbound::Client,
    limits: RequestLimits,
    /// Servers that share a database; each request goes to the next one.
    addrs: Vec<SocketAddr>,
    next: AtomicUsize,
    requests: AtomicU64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The request did not go out: the server does not listen.
    Unreachable,
    /// The request went out, and the connection ended before the answer came.
    Broken,
    /// The server said: not now.
    Busy,
    Refused(Refusal),
}

/// What the server said instead of doing it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: String,
    /// Of the task, where it stands in the way.
    pub(super) state: Option<String>,
    pub(super) text: String,
}

impl Client {
    pub(super) fn new(addr: SocketAddr) -> Result<Self, Failure> {
        Self::of(vec![addr])
    }

    /// A client of several servers.
    pub(super) fn of(addrs: Vec<SocketAddr>) -> Result<Self, Failure> {
        let http = outbound::Client::builder().policy(AddressPolicy::any()).build().map_err(Failure::runtime)?;
        let mut limits = RequestLimits::stream();
        (limits.head, limits.idle) = (Some(PATIENCE), Some(PATIENCE));
        Ok(Self { http, limits, addrs, next: AtomicUsize::new(0), requests: AtomicU64::new(0) })
    }

    /// Requests that went out.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// A JSON-RPC call.
    pub(super) async fn call(
        &self,
        whom: Whom,
        method: &str,
        params: &Value,
        key: Option<&str>,
    ) -> Result<Value, Trouble> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let headers = key.map(|key| ("Idempotency-Key", key.to_owned()));
        let path = format!("/agents/{}", whom.slug());
        let answer = self.ask(Method::POST, &path, body, headers.as_slice()).await?;
        let mut reply: Value = serde_json::from_slice(&whole(answer).await?).map_err(|_| Trouble::Broken)?;
        match reply.get("error") {
            Some(error) => Err(refused(error, &error["data"])),
            None => Ok(reply["result"].take()),
        }
    }

    /// Sends a message and follows its task, over the HTTP binding.
    pub(super) async fn send_stream(
        &self,
        whom: Whom,
        send: &Value,
        key: &str,
        last_event_id: Option<u64>,
    ) -> Result<Events, Trouble> {
        let mut headers = vec![("Idempotency-Key", key.to_owned())];
        headers.extend(last_event_id.map(|id| ("Last-Event-ID", id.to_string())));
        let path = format!("/agents/{}/message:stream", whom.slug());
        self.stream(Method::POST, &path, send.to_string(), &headers).await
    }

    /// Follows a task from an event on.
    pub(super) async fn subscribe(&self, whom: Whom, task: &str, last_event_id: u64) -> Result<Events, Trouble> {
        let path = format!("/agents/{}/tasks/{task}:subscribe", whom.slug());
        self.stream(Method::GET, &path, String::new(), &[("Last-Event-ID", last_event_id.to_string())]).await
    }

    /// Whether the server says that it should be given work.
    pub(super) async fn is_ready(&self) -> bool {
        let answer = self.ask(Method::GET, "/readyz", String::new(), &[]);
        timeout(Duration::from_secs(2), answer).await.is_ok_and(|answer| answer.is_ok())
    }

    async fn stream(
        &self,
        method: Method,
        path: &str,
        body: String,
        headers: &[(&str, String)],
    ) -> Result<Events, Trouble> {
        let answer = self.ask(method, path, body, headers).await?;
        Ok(Events { body: answer, held: Vec::new() })
    }

    /// The body of the answer, if it is a good one or one of JSON-RPC.
    async fn ask(&self, method: Method, path: &str, body: String, headers: &[(&str, String)]) -> Result<Body, Trouble> {
        let addr = self.addrs[self.next.fetch_add(1, Ordering::Relaxed) % self.addrs.len()];
        let mut request = Request::builder().method(method).uri(format!("http://{addr}{path}"));
        request = request.header("A2A-Version", "1.0").header("Content-Type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Bytes::from(body)).map_err(|_| Trouble::Unreachable)?;
        let answer = self.http.send(request, &self.limits).await;
        if answer.as_ref().is_err_and(|error| !error.may_have_arrived()) {
            return Err(Trouble::Unreachable);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        let (head, answer) = answer.map_err(|_| Trouble::Broken)?.into_parts();
        match head.status {
            StatusCode::OK => Ok(answer),
            StatusCode::SERVICE_UNAVAILABLE => {
                // Read to its end, so that the connection can be used again.
                let _ = whole(answer).await;
                Err(Trouble::Busy)
            }
            status => {
                let body = whole(answer).await?;
                let reply: Value = serde_json::from_slice(&body).unwrap_or_else(|_| json!({"status": status.as_u16()}));
                Err(refused(&reply["error"], &reply["error"]["details"]))
            }
        }
    }
}

async fn whole(answer: Body) -> Result<Bytes, Trouble> {
    answer.bytes().await.map_err(|_| Trouble::Broken)
}

fn refused(error: &Value, details: &Value) -> Trouble {
    let reason = details[0]["reason"].as_str().unwrap_or_default().to_owned();
    if reason == "UNAVAILABLE" {
        return Trouble::Busy;
    }
    let state = details[0]["metadata"]["state"].as_str().map(str::to_owned);
    Trouble::Refused(Refusal { reason, state, text: error.to_string() })
}

/// A stream of server-sent events.
pub(super) struct Events {
    body: Body,
    held: Vec<u8>,
}

pub(super) enum Next {
    Event {
        seq: u64,
        data: Vec<u8>,
    },
    /// The server ended it in order.
    End,
    /// The server is gone, or hangs.
    Broken,
    /// The server ended it with an error, or with something that is no event.
    Wrong(String),
}

impl Events {
    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(end) = self.held.windows(2).position(|two| two == b"\n\n") {
                let rest = self.held.split_off(end + 2);
                let event = std::mem::replace(&mut self.held, rest);
                match parse(&event[..end]) {
                    Some(next) => return next,
                    None => continue,
                }
            }
            match self.body.chunk().await {
                Ok(Some(data)) => self.held.extend_from_slice(&data),
                Ok(None) => return Next::End,
                Err(_) => return Next::Broken,
            }
        }
    }
}

/// One event, without the empty line at its end; none if it is only a comment.
fn parse(event: &[u8]) -> Option<Next> {
    let mut seq = None;
    let mut data = None;
    for line in event.split(|byte| *byte == b'\n') {
        if let Some(id) = line.strip_prefix(b"id: ") {
            seq = std::str::from_utf8(id).ok().and_then(|id| id.parse().ok());
        } else if let Some(text) = line.strip_prefix(b"data: ") {
            data = Some(text.to_vec());
        }
    }
    match (seq, data) {
        (Some(seq), Some(data)) => Some(Next::Event { seq, data }),
        (None, None) if event.starts_with(b":") => None,
        // The database is away; the stream is resumed.
        (None, Some(data)) if String::from_utf8_lossy(&data).contains("UNAVAILABLE") => Some(Next::Broken),
        _ => Some(Next::Wrong(String::from_utf8_lossy(event).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, parse};

    #[test]
    fn an_event_has_a_number_and_data() {
        match parse(b"id: 17\ndata: {\"a\":1}") {
            Some(Next::Event { seq: 17, data }) => assert_eq!(data, b"{\"a\":1}"),
            _ => panic!("no event"),
        }
        assert!(parse(b": keep-alive").is_none());
        assert!(matches!(parse(b"event: error\ndata: {}"), Some(Next::Wrong(_))));
        assert!(matches!(parse(b"data: {}"), Some(Next::Wrong(_))));
    }
}
