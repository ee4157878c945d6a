//! From two texts in PEM form to a pair that can be shown to clients, or to the one sentence that says what is wrong with
//! which of them.

use std::path::Path;

use rustls::InconsistentKeys;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::TlsError;
use crate::reloaded::RELOADED_FILE_BYTES_MAX;

/// What the two are called in a refusal.
pub(super) struct Labels {
    certificate: String,
    key: String,
}

impl Labels {
    pub(super) fn of_files(certificate: &Path, key: &Path) -> Self {
        Self { certificate: certificate.display().to_string(), key: key.display().to_string() }
    }

    pub(super) fn of_texts() -> Self {
        Self { certificate: "the text of the certificate".to_owned(), key: "the text of the key".to_owned() }
    }

    pub(super) fn about_certificate(&self, why: &str) -> TlsError {
        TlsError::about_certificate(format!("{} {why}", self.certificate))
    }

    pub(super) fn about_key(&self, why: &str) -> TlsError {
        TlsError::about_key(format!("{} {why}", self.key))
    }
}

/// Whether all users of this machine can read a file.
pub(super) fn is_exposed(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// The pair, if the two are what they should be and belong together.
pub(super) fn pair(certificate: &[u8], key: &[u8], labels: &Labels) -> Result<CertifiedKey, TlsError> {
    let chain = chain(certificate).map_err(|why| labels.about_certificate(&why))?;
    let key = private_key(key).map_err(|why| labels.about_key(&why))?;
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key).map_err(|_| {
        labels.about_key(
            "holds a private key that cannot be used; expected RSA of 2048 bits or more, ECDSA on P-256, P-384 or \
             P-521, or Ed25519",
        )
    })?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
        Err(rustls::Error::InconsistentKeys(_)) if fits_another(&pair) => {
            let why =
                "does not begin with the server's own certificate; put it first, and those that vouch for it below";
            Err(labels.about_certificate(why))
        }
        Err(rustls::Error::InconsistentKeys(_)) => {
            Err(labels.about_key(&format!("is not the key of the certificate in {}", labels.certificate)))
        }
        Err(_) => Err(labels.about_certificate("holds a certificate that cannot be read; expected X.509 version 3")),
    }
}

/// Whether the key is that of a certificate further down.
fn fits_another(pair: &CertifiedKey) -> bool {
    let alone = |certificate: &CertificateDer<'static>| CertifiedKey::new(vec![certificate.clone()], pair.key.clone());
    pair.cert.iter().skip(1).any(|certificate| alone(certificate).keys_match().is_ok())
}

pub(super) fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let sections = sections(pem)?;
    let has_key = sections.iter().any(|(kind, _)| is_key(*kind));
    let of_certificates = sections.into_iter().filter(|(kind, _)| *kind == SectionKind::Certificate);
    let chain: Vec<_> = of_certificates.map(|(_, der)| CertificateDer::from(der)).collect();
    if !chain.is_empty() {
        return Ok(chain);
    }
    Err(if has_key {
        "holds a private key and no certificate; were the two mixed up?".to_owned()
    } else {
        "holds no certificate; expected PEM, a text with the line -----BEGIN CERTIFICATE-----".to_owned()
    })
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    if pem.windows(9).any(|word| word == b"ENCRYPTED") {
        return Err("holds a key that wants a passphrase, for which nobody can be asked; write it without one, as \
                    `openssl pkey` does"
            .to_owned());
    }
    let sections = sections(pem)?;
    let has_certificate = sections.iter().any(|(kind, _)| *kind == SectionKind::Certificate);
    let mut keys = sections.into_iter().filter(|(kind, _)| is_key(*kind));
    match (keys.next().and_then(|(kind, der)| PrivateKeyDer::from_pem(kind, der)), keys.next()) {
        (Some(key), None) => Ok(key),
        (Some(_), Some(_)) => Err("holds more than one private key; expected one".to_owned()),
        (None, _) if has_certificate => {
            Err("holds a certificate and no private key; were the two mixed up?".to_owned())
        }
        (None, _) => {
            Err("holds no private key; expected PEM, a text with the line -----BEGIN PRIVATE KEY-----".to_owned())
        }
    }
}

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

/// The parts of the text that are of a kind known here; others, such as the parameters of a curve, are passed over.
fn sections(pem: &[u8]) -> Result<Vec<(SectionKind, Vec<u8>)>, String> {
    if pem.trim_ascii().is_empty() {
        return Err("is empty".to_owned());
    }
    if pem.len() as u64 > RELOADED_FILE_BYTES_MAX {
        return Err(format!("is larger than {RELOADED_FILE_BYTES_MAX} bytes"));
    }
    <(SectionKind, Vec<u8>)>::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        // The error may quote the text, which may be a key.
        .map_err(|_| "is broken: a part of it does not end, or is not base64".to_owned())
}
