//! Our own server on a port, behind code that may change what it is asked and what it answers.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use switchboard::{A2aService, AgentBuilder, ProtocolBinding, Server, ServerBuilder};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::agents::demo::{Demo, ServedAt};

/// A request on its way in.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Changes the body if it is JSON.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut json = self.json();
        if !json.is_null() {
            change(&mut json);
            self.body = json.to_string().into();
        }
    }

    /// The operation over JSON-RPC, or the path.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.json()["method"] == name || self.path.contains(name)
    }

    pub(crate) fn is_card(&self) -> bool {
        self.path.starts_with("/.well-known/")
    }
}

/// An answer on its way out, as a whole.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Answered {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut json = self.json();
        if !json.is_null() {
            change(&mut json);
            self.body = json.to_string().into();
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.headers.get("content-type").is_some_and(|value| value == "text/event-stream")
    }

    /// Changes the events of a stream, each the JSON of its data.
    pub(crate) fn edit_events(&mut self, change: impl FnOnce(&mut Vec<Value>)) {
        if !self.is_stream() {
            return;
        }
        let text = String::from_utf8(self.body.to_vec()).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let mut events: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
        change(&mut events);
        self.body = events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into();
    }

    pub(crate) fn set(&mut self, name: &'static str, value: &'static str) {
        self.headers.insert(name, value.parse().unwrap());
    }
}

/// What is changed on the way.
#[derive(Clone, Copy)]
pub(crate) struct Plant {
    pub(crate) ask: fn(&mut Asked),
    pub(crate) answer: fn(&Asked, &mut Answered),
    /// Whether streams are changed, too: they then arrive as a whole.
    pub(crate) holds_streams: bool,
}

pub(crate) const NOTHING: Plant = Plant { ask: |_| {}, answer: |_, _| {}, holds_streams: false };

pub(crate) struct Served {
    pub(crate) url: String,
    running: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.running.abort();
    }
}

pub(crate) fn demo() -> AgentBuilder {
    AgentBuilder::new("Demo", Demo::at("", ServedAt::default())).push_notifications(true).input_modes(["text/plain"])
}

pub(crate) const ALL: [ProtocolBinding; 3] =
    [ProtocolBinding::JsonRpc, ProtocolBinding::HttpJson, ProtocolBinding::Grpc];

/// The demo agent on every binding.
pub(crate) fn usual() -> ServerBuilder {
    Server::builder().agent(demo()).interfaces(ALL).outbound_allow(["127.0.0.1"])
}

impl Served {
    pub(crate) async fn start(builder: ServerBuilder, plant: Plant) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = builder.public_url(&url).build().unwrap().into_service().unwrap();
        let running = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, service.clone(), plant));
            }
        });
        Self { url, running }
    }
}

async fn serve(stream: TcpStream, service: A2aService, plant: Plant) {
    let service = Arc::new(TowerToHyperService::new(service));
    let answering = service_fn(move |request: Request<Incoming>| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(answer(&service, request, plant).await) }
    });
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), answering).await;
}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

async fn answer(service: &TowerToHyperService<A2aService>, request: Request<Incoming>, plant: Plant) -> Reply {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let path = head.uri.path_and_query().unwrap().as_str().to_owned();
    let mut asked = Asked { method: head.method.clone(), path, headers: head.headers.clone(), body };
    (plant.ask)(&mut asked);
    head.method = asked.method.clone();
    head.uri = asked.path.parse().unwrap();
    head.headers = asked.headers.clone();
    head.headers.remove("content-length");
    let request = Request::from_parts(head, Full::new(asked.body.clone()));
    let (mut head, body) = service.call(request).await.unwrap().into_parts();
    let is_stream = head.headers.get("content-type").is_some_and(|value| value == "text/event-stream");
    let is_grpc_stream = asked.path.ends_with("/SubscribeToTask") || asked.path.ends_with("/TaskSubscription");
    if (is_stream || is_grpc_stream) && !plant.holds_streams {
        // A stream that breaks is seen as one that ended: these tests do not break our own.
        let body = body.map_err(|_| -> Infallible { unreachable!("our own streams do not break") });
        return Response::from_parts(head, body.boxed_unsync());
    }
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    let has_trailers = !trailers.is_empty();
    let mut answered = Answered { status: head.status, headers: head.headers, body: collected.to_bytes(), trailers };
    (plant.answer)(&asked, &mut answered);
    head.status = answered.status;
    head.headers = answered.headers;
    head.headers.remove("content-length");
    let body = Full::new(answered.body);
    let trailers = answered.trailers;
    match has_trailers {
        true => Response::from_parts(head, body.with_trailers(async move { Some(Ok(trailers)) }).boxed_unsync()),
        false => Response::from_parts(head, body.boxed_unsync()),
    }
}
