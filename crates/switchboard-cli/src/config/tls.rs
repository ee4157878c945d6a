//! The certificate and the key of the port: both or neither, and a good pair.

use std::path::{Path, PathBuf};

use switchboard::Tls;

use super::{ConfigError, Given, KnownTls};

pub(super) fn tls(
    cert: Option<Given<PathBuf>>,
    key: Option<Given<PathBuf>>,
    folder: &Path,
) -> Result<Option<KnownTls>, ConfigError> {
    let (cert, key) = match (cert, key) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) => return Ok(None),
        (Some(cert), None) => {
            let why =
                "there is no private key to go with it; name its file, too (tls.key, --tls-key or SWITCHBOARD_TLS_KEY)";
            return Err(cert.from.error(why));
        }
        (None, Some(key)) => {
            let why = "there is no certificate to go with it; name its file, too (tls.cert, --tls-cert or SWITCHBOARD_TLS_CERT)";
            return Err(key.from.error(why));
        }
    };
    for given in [&cert, &key] {
        if given.value.as_os_str().is_empty() {
            return Err(given.from.error("expected the name of a file, got none"));
        }
    }
    let tls = Tls::from_files(folder.join(&cert.value), folder.join(&key.value)).map_err(|error| {
        let from = if error.is_about_key() { &key.from } else { &cert.from };
        from.error(error)
    })?;
    let doubt = tls.key_is_exposed().then(|| {
        let file = key.value.display();
        key.from.error(format_args!("everybody on this machine can read {file}; `chmod 600 {file}` keeps it private"))
    });
    Ok(Some(KnownTls { tls, cert: cert.value, key: key.value, doubt }))
}
