//! The certificate and the key of the port: both or neither, and a good pair.

use std::path::Path;

use switchboard::Tls;

use super::table::TlsSettings;
use super::{ConfigError, KnownTls};

pub(super) fn tls(settings: &TlsSettings, folder: &Path) -> Result<Option<KnownTls>, ConfigError> {
    let TlsSettings { cert: cert_given, key: key_given } = settings;
    let (cert, key) = match (&cert_given.value, &key_given.value) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            let why =
                "there is no private key to go with it; name its file, too (tls.key, --tls-key or SWITCHBOARD_TLS_KEY)";
            return Err(cert_given.from.error(why));
        }
        (None, Some(_)) => {
            let why = "there is no certificate to go with it; name its file, too (tls.cert, --tls-cert or SWITCHBOARD_TLS_CERT)";
            return Err(key_given.from.error(why));
        }
    };
    let tls = Tls::from_files(folder.join(cert), folder.join(key)).map_err(|error| {
        let from = if error.is_about_key() { &key_given.from } else { &cert_given.from };
        from.error(error)
    })?;
    let doubt = tls.key_is_exposed().then(|| {
        let file = key.display();
        key_given
            .from
            .error(format_args!("everybody on this machine can read {file}; `chmod 600 {file}` keeps it private"))
    });
    Ok(Some(KnownTls { tls, doubt }))
}
