//! How a server is exposed to others: whether it is in production, the hosts and addresses it answers to, who its operators are, and
//! which callers need no credential. [`Exposure`] holds these settings from the builder to the edge; `build` checks them.

pub(crate) mod operator_check;
pub(crate) mod origins;
pub(crate) mod peers;
pub(crate) mod rebased;

use http::Uri;

use crate::server::serve_error::ServeError;
use crate::server::uri::is_loopback_host;
use operator_check::OperatorKey;
use peers::OpenPeers;

/// The settings of [`ServerBuilder`](crate::ServerBuilder) that this file is about.
#[derive(Clone, Default)]
pub(crate) struct Exposure {
    pub(super) production: bool,
    pub(super) allow_plain_http: bool,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) operator_key: Option<String>,
    pub(super) open_peers: Vec<String>,
}

/// What is left of the settings when the server is built.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuiltExposure {
    /// Whether the server refuses every operation, because it is in production and no setting says who may call.
    pub(crate) is_closed: bool,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) operator_key: Option<OperatorKey>,
    /// None if every caller needs a credential.
    pub(crate) open_peers: Option<OpenPeers>,
}

/// How many names a server may be given besides its own.
pub(crate) const ALLOWED_HOSTS_MAX: usize = 64;

/// A shorter operator key can be guessed.
const OPERATOR_KEY_BYTES_MIN: usize = 16;

impl Exposure {
    /// Whether operations are refused until somebody has said who may call.
    pub(super) fn closes(&self, is_open: bool, allow_unauthenticated: bool) -> bool {
        self.production && is_open && !allow_unauthenticated
    }

    /// Checks the settings.
    pub(super) fn build(
        &self,
        is_open: bool,
        allow_unauthenticated: bool,
        public_url: Option<&Uri>,
    ) -> Result<BuiltExposure, ServeError> {
        if self.production && !self.allow_plain_http {
            check_public_url(public_url)?;
        }
        if self.allowed_hosts.len() > ALLOWED_HOSTS_MAX {
            return Err(ServeError::new(format!("more than {ALLOWED_HOSTS_MAX} allowed hosts were given")));
        }
        let allowed_hosts = self.allowed_hosts.iter().map(|host| check_host(host)).collect::<Result<_, _>>()?;
        let operator_key = match &self.operator_key {
            Some(key) if key.len() < OPERATOR_KEY_BYTES_MIN => {
                return Err(ServeError::new(format!(
                    "the operator key is shorter than {OPERATOR_KEY_BYTES_MIN} characters; use a long random text"
                )));
            }
            key => key.as_deref().map(OperatorKey::new),
        };
        let open_peers = match self.open_peers.is_empty() {
            true => None,
            false => Some(OpenPeers::parse(&self.open_peers).map_err(ServeError::new)?),
        };
        let is_closed = self.closes(is_open, allow_unauthenticated);
        Ok(BuiltExposure { is_closed, allowed_hosts, operator_key, open_peers })
    }
}

fn check_public_url(public_url: Option<&Uri>) -> Result<(), ServeError> {
    let plain = public_url.filter(|url| url.scheme_str() == Some("http") && !url.host().is_some_and(is_loopback_host));
    match plain {
        None => Ok(()),
        Some(url) => Err(ServeError::new(format!(
            "the public URL {url} is not encrypted, and in production the cards would have clients send their tokens there; use \
             https://, or call ServerBuilder::allow_plain_http"
        ))),
    }
}

/// A host as requests name it, without a port.
fn check_host(host: &str) -> Result<String, ServeError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
    if !is_address && (host.is_empty() || host.len() > 253 || !host.chars().all(fits)) {
        return Err(ServeError::new(format!(
            "allowed host {host:?} is not a host name; give it without scheme, port and path, as in agents.example"
        )));
    }
    Ok(host.to_ascii_lowercase())
}
