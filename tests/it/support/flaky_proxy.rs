//! A proxy that breaks requests in every way that a network does, drawn from a seed: connections that are dropped, reset, cut or half
//! closed, answers of a gateway, delays, and requests that arrive twice. Over HTTP/2 it breaks whole connections, with the calls on them,
//! and on other connections single calls, as a gateway does.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    Pass,
    /// Passed on after a few milliseconds.
    Delay,
    /// Closed before anything was passed on.
    Drop,
    /// Reset before anything was passed on.
    Reset,
    /// 502 before anything was passed on.
    BadGateway,
    /// 502 after the request was passed on.
    LateBadGateway,
    /// Passed on, and closed without an answer.
    Lost,
    /// Closed within the answer.
    Cut,
    /// Reset within the answer.
    CutReset,
    /// The answer ends within, and the connection stays open for requests.
    HalfClosed,
    /// Passed on twice; the first answer counts.
    Twice,
}

const FAULTS: [Fault; 11] = [
    Fault::Pass,
    Fault::Delay,
    Fault::Drop,
    Fault::Reset,
    Fault::BadGateway,
    Fault::LateBadGateway,
    Fault::Lost,
    Fault::Cut,
    Fault::CutReset,
    Fault::HalfClosed,
    Fault::Twice,
];

/// Those that happen to a connection over HTTP/2. Each ends it at some time, so that none is spared.
pub(crate) const CONNECTION_FAULTS: [Fault; 7] =
    [Fault::Cut, Fault::Delay, Fault::Drop, Fault::Reset, Fault::Lost, Fault::CutReset, Fault::HalfClosed];

/// Those that happen to a single call over HTTP/2.
pub(crate) const CALL_FAULTS: [Fault; 5] =
    [Fault::Pass, Fault::Pass, Fault::BadGateway, Fault::LateBadGateway, Fault::Twice];

type GatewayAnswer = Response<BoxBody<Bytes, hyper::Error>>;

/// How often each was drawn.
pub(crate) type Counts = Arc<Mutex<BTreeMap<Fault, usize>>>;

/// Starts a proxy to a server, which is told its address beforehand. Requests for cards pass unharmed.
pub(crate) struct FlakyProxy {
    listener: TcpListener,
    pub(crate) url: String,
}

/// What the connections of a proxy share.
struct Shared {
    to: SocketAddr,
    dice: AtomicU64,
    doubles: bool,
    counts: Counts,
}

impl FlakyProxy {
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// `doubles` says whether requests may arrive twice.
    pub(crate) fn start(self, to: SocketAddr, seed: u64, doubles: bool) -> Counts {
        let counts = Counts::default();
        let shared = Arc::new(Shared { to, dice: AtomicU64::new(seed), doubles, counts: counts.clone() });
        tokio::spawn(async move {
            while let Ok((client, _)) = self.listener.accept().await {
                let shared = shared.clone();
                // An error is a connection that broke, as many do here.
                tokio::spawn(async move { shared.serve(client).await });
            }
        });
        counts
    }
}

impl Shared {
    /// The next number, by the generator SplitMix64.
    fn roll(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let mut z = self.dice.fetch_add(step, Ordering::SeqCst).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Half of the requests pass.
    fn draw(&self) -> Fault {
        let roll = self.roll();
        let fault = if roll.is_multiple_of(2) { Fault::Pass } else { FAULTS[(roll >> 32) as usize % FAULTS.len()] };
        if fault == Fault::Twice && !self.doubles { Fault::Pass } else { fault }
    }

    async fn serve(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let mut first = [0];
        client.peek(&mut first).await?;
        // Only the preface of HTTP/2 begins so.
        if first == *b"P" && is_http2(&client).await? {
            match self.roll().is_multiple_of(4) {
                true => self.serve_gateway(client).await,
                false => self.serve_http2(client).await,
            }
        } else {
            self.serve_one(client).await
        }
    }

    /// A connection over HTTP/2, which carries many calls and breaks some time, with all of them.
    async fn serve_http2(&self, mut client: TcpStream) -> std::io::Result<()> {
        let fault = CONNECTION_FAULTS[(self.roll() >> 32) as usize % CONNECTION_FAULTS.len()];
        *self.counts.lock().unwrap().entry(fault).or_default() += 1;
        match fault {
            Fault::Drop => return Ok(()),
            Fault::Reset => return reset(client),
            _ => {}
        }
        let mut server = TcpStream::connect(self.to).await?;
        let bytes = 200 + self.roll() % 20_000;
        {
            let (mut from_client, mut to_client) = client.split();
            let (mut from_server, mut to_server) = server.split();
            let up = async {
                tokio::io::copy(&mut from_client, &mut to_server).await?;
                to_server.shutdown().await
            };
            let down = async {
                if fault == Fault::Delay {
                    tokio::time::sleep(Duration::from_millis(bytes % 5)).await;
                }
                if fault == Fault::Lost {
                    // What the server says first is its settings. The calls have arrived when it says more.
                    from_server.read_exact(&mut [0; 64]).await?;
                    return Ok(());
                }
                tokio::io::copy(&mut from_server.take(bytes), &mut to_client).await?;
                if fault == Fault::HalfClosed {
                    to_client.shutdown().await?;
                    std::future::pending::<()>().await;
                }
                Ok::<(), std::io::Error>(())
            };
            tokio::select! {
                ended = up => ended?,
                ended = down => ended?,
            }
        }
        if fault == Fault::CutReset { reset(client) } else { Ok(()) }
    }

    /// A gateway for HTTP/2: some calls it answers itself, before or after they were passed on, and some it passes on twice. After a
    /// number of calls it closes the connection, with those that are at work.
    async fn serve_gateway(self: &Arc<Self>, client: TcpStream) -> std::io::Result<()> {
        let server = TcpStream::connect(self.to).await?;
        let handshake = client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(server)).await;
        let (sender, upstream) = handshake.map_err(std::io::Error::other)?;
        let calls_left = Arc::new(AtomicU64::new(1 + self.roll() % 40));
        let is_over = Arc::new(tokio::sync::Notify::new());
        let answering = service_fn(|request: Request<Incoming>| {
            let (shared, sender) = (self.clone(), sender.clone());
            if calls_left.fetch_sub(1, Ordering::SeqCst) == 1 {
                is_over.notify_one();
            }
            async move { shared.answer_call(sender, request).await }
        });
        let serving =
            server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(client), answering);
        tokio::select! {
            ended = serving => ended.map_err(std::io::Error::other),
            ended = upstream => ended.map_err(std::io::Error::other),
            () = is_over.notified() => Ok(()),
        }
    }

    async fn answer_call(
        &self,
        mut sender: client::conn::http2::SendRequest<Full<Bytes>>,
        request: Request<Incoming>,
    ) -> Result<GatewayAnswer, hyper::Error> {
        let fault = CALL_FAULTS[(self.roll() >> 32) as usize % CALL_FAULTS.len()];
        let fault = if fault == Fault::Twice && !self.doubles { Fault::Pass } else { fault };
        *self.counts.lock().unwrap().entry(fault).or_default() += 1;
        if fault == Fault::BadGateway {
            return Ok(gateway_error());
        }
        let (head, body) = request.into_parts();
        let body = Full::new(body.collect().await?.to_bytes());
        let request = Request::from_parts(head, body);
        if fault == Fault::Twice {
            let again = sender.send_request(request.clone());
            tokio::spawn(async move {
                let answer = again.await?;
                answer.into_body().collect().await
            });
        }
        let answer = sender.send_request(request).await?;
        Ok(if fault == Fault::LateBadGateway { gateway_error() } else { answer.map(BodyExt::boxed) })
    }

    /// One request for each connection.
    async fn serve_one(&self, mut client: TcpStream) -> std::io::Result<()> {
        let request = read_request(&mut client).await?;
        let fault = if request.starts_with(b"GET /.well-known/") { Fault::Pass } else { self.draw() };
        *self.counts.lock().unwrap().entry(fault).or_default() += 1;
        let bytes = 20 + (self.roll() % 2_000) as usize;
        match fault {
            Fault::Drop => return Ok(()),
            Fault::Reset => return reset(client),
            Fault::BadGateway => return bad_gateway(client).await,
            Fault::Delay => tokio::time::sleep(Duration::from_millis(bytes as u64 % 5)).await,
            _ => {}
        }
        let mut server = self.pass_on(&request).await?;
        match fault {
            Fault::LateBadGateway => {
                server.read_u8().await?;
                return bad_gateway(client).await;
            }
            Fault::Lost => {
                server.read_u8().await?;
                return Ok(());
            }
            Fault::Twice => {
                let mut again = self.pass_on(&request).await?;
                tokio::spawn(async move { tokio::io::copy(&mut again, &mut tokio::io::sink()).await });
            }
            _ => {}
        }
        let is_cut = matches!(fault, Fault::Cut | Fault::CutReset | Fault::HalfClosed);
        let mut answer = server.take(if is_cut { bytes as u64 } else { u64::MAX });
        tokio::io::copy(&mut answer, &mut client).await?;
        match fault {
            Fault::CutReset => return reset(client),
            Fault::HalfClosed => {
                client.shutdown().await?;
                tokio::io::copy(&mut client, &mut tokio::io::sink()).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn pass_on(&self, request: &[u8]) -> std::io::Result<TcpStream> {
        let mut server = TcpStream::connect(self.to).await?;
        server.write_all(request).await?;
        Ok(server)
    }
}

async fn is_http2(client: &TcpStream) -> std::io::Result<bool> {
    let mut start = [0; 3];
    while client.peek(&mut start).await? < start.len() {
        tokio::task::yield_now().await;
    }
    Ok(start == *b"PRI")
}

/// A whole request, which asks the server to close the connection after its answer.
async fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    client.read_exact(&mut body).await?;
    head.truncate(head.len() - 2);
    head.extend_from_slice(b"connection: close\r\n\r\n");
    head.extend_from_slice(&body);
    Ok(head)
}

async fn bad_gateway(mut client: TcpStream) -> std::io::Result<()> {
    client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>").await
}

fn gateway_error() -> GatewayAnswer {
    let body = Full::new(Bytes::from_static(b"<html>")).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::BAD_GATEWAY;
    answer
}

/// What is dropped with this set is not closed but reset.
fn reset(client: TcpStream) -> std::io::Result<()> {
    client.set_zero_linger()
}
