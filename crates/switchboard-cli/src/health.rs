//! `switchboard health`: asks a server whether it is healthy. It is for health checks in containers without curl.

use std::path::Path;
use std::time::Duration;

use switchboard::outbound::Trust;

use crate::cli::HealthArgs;
use crate::config::{Environment, SettingFlags, local_url, read_layers};
use crate::failure::Failure;
use crate::outbox::fetch;

/// A server that takes longer is not well.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the server says.
///
/// # Errors
/// When it is not healthy or does not answer in time.
pub(crate) async fn run(args: &HealthArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let (url, own_certificate) = match &args.url {
        Some(url) => (url.trim_end_matches('/').to_owned(), None),
        None => {
            let layers = read_layers(&SettingFlags::default(), args.config.as_deref(), environment, folder);
            let (server, tls) = layers.server()?;
            (local_url(*server.listen, tls.cert.is_some()), tls.cert.value)
        }
    };
    let trust = match (&args.ca_cert, own_certificate) {
        (Some(file), _) => Trust::Authorities(folder.join(file)),
        (None, Some(own)) => Trust::Certificate(folder.join(own)),
        (None, None) => Trust::PublicAuthorities,
    };
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let asked = tokio::time::timeout(PATIENCE, fetch(&url, path, trust)).await;
    let late = |_| Failure::Runtime(format!("{url} did not answer within {} seconds", PATIENCE.as_secs()));
    let (status, body) = asked.map_err(late)??;
    let said = String::from_utf8_lossy(&body).trim().to_owned();
    if status == 200 { Ok(said) } else { Err(Failure::Runtime(format!("{url}{path} answered {status}: {said}"))) }
}
