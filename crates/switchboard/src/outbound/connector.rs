//! Resolves a name, asks the policy, dials, and does the TLS handshake. The name is resolved once and the socket goes to
//! an address from that answer, so a name server that changes its answer between the check and the call gains nothing.

use std::io;
use std::net::SocketAddr;
#[cfg(feature = "server")]
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use switchboard_core::call::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::error::{Error, ErrorKind, TlsFault};
use super::policy::AddressPolicy;
use super::target::{host_and_port, literal};

/// A name may have hundreds of addresses. All are checked, few are tried.
const ADDRESSES_TRIED_MAX: usize = 4;

/// Looks up the addresses of a name.
pub(crate) trait Resolve: Send + Sync {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Asks the system, as every other program on the machine does.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// What a connection is made of: TCP, or TLS over it.
pub(super) type Stream = TokioIo<Box<dyn Io>>;

pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// Opens connections to checked addresses, with TLS where the URL asks for it.
pub(super) struct Connector {
    policy: AddressPolicy,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    #[cfg(feature = "grpc")]
    tls_http2: TlsConnector,
}

impl Connector {
    pub(super) fn new(policy: AddressPolicy, resolver: Arc<dyn Resolve>, tls: ClientConfig) -> Self {
        #[cfg(feature = "grpc")]
        let tls_http2 = {
            let mut tls = tls.clone();
            tls.alpn_protocols = vec![b"h2".to_vec()];
            TlsConnector::from(Arc::new(tls))
        };
        Self {
            policy,
            resolver,
            tls: TlsConnector::from(Arc::new(tls)),
            #[cfg(feature = "grpc")]
            tls_http2,
        }
    }

    pub(super) async fn open(&self, uri: &Uri, limit: Duration) -> Result<Stream, Error> {
        Ok(TokioIo::new(self.open_with(uri, limit, &self.tls).await?))
    }

    /// A connection on which TLS, where the URL asks for it, names HTTP/2.
    #[cfg(feature = "grpc")]
    pub(super) async fn open_http2(&self, uri: &Uri, limit: Duration) -> Result<Box<dyn Io>, Error> {
        self.open_with(uri, limit, &self.tls_http2).await
    }

    async fn open_with(&self, uri: &Uri, limit: Duration, tls: &TlsConnector) -> Result<Box<dyn Io>, Error> {
        let end = Instant::now() + limit;
        let (host, port) = host_and_port(uri).map_err(|why| Error::unsent(ErrorKind::InvalidRequest, why))?;
        let addresses = self.resolve(host, port, limit / 3).await?;
        self.check(&addresses, host)?;
        let tcp = connect(&addresses, host, limit / 3).await?;
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Ok(Box::new(tcp));
        }
        // The certificate is compared with the host of the URL, not with the address that was dialled.
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            Error::unsent(ErrorKind::Tls(TlsFault::Other), format!("TLS is not possible with the host name {host}"))
        })?;
        match timeout_at(end, tls.connect(name, tcp)).await {
            Ok(Ok(tls)) => Ok(Box::new(tls)),
            Ok(Err(error)) => Err(Error::handshake(host, &error)),
            Err(_) => Err(Error::unsent(ErrorKind::TimedOut, format!("TLS handshake with {host} took too long"))),
        }
    }

    /// Checks what can be known of a URL without a resolver.
    #[cfg(feature = "server")]
    pub(super) fn check_written_address(&self, uri: &Uri) -> Result<(), String> {
        let (host, port) = host_and_port(uri)?;
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_this_machine = name == "localhost" || name.ends_with(".localhost");
        let ip = literal(host).or(is_this_machine.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        ip.map_or(Ok(()), |ip| self.policy.check_addr(ip, port, host))
    }

    async fn resolve(&self, host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, Error> {
        if let Some(ip) = literal(host) {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let (kind, why) = match timeout(limit, self.resolver.resolve(host, port)).await {
            Ok(Ok(addresses)) if addresses.is_empty() => (ErrorKind::Connect, format!("{host} has no address")),
            Ok(Ok(addresses)) => return Ok(addresses),
            Ok(Err(error)) => (ErrorKind::Connect, format!("{host} could not be resolved: {error}")),
            Err(_) => (ErrorKind::TimedOut, format!("{host} could not be resolved in time")),
        };
        Err(Error::unsent(kind, why))
    }

    /// One refused address refuses the name: a name server that mixes public and private addresses could otherwise have
    /// the private one dialled in the next attempt.
    fn check(&self, addresses: &[SocketAddr], host: &str) -> Result<(), Error> {
        for address in addresses {
            let checked = self.policy.check_addr(address.ip(), address.port(), host);
            checked.map_err(|why| Error::unsent(ErrorKind::Refused, why))?;
        }
        Ok(())
    }
}

/// Tries one address after the other, each with its share of the time, so that one silent address does not hide the
/// next.
async fn connect(addresses: &[SocketAddr], host: &str, limit: Duration) -> Result<TcpStream, Error> {
    let tried = &addresses[..addresses.len().min(ADDRESSES_TRIED_MAX)];
    let mut last = Error::unsent(ErrorKind::Connect, format!("{host} has no address"));
    for address in tried {
        let shown = if literal(host).is_some() { address.to_string() } else { format!("{host} ({address})") };
        match timeout(limit / tried.len() as u32, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is one small write that waits for an answer. Without the option it still arrives, only later.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => {
                last = Error::unsent(ErrorKind::Connect, format!("no connection to {shown}: {error}"));
            }
            Err(_) => last = Error::unsent(ErrorKind::TimedOut, format!("no connection to {shown} in time")),
        }
    }
    Err(last)
}
