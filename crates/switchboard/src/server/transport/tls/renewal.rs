//! Renews the certificate: checks the files at an interval and reads them again when they have changed. Nothing here
//! blocks a thread that serves requests.

use std::io;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use rustls::sign::CertifiedKey;
use tokio::io::AsyncReadExt;

use super::pair::{FILE_BYTES_MAX, Labels, pair};
use super::{Tls, TlsError};
use crate::server::file_version::FileVersion;

/// The versions of the certificate and the key files that were last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairVersion([FileVersion; 2]);

impl PairVersion {
    pub(super) fn of(certificate: &Path, key: &Path) -> Self {
        Self([FileVersion::of(certificate), FileVersion::of(key)])
    }

    pub(super) async fn of_now(certificate: &Path, key: &Path) -> Self {
        Self([FileVersion::of_now(certificate).await, FileVersion::of_now(key).await])
    }
}

/// Reads both files.
pub(super) async fn read(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let labels = Labels::of_files(certificate, key);
    let certificate = bytes(certificate).await.map_err(|error| labels.no_certificate_file(&error))?;
    let key = bytes(key).await.map_err(|error| labels.no_key_file(&error))?;
    pair(&certificate, &key, &labels)
}

async fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// Looks for new files until it is dropped, and logs the outcome.
pub(crate) async fn reload_on_change(tls: Tls, every: Duration) {
    let Some(files) = &tls.0.files else { return };
    loop {
        tokio::time::sleep(every).await;
        let version = PairVersion::of_now(&files.certificate, &files.key).await;
        if version == *files.seen.lock().unwrap_or_else(PoisonError::into_inner) {
            continue;
        }
        match tls.reload().await {
            Ok(()) => tracing::info!(certificate = %files.certificate.display(), "certificate renewed"),
            Err(error) => tracing::warn!(%error, "the new certificate was not taken; the old one stays in use"),
        }
    }
}
