//! Loopback is not a wall: a page in a browser on this machine can reach a local port, and a name in somebody else's
//! DNS can point at it. On loopback, a Host or Origin that is neither loopback nor our own is turned away.

use http::{HeaderValue, Uri};

use crate::server::edge::cors::Cors;

/// Which names this server answers to.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// False beyond loopback, where any name may be ours.
    checks: bool,
    /// The host of the public URL.
    own_host: Option<String>,
    /// The host that the certificate is for. Nobody else can have a page there.
    certified_host: Option<String>,
}

impl Gate {
    pub(crate) fn new(checks: bool, public_url: Option<&Uri>, certified_host: Option<String>) -> Self {
        Self { checks, own_host: public_url.and_then(Uri::host).map(str::to_ascii_lowercase), certified_host }
    }

    /// Whether nobody elsewhere is meant to reach this server: it is on loopback, and no public URL says otherwise.
    pub(crate) fn is_for_this_machine(&self) -> bool {
        self.checks && self.own_host.as_deref().is_none_or(is_loopback_host)
    }

    /// Whether a request that names this host may come in. `public` is the card, which any page may read.
    pub(crate) fn admits(
        &self,
        authority: Option<&str>,
        origin: Option<&HeaderValue>,
        cors: &Cors,
        public: bool,
    ) -> Result<(), &'static str> {
        if !self.checks {
            return Ok(());
        }
        // A name and a password in front of the host have no place in a request; what looks like our host may be the name.
        let authority = authority.filter(|authority| !authority.contains('@'));
        if !authority.map(host_name).is_some_and(|host| self.is_ours(host)) {
            return Err("this server answers only to loopback names and to its public URL (Host header)");
        }
        let Some(origin) = origin.filter(|_| !public) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let host = origin.split_once("://").map(|(_, rest)| host_name(rest));
        if cors.allows(origin) || host.is_some_and(|host| self.is_ours(host)) {
            return Ok(());
        }
        Err("pages of this origin may not call this server (Origin header)")
    }

    fn is_ours(&self, host: &str) -> bool {
        // What nearly everybody says who is on this machine needs no reading.
        if host == "127.0.0.1" || host == "localhost" {
            return true;
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || [&self.own_host, &self.certified_host]
                .into_iter()
                .flatten()
                .any(|own| own.trim_matches(['[', ']']).eq_ignore_ascii_case(host))
    }
}

/// Whether the host of a URL leads to this machine and to no other.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// The host without its port; an IPv6 address keeps its brackets.
fn host_name(authority: &str) -> &str {
    if authority.starts_with('[') {
        authority.split_inclusive(']').next().unwrap_or(authority)
    } else {
        authority.split(':').next().unwrap_or(authority)
    }
}
