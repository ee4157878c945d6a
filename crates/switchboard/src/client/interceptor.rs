//! Interceptors: code of the user that sees every exchange with an agent, on every binding, and may add headers. Exchanges of a client
//! without interceptors are not watched at all.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use tokio::time::Instant;

use crate::call_error::CallError;

/// Sees every exchange of a [`Client`](super::Client) with an agent: calls over every binding and the requests for agent cards, each
/// attempt and each redirect on its own. For logs, traces, measurements, and headers of your own.
///
/// Both methods are called on the way, so they must not block. Requests hold credentials, and answers hold what people wrote.
///
#[cfg_attr(
    feature = "server",
    doc = r#"
```
use std::sync::{Arc, Mutex};
use switchboard::client::{Client, Interceptor, Observed, OutgoingRequest, Received};
use switchboard::{AgentBuilder, Server, Turn};

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Interceptor for Recorder {
    fn on_request(&self, request: &mut OutgoingRequest<'_>) {
        request.headers.insert("x-team", "search".parse().unwrap());
        self.0.lock().unwrap().push(format!("{} {}", request.method, request.url.path()));
    }

    fn on_received(&self, observed: &Observed<'_>) {
        if let Received::Head { status, .. } = observed.received {
            self.0.lock().unwrap().push(format!("{status} after {} requests", observed.exchange));
        }
    }
}

# tokio::runtime::Runtime::new().unwrap().block_on(async {
# let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
# let bound = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
# let url = format!("http://{}", bound.local_addr());
# tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
let recorder = Arc::new(Recorder::default());
let client = Client::builder().interceptor(recorder.clone()).build().unwrap();
client.agent(&url).await.unwrap().send_text("hello").await.unwrap();
let seen = recorder.0.lock().unwrap();
assert_eq!(seen[..2], ["GET /.well-known/agent-card.json", "200 after 0 requests"]);
assert_eq!(seen[2..], ["POST /", "200 after 1 requests"]);
# });
```
"#
)]
pub trait Interceptor: Send + Sync {
    /// A request is about to leave.
    fn on_request(&self, request: &mut OutgoingRequest<'_>) {
        let _ = request;
    }

    /// Something of its answer has come, or the exchange has ended without one.
    fn on_received(&self, observed: &Observed<'_>) {
        let _ = observed;
    }
}

/// A request that is about to leave.
#[derive(Debug)]
#[non_exhaustive]
pub struct OutgoingRequest<'a> {
    /// The number of the exchange, from 0 in each client, by which what is received belongs to it.
    pub exchange: u64,
    /// The method of HTTP.
    pub method: &'a Method,
    /// Where it goes.
    pub url: &'a Uri,
    /// Its headers, credentials included. Those that HTTP itself needs (`Host`, `Content-Length`) are added later.
    pub headers: &'a mut HeaderMap,
    /// Its body. Over gRPC it is one message behind the five bytes that say how long it is.
    pub body: &'a [u8],
}

/// Something that came of an exchange.
#[derive(Debug)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The number of the exchange, as in [`OutgoingRequest::exchange`].
    pub exchange: u64,
    /// Where the request went.
    pub url: &'a Uri,
    /// The time since the request left.
    pub elapsed: Duration,
    /// What came.
    pub received: Received<'a>,
}

/// What came of an exchange. Each has at most one head, and ends with one of `Body`, `End`, `Failed` and `Abandoned`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Received<'a> {
    /// The status and the headers of the answer.
    Head {
        /// The status of HTTP.
        status: u16,
        /// The headers.
        headers: &'a HeaderMap,
    },
    /// The body of an answer that is not a stream, as far as it was read.
    Body(&'a [u8]),
    /// One server-sent event.
    Event {
        /// Its id, or that of the last event that had one.
        id: Option<&'a str>,
        /// Its type; empty is the usual one.
        kind: &'a str,
        /// Its data.
        data: &'a str,
    },
    /// One message over gRPC, in protobuf.
    Message(&'a [u8]),
    /// The answer has ended, and nothing more of it is to be seen. Over gRPC with the trailers.
    End {
        /// The trailers of gRPC, which say how the call ended.
        trailers: Option<&'a HeaderMap>,
    },
    /// There is no answer, or it broke off.
    Failed(&'a CallError),
    /// The caller no longer waits: its deadline passed, or it dropped the call or the stream.
    Abandoned,
}

/// The interceptors of a client, in the order in which they were added.
#[derive(Clone, Default)]
pub(super) struct Interceptors {
    all: Arc<[Arc<dyn Interceptor>]>,
    exchanges: Arc<AtomicU64>,
}

impl fmt::Debug for Interceptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} interceptors", self.all.len())
    }
}

impl Interceptors {
    pub(super) fn new(all: Vec<Arc<dyn Interceptor>>) -> Self {
        Self { all: all.into(), exchanges: Arc::default() }
    }

    /// Shows a request, and gives what its answer is shown with. None without interceptors.
    pub(super) fn begin(&self, request: &mut Request<Bytes>) -> Option<Watch> {
        if self.all.is_empty() {
            return None;
        }
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed);
        let (method, url) = (request.method().clone(), request.uri().clone());
        let body = request.body().clone();
        for interceptor in &*self.all {
            let headers = request.headers_mut();
            interceptor.on_request(&mut OutgoingRequest { exchange, method: &method, url: &url, headers, body: &body });
        }
        let started = Instant::now();
        Some(Watch(Box::new(Watched { all: self.all.clone(), exchange, url, started, is_over: false })))
    }
}

/// One exchange that interceptors see.
pub(super) struct Watch(Box<Watched>);

struct Watched {
    all: Arc<[Arc<dyn Interceptor>]>,
    exchange: u64,
    url: Uri,
    started: Instant,
    is_over: bool,
}

impl Watch {
    pub(super) fn show(&mut self, received: Received<'_>) {
        let Watched { all, exchange, url, started, is_over } = &mut *self.0;
        if *is_over {
            return;
        }
        *is_over = match received {
            Received::Head { .. } | Received::Event { .. } | Received::Message(_) => false,
            Received::Body(_) | Received::End { .. } | Received::Failed(_) | Received::Abandoned => true,
        };
        let observed = Observed { exchange: *exchange, url, elapsed: started.elapsed(), received };
        all.iter().for_each(|interceptor| interceptor.on_received(&observed));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.show(Received::Abandoned);
    }
}
