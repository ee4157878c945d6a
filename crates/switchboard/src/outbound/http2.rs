//! Calls over HTTP/2, for gRPC: one connection for each call, dialled under the policy like any other. Nothing runs in the
//! background: the connection moves on while the answer is awaited or its body is read, and is closed with the body.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::header::USER_AGENT;
use http::{HeaderMap, Request, Uri, Version, response};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{AGENT, Client};
use super::connector::Io;
use super::error::{Error, ErrorKind, shown_host};
use super::limits::RequestLimits;
use super::target::host_and_port;

/// How much the other side may send before it is read: on the connection, and on its one stream.
const WINDOW_BYTES_MAX: u32 = 1 << 20;
/// The headers, or trailers, of an answer.
const HEADERS_BYTES_MAX: u32 = 32 * 1_024;

type Connection = h2::client::Connection<Box<dyn Io>, Bytes>;

/// None once it has ended.
struct Driver(Option<Box<Connection>>);

/// The body of an answer over HTTP/2, with the connection that it comes over. Only [`RequestLimits::idle`] bounds it: its reader
/// bounds what it keeps.
pub struct Http2Body {
    stream: RecvStream,
    driver: Driver,
    host: String,
    idle: Option<Duration>,
}

impl fmt::Debug for Http2Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Body").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Client {
    /// Sends a request over HTTP/2, as gRPC needs it, and waits for the head of the answer. Each call has a connection of its own.
    /// It is sent once; redirects are not followed.
    ///
    /// ```no_run
    /// use bytes::Bytes;
    /// use switchboard::outbound::{Client, RequestLimits};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let client = Client::builder().build().unwrap();
    /// let request = http::Request::post("https://agent.example/lf.a2a.v1.A2AService/GetTask")
    ///     .header("content-type", "application/grpc")
    ///     .header("te", "trailers")
    ///     .body(Bytes::from_static(&[0, 0, 0, 0, 0]))
    ///     .unwrap();
    /// let (head, mut body) = client.send_http2(request, &RequestLimits::stream()).await.unwrap();
    /// while let Some(chunk) = body.chunk().await.unwrap() {
    ///     // Messages, each behind five bytes that say how long it is.
    ///     # let _ = chunk;
    /// }
    /// let status = body.trailers().await.unwrap().and_then(|trailers| trailers.get("grpc-status").cloned());
    /// # let _ = (head, status);
    /// # });
    /// ```
    ///
    /// # Errors
    /// When there is no answer within the limits. The errors of the body come when it is read.
    pub async fn send_http2(
        &self,
        request: Request<Bytes>,
        limits: &RequestLimits,
    ) -> Result<(response::Parts, Http2Body), Error> {
        let uri = request.uri().clone();
        host_and_port(&uri).map_err(|why| Error::unsent(ErrorKind::InvalidRequest, why))?;
        let host = shown_host(&uri);
        let sending = self.send_http2_now(request, &uri, &host, limits);
        let limit = [limits.head, limits.total].into_iter().flatten().min();
        match limit {
            Some(limit) => timeout_at(Instant::now() + limit, sending).await.map_err(|_| Error::late(&host, limit))?,
            None => sending.await,
        }
    }

    async fn send_http2_now(
        &self,
        request: Request<Bytes>,
        uri: &Uri,
        host: &str,
        limits: &RequestLimits,
    ) -> Result<(response::Parts, Http2Body), Error> {
        let stream = self.connector().open_http2(uri, limits.connect).await?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW_BYTES_MAX).initial_connection_window_size(WINDOW_BYTES_MAX);
        builder.max_header_list_size(HEADERS_BYTES_MAX).enable_push(false);
        let unsent = |error: &h2::Error| failed(host, error).not_sent();
        let (sender, connection) = builder.handshake(stream).await.map_err(|error| unsent(&error))?;
        let mut driver = Driver(Some(Box::new(connection)));
        let mut sender = driver.drive(sender.ready()).await.map_err(|error| unsent(&error))?;
        let (mut head, body) = request.into_parts();
        head.version = Version::HTTP_2;
        head.headers.entry(USER_AGENT).or_insert(AGENT);
        let request = Request::from_parts(head, ());
        let (answer, mut sending) = sender.send_request(request, body.is_empty()).map_err(|error| unsent(&error))?;
        if !body.is_empty() {
            // What does not fit the window of the other side is kept, and sent as the connection moves on.
            sending.send_data(body, true).map_err(|error| failed(host, &error))?;
        }
        let answer = driver.drive(answer).await.map_err(|error| failed(host, &error))?;
        let (head, stream) = answer.into_parts();
        Ok((head, Http2Body { stream, driver, host: host.to_owned(), idle: limits.idle }))
    }
}

impl Http2Body {
    /// The next piece of the body; none at its end.
    ///
    /// # Errors
    /// When nothing arrives in time, or the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let stream = &mut self.stream;
        let reading = self.driver.drive(poll_fn(|cx| stream.poll_data(cx)));
        match within(self.idle, &self.host, reading).await? {
            None => Ok(None),
            Some(Err(error)) => Err(failed(&self.host, &error)),
            Some(Ok(data)) => {
                let _ = self.stream.flow_control().release_capacity(data.len());
                Ok(Some(data))
            }
        }
    }

    /// What follows the body, to be asked for at its end.
    ///
    /// # Errors
    /// As of [`chunk`](Self::chunk).
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, Error> {
        let stream = &mut self.stream;
        let reading = self.driver.drive(poll_fn(|cx| stream.poll_trailers(cx)));
        within(self.idle, &self.host, reading).await?.map_err(|error| failed(&self.host, &error))
    }
}

async fn within<F: Future>(idle: Option<Duration>, host: &str, reading: F) -> Result<F::Output, Error> {
    let Some(limit) = idle else { return Ok(reading.await) };
    timeout(limit, reading).await.map_err(|_| {
        Error::sent(ErrorKind::TimedOut, format!("nothing more of the answer of {host} came for {limit:?}"))
    })
}

/// What the library of HTTP/2 says. A stream that the other side refused was not looked at.
fn failed(host: &str, error: &h2::Error) -> Error {
    let text = format!("the connection to {host} broke before the answer was complete");
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => Error::unsent(ErrorKind::Broken, text),
        Some(Reason::PROTOCOL_ERROR | Reason::FRAME_SIZE_ERROR | Reason::HTTP_1_1_REQUIRED) => {
            Error::sent(ErrorKind::NotHttp, format!("{host} does not speak HTTP/2"))
        }
        Some(_) | None => Error::sent(ErrorKind::Broken, text),
    }
}

impl Driver {
    /// Waits for something that needs the connection to go on.
    async fn drive<F: Future>(&mut self, waited_for: F) -> F::Output {
        let mut waited_for = std::pin::pin!(waited_for);
        poll_fn(|cx| {
            if let Poll::Ready(output) = waited_for.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            self.poll(cx);
            // The connection may have brought what is waited for, or the news that it will not come.
            waited_for.as_mut().poll(cx)
        })
        .await
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.0.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready()) {
            self.0 = None;
        }
    }
}
