//! The whole server without a socket: requests go through its tower service.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use switchboard::{A2aService, AgentBuilder, Engine, Server, ServerBuilder, ServerHandle, Skill, Turn};
use switchboard_engine::Readiness;
use tower::ServiceExt;

use super::callers::soon;
use super::limit::Limit;

/// A server and what a test needs of it.
#[derive(Clone)]
pub(crate) struct Edge {
    service: A2aService,
    pub(crate) handle: ServerHandle,
    pub(crate) engine: Engine,
    _limit: Arc<Limit>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Status, media type and body in one text, with ids and times replaced.
    pub(crate) fn picture(&self) -> String {
        let kind = self.header("content-type");
        format!("{} {kind}\n{}\n", self.status.as_u16(), redacted(&self.text()))
    }

    /// The status, and for a refusal its reason.
    pub(crate) fn gist(&self) -> String {
        let status = self.status.as_u16();
        let json = serde_json::from_slice::<Value>(&self.body).unwrap_or_default();
        // 0.3 has no envelope over HTTP+JSON, and no list of details anywhere.
        let error = json.get("error").unwrap_or(&json);
        let details = if error["details"].is_array() { &error["details"] } else { &error["data"] };
        let reason = if details.is_array() { &details[0]["reason"] } else { &details["reason"] };
        match reason.as_str() {
            Some(reason) => format!("{status} {reason}"),
            None => status.to_string(),
        }
    }
}

impl Edge {
    pub(crate) fn new(builder: ServerBuilder) -> Self {
        let server = builder.public_url_or("http://127.0.0.1:8080").build().unwrap();
        let engine = server.engine().unwrap().clone();
        let handle = server.handle();
        Self { service: server.into_service().unwrap(), handle, engine, _limit: Arc::new(Limit::new()) }
    }

    /// The usual agent on the usual settings.
    pub(crate) fn usual() -> Self {
        Self::new(Server::builder().agent(echo()))
    }

    /// The server once it has taken up what there was to take up.
    pub(crate) async fn ready(self) -> Self {
        soon(async {
            while self.engine.readiness() != Readiness::Ready {
                tokio::task::yield_now().await;
            }
        })
        .await;
        self
    }

    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = soon(self.service.clone().oneshot(request)).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = soon(body.collect()).await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    /// As [`Edge::ask`], with any body, and the answer's body not read yet.
    pub(crate) async fn open<B>(&self, request: Request<B>) -> Response<UnsyncBoxBody<Bytes, io::Error>>
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Display,
    {
        soon(self.service.clone().oneshot(request)).await.unwrap().map(BodyExt::boxed_unsync)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(get(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        self.ask(post(path, body)).await
    }

    /// A JSON-RPC call with id 1.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Answer {
        self.post("/", rpc_body(method, params)).await
    }

    /// A JSON-RPC call of A2A 0.3 with id 1, which names no version.
    pub(crate) async fn old_rpc(&self, method: &str, params: Value) -> Answer {
        self.ask(unversioned(post("/", rpc_body(method, params)))).await
    }

    /// Sends a text over HTTP+JSON and gives the task's id.
    pub(crate) async fn task(&self, text: &str) -> String {
        let answer = self.post("/message:send", message(text).to_string()).await;
        answer.json()["task"]["id"].as_str().unwrap_or_else(|| panic!("no task in {}", answer.text())).to_owned()
    }

    /// The value of a line of `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        // On a server that asks for a name, too.
        let metrics = self.ask(with(get("/metrics"), "host", "localhost")).await.text();
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    }
}

/// Says what it was told, unless the text is a command: `ask`, `wait` (for its cancellation), `fail`, `chunks N`.
pub(crate) fn echo() -> AgentBuilder {
    AgentBuilder::from_fn("Echo", |turn: Turn| async move {
        let text = turn.text();
        match text.split_once(' ').unwrap_or((&text, "")) {
            ("ask", question) if turn.number() == 1 => turn.ask(question).await?,
            ("wait", _) => {
                turn.working("").await?;
                turn.cancelled().await;
            }
            ("fail", reason) => turn.fail(reason).await?,
            ("chunks", count) => {
                let mut writer = turn.artifact_writer();
                for number in 1..=count.parse::<u32>()? {
                    writer.text(format!("{number} ")).await?;
                }
            }
            _ => turn.answer(text).await?,
        }
        Ok(())
    })
    .description("Says what it was told")
    .skill(Skill::new("echo", "Echo", "Repeats a text").tag("test"))
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path).header("a2a-version", "1.0");
    request.body(Full::new(body.into())).unwrap()
}

pub(crate) fn get(path: &str) -> Request<Full<Bytes>> {
    request(Method::GET, path, "")
}

pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    with(request(Method::POST, path, body), "content-type", "application/json")
}

/// The request with one more header line; an empty value takes the header away.
pub(crate) fn with<B>(mut request: Request<B>, name: &str, value: &str) -> Request<B> {
    let name: HeaderName = name.parse().unwrap();
    if value.is_empty() {
        request.headers_mut().remove(name);
    } else {
        request.headers_mut().append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request
}

/// The request as clients from before 1.0 make it.
pub(crate) fn unversioned<B>(request: Request<B>) -> Request<B> {
    with(request, "a2a-version", "")
}

pub(crate) fn rpc_body(method: &str, params: Value) -> String {
    serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// The parameters of a send.
pub(crate) fn message(text: &str) -> Value {
    serde_json::json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// The parameters of a send as 0.3 has them.
pub(crate) fn old_message(text: &str) -> Value {
    serde_json::json!({"message": {
        "kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": text}],
    }})
}

/// The data of each event of a stream.
pub(crate) fn events(stream: &str) -> Vec<Value> {
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// The text with each UUID replaced by a number in order of appearance, and each time by `<time>`.
pub(crate) fn redacted(text: &str) -> String {
    let mut known: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if let Some(id) = text.get(at..at + 36).filter(|word| looks_like(word, "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh"))
        {
            let number = known.iter().position(|other| *other == id).unwrap_or(known.len());
            if number == known.len() {
                known.push(id);
            }
            out.push_str(&format!("<id {}>", number + 1));
            at += 36;
        } else if text.get(at..at + 24).is_some_and(|word| looks_like(word, "dddd-dd-ddTdd:dd:dd.dddZ")) {
            out.push_str("<time>");
            at += 24;
        } else {
            let letter = text[at..].chars().next().unwrap();
            out.push(letter);
            at += letter.len_utf8();
        }
    }
    out
}

fn looks_like(word: &str, pattern: &str) -> bool {
    word.len() == pattern.len()
        && word.bytes().zip(pattern.bytes()).all(|(byte, class)| match class {
            b'h' => byte.is_ascii_hexdigit(),
            b'd' => byte.is_ascii_digit(),
            exact => byte == exact,
        })
}
