//! A connection as hyper is to see it, with TLS or without. HTTP/2 writes a short answer in one piece only where the socket does not take
//! several: otherwise the trailers that end a gRPC call are a packet, and a system call, of their own.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::tls::TlsSocket;

/// How every HTTP/2 connection begins, and no HTTP/1.1 request.
const PREFACE: &[u8] = b"PRI";

pub(crate) struct Socket {
    stream: Stream,
    spoken: Spoken,
}

enum Stream {
    Plain(TcpStream),
    /// Apart, so that a connection without TLS takes no more room for it.
    Tls(Box<TlsSocket>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Spoken {
    Nothing,
    Http1,
    Http2,
}

impl Socket {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self { stream: Stream::Plain(stream), spoken: Spoken::Nothing }
    }

    pub(crate) fn tls(stream: Box<TlsSocket>) -> Self {
        Self { stream: Stream::Tls(stream), spoken: Spoken::Nothing }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        if self.spoken == Spoken::Nothing && buf.filled().len() > before {
            let is_http2 = buf.filled()[before..].starts_with(PREFACE);
            self.spoken = if is_http2 { Spoken::Http2 } else { Spoken::Http1 };
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.spoken != Spoken::Http2
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
