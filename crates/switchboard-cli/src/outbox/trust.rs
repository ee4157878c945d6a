//! Whose certificate is good enough for the outbox of a server that speaks TLS.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_rustls::ConfigBuilderExt;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::failure::Failure;

pub(crate) enum Trust {
    /// The well-known authorities.
    WellKnown,
    /// Those in a file.
    Authorities(PathBuf),
    /// One certificate, which the server is configured with. Nobody else has its key, so it does not matter who vouches for
    /// it, nor by which name the server is reached.
    Own(PathBuf),
}

impl Trust {
    /// # Errors
    /// When a file holds no certificate.
    pub(super) fn client(&self) -> Result<ClientConfig, Failure> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(Failure::runtime)?;
        let builder = match self {
            Self::WellKnown => builder.with_webpki_roots(),
            Self::Authorities(file) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(file)? {
                    let unfit = |error| Failure::Usage(format!("{}: cannot be trusted: {error}", file.display()));
                    roots.add(certificate).map_err(unfit)?;
                }
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_webpki_verifier(verifier.build().map_err(Failure::runtime)?)
            }
            Self::Own(file) => {
                let own = certificates(file)?.swap_remove(0);
                builder.dangerous().with_custom_certificate_verifier(Arc::new(Own { own, provider }))
            }
        };
        Ok(builder.with_no_client_auth())
    }
}

/// The certificates in a file; at least one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let unread = |error| Failure::Usage(format!("{}: cannot be read as certificates: {error}", file.display()));
    let all = CertificateDer::pem_file_iter(file).map_err(unread)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(unread)?;
    if all.is_empty() {
        return Err(Failure::Usage(format!("{}: holds no certificate in PEM form", file.display())));
    }
    Ok(all)
}

/// Takes one certificate and no other. That the server has its key is proved as always.
#[derive(Debug)]
struct Own {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Own {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.own {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What went wrong with TLS, if that was it, for somebody who looks after a server.
pub(super) fn trouble(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    Some(match of_tls(error)? {
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "it shows another certificate than that of the configuration".to_owned()
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no authority that is trusted has issued its certificate; --ca-cert FILE names others".to_owned()
        }
        Error::InvalidMessage(_) => "it does not speak TLS; use http://".to_owned(),
        other => other.to_string(),
    })
}

/// The error of TLS among the causes; those of I/O hold theirs where `source` does not show it.
fn of_tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => error.source(),
        };
    }
    None
}
