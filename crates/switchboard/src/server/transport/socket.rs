//! A connection for hyper, with TLS or without, for two reasons. hyper writes a short HTTP/2 answer in one piece only
//! if the socket does not support vectored writes; otherwise the trailers that end a gRPC call are a packet, and a
//! system call, of their own. And hyper waits without a time limit to see which version a client speaks, so this file
//! sets the limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Duration, Sleep, sleep};

use crate::server::transport::tls::TlsSocket;

/// How every HTTP/2 connection begins, and no HTTP/1.1 request.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) struct Socket {
    stream: Stream,
    spoken: HttpVersion,
    /// Until when the HTTP version must be clear; none once it is, because hyper then has limits of its own.
    until: Option<Pin<Box<Sleep>>>,
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
    /// A client that takes longer than `patience` to show which HTTP version it speaks is disconnected.
    pub(crate) fn plain(stream: TcpStream, patience: Duration) -> Self {
        Self::new(Stream::Plain(stream), patience)
    }

    pub(crate) fn tls(stream: Box<TlsSocket>, patience: Duration) -> Self {
        Self::new(Stream::Tls(stream), patience)
    }

    fn new(stream: Stream, patience: Duration) -> Self {
        Self { stream, spoken: HttpVersion::Preface(0), until: Some(Box::pin(sleep(patience))) }
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
        self.spoken != HttpVersion::Http2
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
