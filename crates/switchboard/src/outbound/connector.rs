//! Resolves, asks the policy, dials. The name is resolved once and the socket goes to an address from that answer, so
//! a name server that changes its mind between the check and the call gains nothing.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use switchboard_core::call::BoxFuture;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use super::policy::OutboundPolicy;
use super::target::{host_and_port, literal};
use super::trouble::DialError;

const LOOKUP: Duration = Duration::from_secs(5);
/// For all addresses of a name together.
const CONNECT: Duration = Duration::from_secs(5);
/// From the lookup to the end of the TLS handshake. Callers have limits of their own, which may be longer.
const DIAL: Duration = Duration::from_secs(15);
/// A name may have hundreds of addresses. All are checked, few are tried.
const ADDRESSES_TRIED_MAX: usize = 4;

/// Who knows the addresses of a name.
pub(super) trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Asks the system, as every other program on the machine does.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// What a connection is made of.
pub(super) type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens connections for the HTTP client, with TLS where the URL asks for it.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<Dialler>,
}

impl Connector {
    pub(super) fn new(policy: OutboundPolicy, resolver: Arc<dyn Resolve>, tls: ClientConfig) -> Self {
        let dialler = Dialler { policy: Arc::new(policy), resolver };
        // The certificate is held against the host of the URL, not against the address that was dialled.
        let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        Self { https: https.wrap_connector(dialler) }
    }

    /// Resolves, checks and dials, with TLS where the URL asks for it.
    pub(super) async fn open(&self, uri: &Uri) -> Result<Stream, DialError> {
        let connecting = self.https.clone().oneshot(uri.clone());
        match timeout(DIAL, connecting).await {
            Ok(connected) => connected.map_err(DialError::from_handshake),
            Err(_) => Err(DialError::Failed("TLS handshake took too long".to_owned())),
        }
    }
}

/// Opens plain connections, to checked addresses only.
#[derive(Clone)]
struct Dialler {
    policy: Arc<OutboundPolicy>,
    resolver: Arc<dyn Resolve>,
}

impl Service<Uri> for Dialler {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialler = self.clone();
        Box::pin(async move {
            let (host, port) = host_and_port(&uri).map_err(DialError::Refused)?;
            let addresses = dialler.resolve(host, port).await?;
            check_all(&dialler.policy, &addresses, host)?;
            connect(&addresses).await.map(TokioIo::new)
        })
    }
}

impl Dialler {
    async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        if let Some(ip) = literal(host) {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        match timeout(LOOKUP, self.resolver.resolve(host, port)).await {
            Ok(Ok(addresses)) if addresses.is_empty() => Err(DialError::Failed(format!("{host} has no address"))),
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(DialError::Failed(format!("{host} could not be resolved: {error}"))),
            Err(_) => Err(DialError::Failed(format!("{host} could not be resolved in time"))),
        }
    }
}

/// One refused address refuses the name: a public address next to a private one is how a name server asks to be
/// called a second time.
fn check_all(policy: &OutboundPolicy, addresses: &[SocketAddr], host: &str) -> Result<(), DialError> {
    let mut verdicts = addresses.iter().map(|address| policy.check_addr(address.ip(), address.port(), host));
    verdicts.try_for_each(|verdict| verdict.map_err(DialError::Refused))
}

/// Tries one address after the other, each with its share of the time, so that one silent address does not hide the
/// next.
async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let tried = &addresses[..addresses.len().min(ADDRESSES_TRIED_MAX)];
    let mut last = "no address to connect to".to_owned();
    for address in tried {
        match timeout(CONNECT / tried.len() as u32, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A post is one small write that waits for an answer. Without the option it still arrives, only later.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = format!("no connection to {address}: {error}"),
            Err(_) => last = format!("no connection to {address} in time"),
        }
    }
    Err(DialError::Failed(last))
}
