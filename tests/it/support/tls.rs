//! Clients of a port that speaks TLS. The certificates are those of `tests/certificates`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use switchboard::Tls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::callers::soon;
use super::edge::Answer;

/// A certificate and its key, as text.
pub(crate) type Pair = [&'static str; 2];

pub(crate) const FIRST: Pair =
    [include_str!("../../certificates/first.cert.pem"), include_str!("../../certificates/first.key.pem")];
pub(crate) const SECOND: Pair =
    [include_str!("../../certificates/second.cert.pem"), include_str!("../../certificates/second.key.pem")];

pub(crate) fn tls([certificate, key]: Pair) -> Tls {
    Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
}

/// A client that trusts one certificate, knows these versions of TLS and offers these protocols.
pub(crate) fn client(
    [certificate, _]: Pair,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

/// A connection to `localhost`, if both sides agree.
pub(crate) async fn connect(address: SocketAddr, client: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    soon(client.connect(ServerName::try_from("localhost").unwrap(), stream)).await
}

/// A connection of a client that trusts this certificate and offers these protocols.
pub(crate) async fn connected(address: SocketAddr, pair: Pair, protocols: &[&str]) -> TlsStream<TcpStream> {
    connect(address, &client(pair, rustls::DEFAULT_VERSIONS, protocols)).await.unwrap()
}

pub(crate) fn protocol(stream: &TlsStream<TcpStream>) -> Option<&str> {
    stream.get_ref().1.alpn_protocol().map(|name| std::str::from_utf8(name).unwrap())
}

/// Asks over HTTP/1.1.
pub(crate) struct Http1(http1::SendRequest<Full<Bytes>>);

impl Http1 {
    pub(crate) async fn over(stream: TlsStream<TcpStream>) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn open(&mut self, mut request: Request<Full<Bytes>>) -> http::Response<Incoming> {
        request.headers_mut().insert("host", http::HeaderValue::from_static("localhost"));
        soon(self.0.send_request(request)).await.unwrap()
    }

    pub(crate) async fn ask(&mut self, request: Request<Full<Bytes>>) -> Answer {
        whole(self.open(request).await).await
    }
}

/// Asks over HTTP/2.
pub(crate) struct Http2(http2::SendRequest<Full<Bytes>>);

impl Http2 {
    pub(crate) async fn over(stream: TlsStream<TcpStream>) -> Self {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    pub(crate) async fn ask(&mut self, mut request: Request<Full<Bytes>>) -> Answer {
        *request.uri_mut() = format!("https://localhost{}", request.uri()).parse().unwrap();
        *request.version_mut() = Version::HTTP_2;
        whole(soon(self.0.send_request(request)).await.unwrap()).await
    }
}

async fn whole(response: http::Response<Incoming>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = soon(body.collect()).await.unwrap().to_bytes();
    Answer { status: parts.status, headers: parts.headers, body }
}

/// A server over TLS that answers every request with this JSON, and counts them.
pub(crate) async fn json_over_tls([certificate, key]: Pair, body: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let (acceptor, count) = (TlsAcceptor::from(Arc::new(config)), Arc::new(AtomicUsize::new(0)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            counter.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 8_192]).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (address, count)
}
