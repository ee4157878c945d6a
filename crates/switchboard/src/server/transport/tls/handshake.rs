//! The TLS handshake of a connection, within a time limit. A client that speaks HTTP without TLS gets an HTTP answer
//! that says so, instead of a TLS alert that it cannot read.

use std::fmt;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Tls;

/// A connection after its handshake.
pub(crate) type TlsSocket = TlsStream<TcpStream>;

/// Also sent to clients that speak HTTP/2: gRPC clients understand it and fail the call. As HTTP/2 frames it would look
/// like a connection that worked for a moment, and they would reconnect again and again.
const BAD_REQUEST: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 35\r\nconnection: close\r\n\r\nthis port speaks TLS; use https://\n";

/// How much is read from a client that speaks without TLS before the connection is closed.
const PLAIN_BYTES_MAX: usize = 64 << 10;

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum Refused {
    Late,
    /// HTTP without TLS.
    Plain,
    Failed(io::Error),
}

impl From<Elapsed> for Refused {
    fn from(_: Elapsed) -> Self {
        Self::Late
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late => f.write_str("it took too long"),
            Self::Plain => f.write_str("HTTP without TLS"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

pub(crate) async fn shake_hands(tls: &Tls, stream: TcpStream, within: Duration) -> Result<TlsSocket, Refused> {
    let deadline = Instant::now() + within;
    let mut first = [0];
    timeout_at(deadline, stream.peek(&mut first)).await?.map_err(Refused::Failed)?;
    // Every verb of HTTP begins with a capital letter, and so does the preface of HTTP/2; no message of TLS does.
    if first[0].is_ascii_uppercase() {
        // The client may be gone already; nothing more is sent in either case.
        let _ = timeout_at(deadline, turn_away(stream)).await;
        return Err(Refused::Plain);
    }
    let hands = TlsAcceptor::from(tls.0.config.clone()).accept(stream);
    timeout_at(deadline, hands).await?.map_err(Refused::Failed)
}

async fn turn_away(mut stream: TcpStream) -> io::Result<()> {
    let mut received = [0; 4 << 10];
    stream.write_all(BAD_REQUEST).await?;
    stream.shutdown().await?;
    // A socket that is closed with something unread resets the connection, and the answer may be lost with it.
    let mut left = PLAIN_BYTES_MAX;
    while left > 0 {
        match stream.read(&mut received).await? {
            0 => break,
            length => left = left.saturating_sub(length),
        }
    }
    Ok(())
}
