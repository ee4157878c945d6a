//! A balancer in front of several servers: each request goes to the next of them, also if it comes over a connection that has brought others.
//! Requests over HTTP/1 and HTTP/2 are passed on as what they are, with bodies and trailers as they come, so streams and gRPC work.
#![expect(clippy::disallowed_methods, reason = "a task for each connection; all of them end with the balancer")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version, client};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

type Body = BoxBody<Bytes, hyper::Error>;

/// A port that passes nothing on yet, so that servers can be told about it.
pub struct Balancer {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
}

/// Passes requests on until it is dropped.
pub struct RunningBalancer {
    _runtime: Runtime,
    shared: Arc<Shared>,
}

struct Shared {
    servers: Vec<SocketAddr>,
    /// How many requests each server got.
    passed: Vec<AtomicUsize>,
    next: AtomicUsize,
}

impl Balancer {
    /// Takes a port of this machine.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn bind() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be built");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("this machine has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        Self { runtime, listener, address }
    }

    /// Where clients find it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins to pass requests on to these servers.
    #[must_use]
    pub fn start(self, servers: Vec<SocketAddr>) -> RunningBalancer {
        let passed = servers.iter().map(|_| AtomicUsize::new(0)).collect();
        let shared = Arc::new(Shared { servers, passed, next: AtomicUsize::new(0) });
        self.runtime.spawn(serve(self.listener, shared.clone()));
        RunningBalancer { _runtime: self.runtime, shared }
    }
}

impl RunningBalancer {
    /// How many requests each server got.
    #[must_use]
    pub fn passed(&self) -> Vec<usize> {
        self.shared.passed.iter().map(|passed| passed.load(Ordering::Relaxed)).collect()
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, hyper::Error>(shared.pass(request).await) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            // An error is a client that has left.
            let _ = builder.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

impl Shared {
    /// Passes a request on to the next server.
    async fn pass(&self, request: Request<Incoming>) -> Response<Body> {
        let place = self.next.fetch_add(1, Ordering::Relaxed) % self.servers.len();
        self.passed[place].fetch_add(1, Ordering::Relaxed);
        exchange(self.servers[place], request).await.unwrap_or_else(|_| {
            let mut refused = Response::new(Empty::new().map_err(|never| match never {}).boxed());
            *refused.status_mut() = StatusCode::BAD_GATEWAY;
            refused
        })
    }
}

/// One request over a connection of its own, in the version in which it came.
async fn exchange(
    server: SocketAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Box<dyn std::error::Error + Send + Sync>> {
    let socket = TcpStream::connect(server).await?;
    socket.set_nodelay(true)?;
    let io = TokioIo::new(socket);
    let response = if request.version() == Version::HTTP_2 {
        let (mut sender, connection) = client::conn::http2::handshake(TokioExecutor::new(), io).await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    } else {
        let (mut sender, connection) = client::conn::http1::handshake(io).await?;
        tokio::spawn(connection);
        sender.send_request(request).await?
    };
    Ok(response.map(BodyExt::boxed))
}
