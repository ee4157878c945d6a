//! The names under which clients on this machine ask a server that has no public URL.
//!
//! Such a server answers to `127.0.0.1`, `localhost` and `[::1]`, and a client may accept a card only if its URLs have the
//! origin that the client fetched it from (google-adk does). So cards and links to artifacts name the host that the request
//! named. Only these three names are followed, and only with the server's own port: a request cannot make the server write a
//! foreign address into a card, and there are at most four variants of each card.

use std::net::SocketAddr;

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The server's own address and the other names that it follows.
pub(crate) struct Origins {
    /// Scheme, host and port, and the path of a public URL; without a slash at its end.
    own: String,
    others: Vec<OtherName>,
}

struct OtherName {
    base: String,
    /// Host and port as requests name them: without the port, if it is the one that a URL need not name.
    authorities: Vec<String>,
}

impl Origins {
    /// One address for every request: that of the public URL.
    pub(crate) fn fixed(base: String) -> Self {
        Self { own: base, others: Vec::new() }
    }

    /// The address of a port, `http://127.0.0.1:8080`, and the same port under every other name of this machine.
    pub(crate) fn of_port(base: String, port: u16) -> Self {
        let (scheme, own_authority) = base.split_once("://").unwrap_or(("http", &base));
        let own_host = own_authority.rsplit_once(':').map_or(own_authority, |(host, _)| host);
        let is_default = port == if scheme == "https" { 443 } else { 80 };
        let other = |host: &str| {
            let mut authorities = vec![format!("{host}:{port}")];
            authorities.extend(is_default.then(|| host.to_owned()));
            OtherName { base: format!("{scheme}://{host}:{port}"), authorities }
        };
        let others =
            LOOPBACK_NAMES.into_iter().filter(|name| !name.eq_ignore_ascii_case(own_host)).map(other).collect();
        Self { others, own: base }
    }

    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// The addresses under the other names, in the order that [`Origins::asked`] counts them in.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|other| other.base.as_str())
    }

    /// Which of the other names a request names; none if it names the own one, or one that is not followed.
    pub(crate) fn asked(&self, named: Option<&str>) -> Option<usize> {
        let named = named.filter(|_| !self.others.is_empty())?;
        let is_named = |authority: &String| authority.eq_ignore_ascii_case(named);
        self.others.iter().position(|other| other.authorities.iter().any(is_named))
    }
}

/// The host and port that a request names. HTTP/2 has them in the request target, HTTP/1 in a header.
pub(crate) fn named_authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let target = uri.authority().map(Authority::as_str);
    target.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

/// A listener on all addresses is reached on this machine by its loopback address.
pub(crate) fn reachable(addr: SocketAddr) -> SocketAddr {
    if !addr.ip().is_unspecified() {
        return addr;
    }
    let loopback = if addr.is_ipv4() {
        std::net::IpAddr::from(std::net::Ipv4Addr::LOCALHOST)
    } else {
        std::net::IpAddr::from(std::net::Ipv6Addr::LOCALHOST)
    };
    SocketAddr::new(loopback, addr.port())
}

#[cfg(test)]
mod tests;
