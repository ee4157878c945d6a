//! Which certificates of the other side are trusted, and which one is shown to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::error::BuildError;

/// Which certificates a [`Client`](super::Client) trusts. Files are in PEM form and read once, when the client is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Those of the public authorities, whose list (Mozilla's) is built into the program.
    #[default]
    PublicAuthorities,
    /// Those of the public authorities, and of the ones in a file.
    PublicAuthoritiesAnd(PathBuf),
    /// Those of the authorities in a file, and no others.
    Authorities(PathBuf),
    /// The first certificate in a file, and no other. Only its owner has its key, so neither its issuer, nor its name, nor its
    /// dates matter.
    Certificate(PathBuf),
    /// Every certificate of every server, which is dangerous: see [`Trust::without_verification`].
    Everything,
    /// As another one says, and servers that ask for a certificate are shown one: see [`Trust::with_client_certificate`].
    WithClientCertificate {
        /// Which certificates of servers are trusted.
        servers: Box<Trust>,
        /// The file of the certificate that is shown, followed by those that vouch for it.
        certificate: PathBuf,
        /// The file of its private key.
        key: PathBuf,
    },
}

/// Where a [`ClientConfig`] stands when the certificates of servers were decided about.
type ServersDecided = ConfigBuilder<ClientConfig, WantsClientCert>;

impl Trust {
    /// Believes every server, whatever certificate it shows. **Dangerous**: whoever is on the way to the server can read and change
    /// everything, credentials included. For tests and for machines that are reached over another protection.
    #[must_use]
    pub fn without_verification() -> Self {
        Self::Everything
    }

    /// The same, and servers that ask for a certificate (mutual TLS) are shown this one. Both files are in PEM form; `certificate`
    /// may be followed by those that vouch for it.
    ///
    /// ```
    /// use switchboard::outbound::Trust;
    ///
    /// let trust = Trust::PublicAuthorities.with_client_certificate("client.pem", "client.key.pem");
    /// # let _ = trust;
    /// ```
    #[must_use]
    pub fn with_client_certificate(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let servers = match self {
            Self::WithClientCertificate { servers, .. } => servers,
            servers => Box::new(servers),
        };
        Self::WithClientCertificate { servers, certificate: certificate.into(), key: key.into() }
    }

    /// Whether servers that ask for a certificate are shown one.
    #[cfg(feature = "client")]
    pub(crate) fn has_client_certificate(&self) -> bool {
        matches!(self, Self::WithClientCertificate { .. })
    }

    pub(super) fn tls(&self) -> Result<ClientConfig, BuildError> {
        let Self::WithClientCertificate { servers, certificate, key } = self else {
            return Ok(self.decide_servers()?.with_no_client_auth());
        };
        let unread = |error| BuildError::new(format!("{}: cannot be read as a private key: {error}", key.display()));
        let (chain, own_key) = (certificates(certificate)?, PrivateKeyDer::from_pem_file(key).map_err(unread)?);
        let builder = servers.decide_servers()?;
        builder.with_client_auth_cert(chain, own_key).map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            BuildError::new(format!("{certificate} and {key} cannot be used as a client certificate: {error}"))
        })
    }

    fn decide_servers(&self) -> Result<ServersDecided, BuildError> {
        let verifier = self.verifier()?;
        Ok(config_builder()?.dangerous().with_custom_certificate_verifier(verifier))
    }

    /// What decides about the certificate of a server.
    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, BuildError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let by_authorities = |roots: RootCertStore| -> Result<Arc<dyn ServerCertVerifier>, BuildError> {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            Ok(verifier.map_err(|error| BuildError::new(format!("the authorities cannot be trusted: {error}")))?)
        };
        match self {
            Self::PublicAuthorities => by_authorities(public_authorities()),
            Self::PublicAuthoritiesAnd(file) => {
                let mut roots = public_authorities();
                add(&mut roots, file)?;
                by_authorities(roots)
            }
            Self::Authorities(file) => {
                let mut roots = RootCertStore::empty();
                add(&mut roots, file)?;
                by_authorities(roots)
            }
            Self::Certificate(file) => {
                let trusted = Some(certificates(file)?.swap_remove(0));
                Ok(Arc::new(ByItself { trusted, provider: provider.clone() }))
            }
            Self::Everything => Ok(Arc::new(ByItself { trusted: None, provider: provider.clone() })),
            Self::WithClientCertificate { servers, .. } => servers.verifier(),
        }
    }

    /// Makes a TLS handshake that accepts every certificate, and says what was shown and what this trust thinks of it. Nothing may be
    /// sent over such a connection. For programs that tell people why an agent cannot be called.
    ///
    /// # Errors
    /// When there is no handshake, or a file of certificates cannot be used, in words.
    #[doc(hidden)]
    pub async fn examine(&self, host: &str, stream: TcpStream) -> Result<ShownCertificate, String> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| "TLS is not possible with this name".to_owned())?;
        let witness =
            Arc::new(Witness { usual: self.verifier().map_err(|error| error.to_string())?, seen: Mutex::default() });
        let config = config_builder().map_err(|error| error.to_string())?;
        let config = config.dangerous().with_custom_certificate_verifier(witness.clone()).with_no_client_auth();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())?;
        let seen = witness.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        seen.ok_or_else(|| "the server showed no certificate".to_owned())
    }
}

/// What a server showed, and what a client would have said to it.
#[doc(hidden)]
#[derive(Debug)]
#[non_exhaustive]
pub struct ShownCertificate {
    /// In DER form.
    pub leaf: Vec<u8>,
    /// How many certificates came.
    pub chain: usize,
    /// Why it is not trusted.
    pub refusal: Option<CertificateError>,
}

/// The provider is named, because a process-wide default is for the program to install, and it may not have.
fn config_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, BuildError> {
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| BuildError::new(format!("TLS for outbound calls could not be set up: {error}")))
}

fn public_authorities() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn add(roots: &mut RootCertStore, file: &Path) -> Result<(), BuildError> {
    for certificate in certificates(file)? {
        roots
            .add(certificate)
            .map_err(|error| BuildError::new(format!("{}: cannot be trusted: {error}", file.display())))?;
    }
    Ok(())
}

/// The certificates in a file; at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, BuildError> {
    let unread = |error| BuildError::new(format!("{}: cannot be read as certificates: {error}", file.display()));
    let all = CertificateDer::pem_file_iter(file).map_err(unread)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(unread)?;
    if all.is_empty() {
        return Err(BuildError::new(format!("{}: holds no certificate in PEM form", file.display())));
    }
    Ok(all)
}

/// Lets every certificate pass, and keeps what another verifier says of it.
#[derive(Debug)]
struct Witness {
    usual: Arc<dyn ServerCertVerifier>,
    seen: Mutex<Option<ShownCertificate>>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refusal = match self.usual.verify_server_cert(leaf, others, name, ocsp, now) {
            Ok(_) => None,
            Err(Error::InvalidCertificate(error)) => Some(error),
            Err(_) => Some(CertificateError::BadEncoding),
        };
        let seen = ShownCertificate { leaf: leaf.to_vec(), chain: others.len() + 1, refusal };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// Goes by the certificate itself, without authorities: one and no other, or whatever a server shows.
#[derive(Debug)]
struct ByItself {
    /// None for whatever is shown.
    trusted: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ByItself {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.as_ref().is_none_or(|trusted| trusted == shown) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    /// That the server has the key of a trusted certificate is proved as always. What is shown by anybody need not even be readable.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.trusted {
            None => Ok(HandshakeSignatureValid::assertion()),
            Some(_) => {
                verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.trusted {
            None => Ok(HandshakeSignatureValid::assertion()),
            Some(_) => {
                verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
