//! The port: accepts connections within bounds, shakes hands if it speaks TLS, serves HTTP/1.1 and HTTP/2 on each, and ends
//! in order.
//!
//! [`Socket`] is a connection for hyper, with TLS or without, for two reasons. hyper writes a short HTTP/2 answer in one
//! piece only if the socket does not support vectored writes; otherwise the trailers that end a gRPC call are a packet, and a
//! system call, of their own. And hyper waits without a time limit to see which version a client speaks, so the socket sets
//! the limit.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::{Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use switchboard_engine::supervisor::{Kind, poll_when_woken};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::server::authentication::ClientCertificate;
use crate::server::banner::Banner;
use crate::server::edge::service::A2aService;
use crate::server::host::Host;
use crate::server::metrics::Handshake;
use crate::server::shared::Shared;
use crate::server::transport::tls::{self, Refused, Tls, TlsSocket};
use crate::server::transport::unread::{self, WriteStall};

/// How long the server waits for a client to take note that an unused connection is closed.
const GOODBYE_WAIT_MAX: Duration = Duration::from_secs(1);

/// The line and the headers of a request: over HTTP/1.1 as they come, over HTTP/2 unpacked and with 32 bytes for each.
const H1_HEAD_BYTES_MAX: usize = 64 << 10;
const H2_HEAD_BYTES_MAX: u32 = 32 << 10;

/// How often a silent HTTP/2 connection is asked whether it is still there, and how long it may take to answer.
const H2_PING_PAUSE: Duration = Duration::from_secs(30);
const H2_PING_WAIT_MAX: Duration = Duration::from_secs(20);

/// A server that has its port.
pub struct Bound {
    listener: TcpListener,
    local_addr: SocketAddr,
    url: String,
    host: Host,
    shared: Arc<Shared>,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("local_addr", &self.local_addr).field("url", &self.url).finish_non_exhaustive()
    }
}

impl Bound {
    pub(crate) fn new(
        listener: TcpListener,
        local_addr: SocketAddr,
        url: String,
        host: Host,
        shared: Arc<Shared>,
    ) -> Self {
        Self { listener, local_addr, url, host, shared }
    }

    /// The address it listens on, with the port it was given if port 0 was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The URL of the port itself: `https` with a host that the certificate is for, else `http` with the address. The
    /// public URL may be another one.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What to tell the person who started the server: where it is, who may call, and lines to paste.
    #[must_use]
    pub fn banner(&self) -> Banner {
        Banner::of(&self.shared, self.local_addr, &self.url)
    }

    /// The URL that clients use, without a slash at its end: the public one, or else that of the port.
    #[must_use]
    pub fn public_url(&self) -> &str {
        self.shared.origins.own()
    }

    /// Serves until `stop` is done, then shuts down in order: stop accepting, end streams (clients resume), answer what
    /// is in flight, give runs until `grace` is over, release their leases.
    pub async fn run_until(self, stop: impl Future<Output = ()>, grace: Duration) {
        let Self { listener, host, shared, .. } = self;
        let slots = Arc::new(Semaphore::new(shared.limits.connections_max));
        let stall = Duration::from_secs(u64::from(shared.limits.reply_stall_s_max.max(1)));
        shared.supervisor.spawn(Kind::Sweep, shared.unread.clone().run(stall));
        let accepting = async {
            loop {
                let Ok(slot) = slots.clone().acquire_owned().await else { return };
                match listener.accept().await {
                    Ok((stream, peer)) => serve(&shared, stream, peer, slot),
                    Err(error) => pause_after(&error).await,
                }
            }
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = accepting => {}
        }
        // One grace period for connections and runs together.
        let deadline = Instant::now() + grace;
        host.begin_drain();
        serve_waiting(&listener, &shared, &slots).await;
        drop(listener);
        shared.supervisor.wait_connections(deadline.saturating_duration_since(Instant::now())).await;
        host.shutdown(deadline.saturating_duration_since(Instant::now())).await;
    }
}

/// Connections that wait to be accepted; the system may allow fewer (`net.core.somaxconn`). When thousands of followers come back at once, those that find no
/// place try again after a second and more.
const ACCEPT_QUEUE_MAX: u32 = 4_096;

/// Takes a port, also one whose last connections are not forgotten yet.
pub(crate) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows this would take a port away from another process.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(ACCEPT_QUEUE_MAX)
}

/// How long a server that stops waits for the first request of a connection.
const FIRST_REQUEST_WAIT: Duration = Duration::from_millis(500);

/// How long a server that stops waits for clients that are about to have connected: some round trips of a local network.
const CONNECTING_WAIT: Duration = Duration::from_millis(20);

/// Lets the system drop the packets by which clients begin to connect, so that none has connected after the last one was accepted and before the
/// port is closed. A client whose packet was dropped sends it again a second later, and finds the port closed. Other packets pass: a client that
/// has half connected believes that it has connected when its own last packet is on the way.
#[cfg(target_os = "linux")]
fn turn_away(listener: &TcpListener) {
    // The fourteenth byte of the TCP header has the flags. SYN without ACK begins a connection.
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    // Jumps name how many instructions are left out if the condition holds, and if not. What a filter returns is how many bytes pass.
    let filter = [
        socket2::SockFilter::new(instruction::LOAD_BYTE, 0, 0, FLAGS_AT),
        socket2::SockFilter::new(instruction::AND_CONSTANT, 0, 0, SYN | ACK),
        socket2::SockFilter::new(instruction::JUMP_IF_EQUAL, 0, 1, SYN),
        socket2::SockFilter::new(instruction::RETURN_CONSTANT, 0, 0, 0),
        socket2::SockFilter::new(instruction::RETURN_CONSTANT, 0, 0, u32::MAX),
    ];
    if let Err(error) = socket2::SockRef::from(listener).attach_filter(&filter) {
        tracing::debug!(%error, "connections that are made just now may be reset");
    }
}

/// The instructions of a packet filter (classic BPF).
#[cfg(target_os = "linux")]
mod instruction {
    /// `BPF_LD | BPF_B | BPF_ABS`
    pub(super) const LOAD_BYTE: u16 = 0x30;
    /// `BPF_ALU | BPF_AND | BPF_K`
    pub(super) const AND_CONSTANT: u16 = 0x54;
    /// `BPF_JMP | BPF_JEQ | BPF_K`
    pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
    /// `BPF_RET | BPF_K`
    pub(super) const RETURN_CONSTANT: u16 = 0x06;
}

#[cfg(not(target_os = "linux"))]
fn turn_away(_: &TcpListener) {}

/// Serves the clients that have connected and that the server has not accepted yet, and those that are about to. If the listener were only
/// closed, the system would reset these clients, and they could not know whether the server has read their requests.
async fn serve_waiting(listener: &TcpListener, shared: &Arc<Shared>, slots: &Arc<Semaphore>) {
    turn_away(listener);
    let over = sleep(CONNECTING_WAIT);
    let mut over = pin!(over);
    while let Ok(slot) = slots.clone().try_acquire_owned() {
        tokio::select! {
            biased;
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => serve(shared, stream, peer, slot),
                Err(error) => pause_after(&error).await,
            },
            () = &mut over => return,
        }
    }
}

/// Accepting failed because the process is out of file handles, or because the client went away. Neither is a reason to
/// stop.
async fn pause_after(error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        tracing::warn!(%error, "a connection could not be accepted");
        sleep(Duration::from_millis(100)).await;
    }
}

fn serve(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, slot: OwnedSemaphorePermit) {
    // Without this an event waits up to 40 ms for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    shared.metrics.connected();
    let unread_ends = CancellationToken::new();
    let unread = shared.unread.connection(unread_ends.clone());
    let of = shared.clone();
    let (builder, metrics) = (builder(shared), shared.metrics.clone());
    let draining = shared.supervisor.draining().clone();
    let hands = shared.tls.clone().map(|tls| (tls, shared.clone()));
    let patience = Duration::from_secs(u64::from(shared.limits.head_read_s_max));
    let stall = Duration::from_secs(u64::from(shared.limits.reply_stall_s_max.max(1)));
    shared.supervisor.spawn(Kind::Connection, async move {
        let (socket, certificate) = match hands {
            None => (Socket::plain(stream, patience, stall), None),
            Some((tls, shared)) => match Box::pin(secured(tls, shared, stream)).await {
                Some(secured) => secured,
                None => return,
            },
        };
        let service = A2aService::of_connection(of.clone(), peer, unread, certificate);
        let has_asked = Arc::new(AtomicBool::new(false));
        let asks = has_asked.clone();
        let service = service_fn(move |request| {
            asks.store(true, Relaxed);
            service.clone().call(RequestBody::of(request, &of))
        });
        let connection = builder.serve_connection(TokioIo::new(socket), service);
        let mut connection = pin!(connection);
        let must_end = pin!(async {
            tokio::select! {
                biased;
                () = unread_ends.cancelled() => MustEnd::Unread,
                () = draining.cancelled() => MustEnd::Drained,
            }
        });
        let ended = tokio::select! {
            biased;
            served = connection.as_mut() => Ok(served),
            must_end = poll_when_woken(must_end) => Err(must_end),
        };
        let served = match ended {
            Ok(served) => served,
            Err(MustEnd::Unread) => {
                tracing::debug!("connection ended: an answer was not read");
                Ok(())
            }
            // Boxed, because most connections end otherwise, and need not reserve memory for it.
            Err(MustEnd::Drained) => {
                Box::pin(async {
                    let asked_late = sleep(FIRST_REQUEST_WAIT);
                    let mut asked_late = pin!(asked_late);
                    // A client that connected just before the server stopped is on its way to ask, and would be reset.
                    let ended = poll_fn(|cx| match connection.as_mut().poll(cx) {
                        Poll::Ready(served) => Poll::Ready(Some(served)),
                        Poll::Pending if has_asked.load(Relaxed) => Poll::Ready(None),
                        Poll::Pending => asked_late.as_mut().poll(cx).map(|()| None),
                    });
                    if let Some(served) = ended.await {
                        return served;
                    }
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        biased;
                        served = connection => served,
                        () = unread_ends.cancelled() => Ok(()),
                    }
                })
                .await
            }
        };
        if let Err(error) = served {
            if is_late_write(&*error) {
                metrics.was_not_read();
            }
            tracing::debug!(%error, "connection ended");
        }
        drop(slot);
    });
}

/// Why a connection ends before its client closes it.
enum MustEnd {
    /// An answer was not read.
    Unread,
    /// The server stops.
    Drained,
}

/// Whether a connection ended because its client did not read ([`WriteStall`]).
fn is_late_write(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(unread::is_late) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The connection after its TLS handshake and its first byte, and the certificate that the client has shown; none if either failed.
async fn secured(tls: Tls, shared: Arc<Shared>, stream: TcpStream) -> Option<(Socket, Option<ClientCertificate>)> {
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let draining = shared.supervisor.draining();
    let shaken = tokio::select! {
        biased;
        () = draining.cancelled() => return None,
        shaken = tls::shake_hands(&tls, stream, seconds(shared.limits.tls_handshake_s_max)) => shaken,
    };
    let outcome = match &shaken {
        Ok(_) => Handshake::Done,
        Err(Refused::Late) => Handshake::Late,
        Err(Refused::Plain) => Handshake::Plain,
        Err(Refused::Failed(_)) => Handshake::Failed,
    };
    shared.metrics.shook_hands(outcome);
    let shaken = shaken.inspect_err(|error| tracing::debug!(%error, "TLS handshake failed"));
    let mut stream = Box::new(shaken.ok()?);
    // hyper waits for the first byte as long as it takes.
    let speaks = tokio::select! {
        biased;
        () = draining.cancelled() => false,
        received = timeout(seconds(shared.limits.head_read_s_max), stream.fill_buf()) => {
            received.is_ok_and(|received| received.is_ok_and(|bytes| !bytes.is_empty()))
        }
    };
    if speaks {
        let stall = seconds(shared.limits.reply_stall_s_max.max(1));
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let certificate = shown.and_then(|shown| ClientCertificate::from_der(shown));
        return Some((Socket::tls(stream, seconds(shared.limits.head_read_s_max), stall), certificate));
    }
    let _ = timeout(GOODBYE_WAIT_MAX, stream.shutdown()).await;
    None
}

fn builder(shared: &Shared) -> auto::Builder<TokioExecutor> {
    let limits = &shared.limits;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(u64::from(limits.head_read_s_max)))
        .max_buf_size(H1_HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.h2_streams_max)
        .max_header_list_size(H2_HEAD_BYTES_MAX)
        .keep_alive_interval(Some(H2_PING_PAUSE))
        .keep_alive_timeout(H2_PING_WAIT_MAX);
    builder
}

/// The body of a request on one of our own connections. It may be dropped before its end, when its request was answered early.
/// Closing the connection would reset it, and the client, still sending, might never read its answer (RFC 9112, section 9.6). So
/// the rest is read in the background and dropped, for a limited time.
struct RequestBody {
    /// None at its end.
    body: Option<Incoming>,
    /// None where the rest need not be read.
    drains_rest: Option<Arc<Shared>>,
}

impl RequestBody {
    fn of(request: Request<Incoming>, shared: &Arc<Shared>) -> Request<Self> {
        // HTTP/2 ends a single request without its connection. A client that sent `Expect: 100-continue` has not begun
        // to send its body.
        let drains_rest = request.version() < Version::HTTP_2 && !request.headers().contains_key(header::EXPECT);
        request.map(|body| Self { body: Some(body), drains_rest: drains_rest.then(|| shared.clone()) })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let next = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = next {
            self.body = None;
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(body), Some(shared)) = (self.body.take(), self.drains_rest.take())
            && !body.is_end_stream()
        {
            read_rest(&shared, body);
        }
    }
}

fn read_rest(shared: &Shared, mut body: Incoming) {
    let supervisor = &shared.supervisor;
    if supervisor.is_draining() || tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    let draining = supervisor.draining().clone();
    let patience = Duration::from_secs(u64::from(shared.limits.unread_body_s_max));
    supervisor.spawn(Kind::Connection, async move {
        let forgetting = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::select! {
            biased;
            () = draining.cancelled() => {}
            _ = timeout(patience, forgetting) => {}
        }
    });
}

/// How every HTTP/2 connection begins, and no HTTP/1.1 request.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) struct Socket {
    stream: Stream,
    spoken: HttpVersion,
    /// Until when the HTTP version must be clear; none once it is, because hyper then has limits of its own.
    until: Option<Pin<Box<Sleep>>>,
    stall: WriteStall,
}

enum Stream {
    Plain(TcpStream),
    /// Boxed, so that a connection without TLS takes no memory for it.
    Tls(Box<TlsSocket>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HttpVersion {
    /// So many bytes, all of them as the preface has them.
    Preface(usize),
    Http1,
    Http2,
}

impl Socket {
    /// A client that takes longer than `patience` to show which HTTP version it speaks is disconnected, and so is one that
    /// reads nothing of its answer for as long as `stall`.
    pub(crate) fn plain(stream: TcpStream, patience: Duration, stall: Duration) -> Self {
        Self::new(Stream::Plain(stream), patience, stall)
    }

    pub(crate) fn tls(stream: Box<TlsSocket>, patience: Duration, stall: Duration) -> Self {
        Self::new(Stream::Tls(stream), patience, stall)
    }

    fn new(stream: Stream, patience: Duration, stall: Duration) -> Self {
        let until = Some(Box::pin(sleep(patience)));
        Self { stream, spoken: HttpVersion::Preface(0), until, stall: WriteStall::new(stall) }
    }

    fn received(&mut self, bytes: &[u8]) {
        let HttpVersion::Preface(known) = self.spoken else { return };
        let expected = &PREFACE[known..PREFACE.len().min(known + bytes.len())];
        self.spoken = match bytes.starts_with(expected) {
            true if known + bytes.len() >= PREFACE.len() => HttpVersion::Http2,
            true => HttpVersion::Preface(known + bytes.len()),
            false => HttpVersion::Http1,
        };
        if !matches!(self.spoken, HttpVersion::Preface(_)) {
            self.until = None;
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if let Some(until) = &mut self.until {
            if read.is_pending() {
                let late = || io::Error::new(io::ErrorKind::TimedOut, "nothing that is HTTP was said in time");
                return until.as_mut().poll(cx).map(|()| Err(late()));
            }
            self.received(&buf.filled()[before..]);
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        };
        self.stall.write(wrote, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        };
        self.stall.write(wrote, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.spoken != HttpVersion::Http2
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        };
        self.stall.flush(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
