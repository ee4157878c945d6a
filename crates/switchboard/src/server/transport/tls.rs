//! TLS on the port: the certificate and the key, which can be exchanged while the server runs. `pair` reads them
//! and looks for new ones, `handshake` is how a connection begins. Which crates do the work stays in here.

mod handshake;
mod pair;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::audit::AuditEvent;
use webpki::EndEntityCert;

pub(crate) use handshake::{Refused, TlsSocket, shake_hands};

use crate::reloaded::{RELOADED_FILE_BYTES_MAX, Reload, WatchedFiles, read_file, read_file_now};
use pair::Labels;

/// What a client may ask to speak after the handshake, the better first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate and the private key of a server that speaks TLS (1.2 and 1.3, HTTP/2 and HTTP/1.1).
///
/// Clones share one pair: what [`Tls::reload`] or [`Tls::replace`] changes holds for every server it was given to, from
/// the next connection on.
///
/// ```no_run
/// use switchboard::{AgentBuilder, Tls, Turn};
///
/// # async fn main_() -> Result<(), switchboard::ServeError> {
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// switchboard::serve(echo).tls(Tls::from_files("cert.pem", "key.pem")?).run().await
/// # }
/// ```
#[derive(Clone)]
pub struct Tls(Arc<TlsState>);

struct TlsState {
    config: Arc<ServerConfig>,
    /// Whether clients are asked for certificates.
    asks_clients: bool,
    current: Arc<CurrentPair>,
    /// None if the pair was given as text.
    files: Option<PairFiles>,
    reloads: AtomicU64,
    reload_failures: AtomicU64,
}

#[derive(Clone)]
struct PairFiles {
    certificate: PathBuf,
    key: PathBuf,
    watched: Arc<WatchedFiles>,
    key_is_exposed: bool,
}

/// The pair that is shown to new connections.
#[derive(Debug)]
struct CurrentPair(RwLock<Arc<CertifiedKey>>);

impl CurrentPair {
    fn get(&self) -> Arc<CertifiedKey> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, pair: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
    }
}

impl ResolvesServerCert for CurrentPair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}

impl Tls {
    /// Reads both from files in PEM form: the certificate, followed by those that vouch for it, and its private key.
    ///
    /// A server looks every minute whether the files have changed, and uses the new ones. If they are not good, it goes on
    /// with those it has and says so in the log.
    ///
    /// # Errors
    /// When a file cannot be read, does not hold what it should, or the two do not belong together.
    pub fn from_files(certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, TlsError> {
        let (certificate, key) = (certificate.as_ref(), key.as_ref());
        let paths = vec![certificate.to_owned(), key.to_owned()];
        let watched = Arc::new(WatchedFiles::new("certificate", AuditEvent::Credentials, paths));
        let labels = Labels::of_files(certificate, key);
        let read = |path| read_file(path, RELOADED_FILE_BYTES_MAX);
        let certificate_pem = read(certificate).map_err(|why| labels.about_certificate(&why))?;
        let key_pem = read(key).map_err(|why| labels.about_key(&why))?;
        let pair = pair::pair(&certificate_pem, &key_pem, &labels)?;
        let files = PairFiles {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            watched,
            key_is_exposed: pair::is_exposed(key),
        };
        Self::new(pair, Some(files))
    }

    /// Takes both as text in PEM form.
    ///
    /// # Errors
    /// When a text does not hold what it should, or the two do not belong together.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Self::new(pair::pair(certificate, key, &Labels::of_texts())?, None)
    }

    fn new(pair: CertifiedKey, files: Option<PairFiles>) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentPair(RwLock::new(Arc::new(pair))));
        Self::of(current, files, None)
    }

    fn of(
        current: Arc<CurrentPair>,
        files: Option<PairFiles>,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, TlsError> {
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::about_certificate(format!("TLS could not be set up: {error}")))?;
        let asks_clients = clients.is_some();
        let config = match clients {
            Some(clients) => config.with_client_cert_verifier(clients),
            None => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(current.clone());
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Self(Arc::new(TlsState {
            config: Arc::new(config),
            asks_clients,
            current,
            files,
            reloads: AtomicU64::new(0),
            reload_failures: AtomicU64::new(0),
        })))
    }

    /// Asks clients for certificates that this authority has signed, in PEM form (one certificate or several). A client that shows
    /// none is served all the same, since cards are for everybody, and must prove itself otherwise; one that shows a certificate of
    /// another authority is disconnected. [`ClientCertificate`](crate::ClientCertificate) says who a client is by its certificate.
    ///
    /// ```no_run
    /// # fn main_() -> Result<switchboard::Tls, Box<dyn std::error::Error>> {
    /// let tls = switchboard::Tls::from_files("cert.pem", "key.pem")?.with_client_authority(&std::fs::read("clients-ca.pem")?)?;
    /// # Ok(tls)
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the text holds no certificate, or one that cannot be an authority.
    pub fn with_client_authority(self, authority: &[u8]) -> Result<Self, TlsError> {
        let wrong = |why: String| TlsError::about_certificate(format!("the authority for clients {why}"));
        let mut roots = RootCertStore::empty();
        for certificate in pair::chain(authority).map_err(wrong)? {
            roots.add(certificate).map_err(|error| wrong(format!("cannot be used: {error}")))?;
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).allow_unauthenticated();
        let clients = clients.build().map_err(|error| wrong(format!("cannot be used: {error}")))?;
        Self::of(self.0.current.clone(), self.0.files.clone(), Some(clients))
    }

    /// Whether clients are asked for certificates.
    pub(crate) fn asks_clients(&self) -> bool {
        self.0.asks_clients
    }

    /// Reads the files again, now. Connections that are open keep what they began with. Without files it does nothing.
    ///
    /// # Errors
    /// As [`Tls::from_files`]; then the pair stays the one it was.
    pub async fn reload(&self) -> Result<(), TlsError> {
        self.0.reload().await
    }

    /// The pair as what can be read again.
    pub(crate) fn source(&self) -> Arc<dyn Reload> {
        self.0.clone()
    }

    /// Uses another pair from the next connection on, for programs that get theirs by other ways than files.
    ///
    /// # Errors
    /// As [`Tls::from_pem`]; then the pair stays the one it was.
    pub fn replace(&self, certificate: &[u8], key: &[u8]) -> Result<(), TlsError> {
        self.0.current.set(pair::pair(certificate, key, &Labels::of_texts())?);
        Ok(())
    }

    /// The file that the certificate was read from, if it was.
    pub(crate) fn certificate_file(&self) -> Option<&Path> {
        self.0.files.as_ref().map(|files| files.certificate.as_path())
    }

    /// Whether the certificate is for this host, a name or an address.
    #[must_use]
    pub fn is_for(&self, host: &str) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let Ok(name) = ServerName::try_from(host) else { return false };
        self.certificate(|certificate| certificate.verify_is_valid_for_subject_name(&name).is_ok()).unwrap_or(false)
    }

    /// Whether all users of this machine can read the file of the private key.
    #[must_use]
    pub fn key_is_exposed(&self) -> bool {
        self.0.files.as_ref().is_some_and(|files| files.key_is_exposed)
    }

    /// The host of a URL that leads to this address and that the certificate is for, if there is one: the address, or
    /// `localhost` for one of loopback, or the first name in the certificate.
    pub(crate) fn host_at(&self, ip: IpAddr) -> Option<String> {
        let address = ip.to_string();
        if self.is_for(&address) {
            return Some(if ip.is_ipv6() { format!("[{address}]") } else { address });
        }
        if ip.is_loopback() && self.is_for("localhost") {
            return Some("localhost".to_owned());
        }
        let leads_here = |name: &&str| !name.contains('*') && *name != "localhost";
        let first = |certificate: &EndEntityCert<'_>| certificate.valid_dns_names().find(leads_here).map(str::to_owned);
        self.certificate(first).flatten()
    }

    fn certificate<T>(&self, look: impl FnOnce(&EndEntityCert<'_>) -> T) -> Option<T> {
        let pair = self.0.current.get();
        let certificate = EndEntityCert::try_from(pair.cert.first()?).ok()?;
        Some(look(&certificate))
    }

    /// How often the pair was exchanged, and how often the files were not good.
    pub(crate) fn reloads(&self) -> [u64; 2] {
        [&self.0.reloads, &self.0.reload_failures].map(|counter| counter.load(Ordering::Relaxed))
    }
}

impl TlsState {
    async fn reload(&self) -> Result<(), TlsError> {
        let Some(files) = &self.files else { return Ok(()) };
        files.watched.mark_read_now().await;
        let read = files.read().await;
        let counter = if read.is_ok() { &self.reloads } else { &self.reload_failures };
        counter.fetch_add(1, Ordering::Relaxed);
        self.current.set(read?);
        Ok(())
    }
}

impl PairFiles {
    async fn read(&self) -> Result<CertifiedKey, TlsError> {
        let Self { certificate, key, .. } = self;
        let labels = Labels::of_files(certificate, key);
        let certificate = read_file_now(certificate, RELOADED_FILE_BYTES_MAX).await;
        let certificate = certificate.map_err(|why| labels.about_certificate(&why))?;
        let key = read_file_now(key, RELOADED_FILE_BYTES_MAX).await.map_err(|why| labels.about_key(&why))?;
        pair::pair(&certificate, &key, &labels)
    }
}

impl Reload for TlsState {
    fn files(&self) -> Option<&WatchedFiles> {
        self.files.as_ref().map(|files| &*files.watched)
    }

    fn read_again(&self) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async { self.reload().await.map(|()| 1).map_err(|error| error.to_string()) })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.0.files.as_ref().map(|files| (&files.certificate, &files.key));
        f.debug_struct("Tls").field("files", &files).finish_non_exhaustive()
    }
}

/// What is wrong with a certificate or a private key, in one sentence that names the file. It never quotes what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    is_about_key: bool,
    text: String,
}

impl TlsError {
    fn about_certificate(text: String) -> Self {
        Self { is_about_key: false, text }
    }

    fn about_key(text: String) -> Self {
        Self { is_about_key: true, text }
    }

    /// Whether it is the key that must be changed, and not the certificate.
    #[must_use]
    pub fn is_about_key(&self) -> bool {
        self.is_about_key
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests;
