//! The client: sends a request over a kept or a new connection and waits for the head of the answer.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
#[cfg(feature = "grpc")]
use http::response;
use http::{HeaderValue, Request, Response, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout_at};

use super::body::Body;
use super::connector::{Connector, Resolve, SystemResolver};
use super::error::{BuildError, Error, ErrorKind};
#[cfg(feature = "grpc")]
use super::http2::{Http2Body, Http2Pool};
use super::limits::RequestLimits;
use super::policy::AddressPolicy;
use super::pool::{Connection, Key, Pool};
use super::redirect;
use super::target::host_and_port;
use super::trust::Trust;

const AGENT: HeaderValue = HeaderValue::from_static(concat!("switchboard/", env!("CARGO_PKG_VERSION")));
/// The status line and headers of an answer. Also the size of a read, and so of a chunk of the body.
const HEAD_BYTES_MAX: usize = 32 * 1_024;

/// An HTTP client whose every connection was checked by one [`AddressPolicy`] and made under one [`Trust`].
///
/// Clones share their connections. A connection is kept for a while and used again by calls to the same scheme, host and
/// port. None of them can get round the policy: each was dialled under it, the policy never changes, and the peer of an
/// open socket does not either.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    connector: Connector,
    pool: Arc<Pool>,
    #[cfg(feature = "grpc")]
    http2: Http2Pool,
}

/// What a [`Client`] is built from.
#[derive(Clone, Debug, Default)]
pub struct ClientBuilder {
    policy: AddressPolicy,
    trust: Trust,
}

impl ClientBuilder {
    /// Which addresses may be called; by default public ones only.
    #[must_use]
    pub fn policy(self, policy: AddressPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Which certificates are trusted; by default those of the public authorities.
    #[must_use]
    pub fn trust(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// Reads the certificates and puts the client together.
    ///
    /// # Errors
    /// When a file of certificates cannot be read or used.
    pub fn build(self) -> Result<Client, BuildError> {
        Ok(Client::assemble(self.policy, Arc::new(SystemResolver), self.trust.tls()?))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// What a request needs on its way: what pools and errors call its target, and when its time is over.
struct Call<'a> {
    uri: Uri,
    key: Key,
    limits: &'a RequestLimits,
    started: Instant,
}

impl Client {
    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.shared.pool.idle_count()
    }

    /// A client that calls public addresses and trusts the public authorities, unless told otherwise.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    pub(crate) fn assemble(policy: AddressPolicy, resolver: Arc<dyn Resolve>, tls: ClientConfig) -> Self {
        let connector = Connector::new(policy, resolver, tls);
        Self {
            shared: Arc::new(Shared {
                connector,
                pool: Arc::default(),
                #[cfg(feature = "grpc")]
                http2: Http2Pool::default(),
            }),
        }
    }

    /// Sends a request and waits for the head of the answer, whatever its status; the body is read from the [`Body`].
    ///
    /// The URL of the request is absolute. `Host` is set from it, and `User-Agent` unless the request has one. The request
    /// is written at most once: where a kept connection turns out to be closed before anything was written, a new one is
    /// used; where it breaks later, that is an error, and [`Error::may_have_arrived`] is true. A future that is dropped
    /// closes its connection.
    ///
    /// # Errors
    /// When there is no answer within the limits. Limits also bound the body, whose errors come when it is read.
    pub fn send(
        &self,
        request: Request<Bytes>,
        limits: &RequestLimits,
    ) -> impl Future<Output = Result<Response<Body>, Error>> + Send {
        self.follow(request, limits, Repeat::Never)
    }

    /// The same for a request that may arrive twice: if a kept connection breaks before an answer came, as it does when the
    /// other side closes it at that very moment, the request is sent once more over a new one.
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    pub fn send_repeatable(
        &self,
        request: Request<Bytes>,
        limits: &RequestLimits,
    ) -> impl Future<Output = Result<Response<Body>, Error>> + Send {
        self.follow(request, limits, Repeat::OnceIfKept)
    }

    /// Checks the address of a URL whose host is written as one, or is a name that always stands for this machine. Where other
    /// names lead is known when they are dialled.
    #[cfg(feature = "server")]
    pub(crate) fn check_written_address(&self, uri: &Uri) -> Result<(), String> {
        self.shared.connector.check_written_address(uri)
    }

    /// Closes connections that have been idle for long. Others are closed when they are found to be old.
    pub fn close_idle(&self) {
        self.shared.pool.close_idle();
        #[cfg(feature = "grpc")]
        self.shared.http2.close_idle();
    }

    /// Sends a request over HTTP/2, as gRPC needs it, and waits for the head of the answer. It is sent
    /// once, unless a connection that was there before turns out to be closed; redirects are not followed.
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
    #[cfg(feature = "grpc")]
    pub async fn send_http2(
        &self,
        mut request: Request<Bytes>,
        limits: &RequestLimits,
    ) -> Result<(response::Parts, Http2Body), Error> {
        request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
        self.shared.http2.send(&self.shared.connector, request, limits).await
    }

    pub(crate) async fn follow(
        &self,
        mut request: Request<Bytes>,
        limits: &RequestLimits,
        repeat: Repeat,
    ) -> Result<Response<Body>, Error> {
        let started = Instant::now();
        let mut redirects = if redirect::follows(request.method()) { limits.redirects_max } else { 0 };
        loop {
            let call = Call::new(request.uri(), limits, started)?;
            let next = (redirects > 0).then(|| request.clone());
            let mut answer = self.exchange(&call, request, repeat).await?;
            let Some(mut next) = next else { return Ok(answer) };
            let Some(to) = redirect::target(&call.uri, answer.status(), answer.headers())? else { return Ok(answer) };
            answer.body_mut().discard().await;
            redirect::retarget(&mut next, to);
            (request, redirects) = (next, redirects - 1);
        }
    }

    async fn exchange(
        &self,
        call: &Call<'_>,
        request: Request<Bytes>,
        repeat: Repeat,
    ) -> Result<Response<Body>, Error> {
        let mut request = on_the_wire(request, &call.uri);
        if let Some(mut kept) = self.shared.pool.take(&call.key).await {
            let again = (repeat == Repeat::OnceIfKept).then(|| request.clone());
            match call.within_head(kept.send(request)).await? {
                Ok(response) => return Ok(self.answer(call, kept, response).await),
                Err(mut unsent) => match unsent.take_message().or(again) {
                    Some(same) => request = same,
                    None => return Err(Error::unanswered(&call.key.shown_host(), unsent.error())),
                },
            }
        }
        // Boxed: a handshake takes some thousand bytes, and every future around this one would have room for them.
        Box::pin(self.exchange_anew(call, request)).await
    }

    /// Sends a request over a new connection.
    async fn exchange_anew(&self, call: &Call<'_>, request: Request<Full<Bytes>>) -> Result<Response<Body>, Error> {
        let mut dialled = call.within_head(self.dial(call)).await.map_err(Error::not_sent)??;
        match call.within_head(dialled.send(request)).await? {
            Ok(response) => Ok(self.answer(call, dialled, response).await),
            Err(mut failed) => {
                let error = Error::unanswered(&call.key.shown_host(), failed.error());
                Err(if failed.take_message().is_some() { error.not_sent() } else { error })
            }
        }
    }

    async fn dial(&self, call: &Call<'_>) -> Result<Box<Connection>, Error> {
        let host = call.uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        // The text names no value: what is wrong with it may be a password in it.
        let unwritable = || Error::unsent(ErrorKind::InvalidRequest, "the URL cannot be sent over HTTP".to_owned());
        let host = host.ok_or_else(unwritable)?;
        let stream = self.shared.connector.open(&call.uri, call.limits.connect).await?;
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let unanswered = |error| Error::unanswered(&call.key.shown_host(), &error).not_sent();
        let (sender, connection) = builder.handshake(stream).await.map_err(unanswered)?;
        Ok(Connection::new(sender, connection, host))
    }

    async fn answer(
        &self,
        call: &Call<'_>,
        connection: Box<Connection>,
        response: Response<Incoming>,
    ) -> Response<Body> {
        let (parts, incoming) = response.into_parts();
        let (pool, key) = (self.shared.pool.clone(), call.key.clone());
        let body = Body::new(incoming, connection, pool, key, call.limits, call.started);
        Response::from_parts(parts, body.returned_if_empty().await)
    }
}

/// Whether a request that may have arrived is sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Never,
    OnceIfKept,
}

impl<'a> Call<'a> {
    fn new(uri: &Uri, limits: &'a RequestLimits, started: Instant) -> Result<Self, Error> {
        // Whether the URL can be dialled is checked when it is. A kept connection was dialled to the same scheme, host and port.
        let invalid = |why| Error::unsent(ErrorKind::InvalidRequest, why);
        let no_host = || invalid(host_and_port(uri).err().unwrap_or_else(|| "URL has no host".to_owned()));
        let key = Key::of(uri).ok_or_else(no_host)?;
        Ok(Self { uri: uri.clone(), key, limits, started })
    }

    /// Waits for something for as long as the head of the answer may take.
    async fn within_head<F: Future>(&self, waited_for: F) -> Result<F::Output, Error> {
        let limit = [self.limits.head, self.limits.total].into_iter().flatten().min();
        let Some(limit) = limit else { return Ok(waited_for.await) };
        timeout_at(self.started + limit, waited_for).await.map_err(|_| Error::late(&self.key.shown_host(), limit))
    }
}

/// The request as HTTP/1.1 writes it: with the path alone as its target. Its connection adds `Host`.
fn on_the_wire(request: Request<Bytes>, uri: &Uri) -> Request<Full<Bytes>> {
    let mut request = request.map(Full::new);
    *request.uri_mut() = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    *request.version_mut() = Version::HTTP_11;
    request.headers_mut().entry(USER_AGENT).or_insert(AGENT);
    request
}
