//! TLS to servers that a store talks to, with rustls. The certificate of the server is always checked: against the authorities that
//! browsers know, or against those in a file.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The settings of connections, or what is wrong with the file.
pub(crate) fn client_config(root_certificates: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    match root_certificates {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let wrong =
                |why: &dyn std::fmt::Display| format!("{}: {why}; expected certificates in PEM", file.display());
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"no certificate in it"));
            }
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
