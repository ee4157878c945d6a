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
    /// The host and port in `own`, as most clients name them.
    own_authority: String,
    port: u16,
    /// The port that a request means which names none.
    default_port: u16,
    others: Vec<Other>,
}

struct Other {
    host: &'static str,
    base: String,
}

impl Origins {
    /// One address whatever the request names: that of the public URL.
    pub(crate) fn fixed(base: String) -> Self {
        Self { own: base, own_authority: String::new(), port: 0, default_port: 0, others: Vec::new() }
    }

    /// The address of a port, `http://127.0.0.1:8080`, and the same port under every other name of this machine.
    pub(crate) fn of_port(base: String, port: u16) -> Self {
        let (scheme, own_authority) = base.split_once("://").unwrap_or(("http", &base));
        let (own_host, _) = split(own_authority);
        let other = |host| Other { host, base: format!("{scheme}://{host}:{port}") };
        let others =
            LOOPBACK_NAMES.into_iter().filter(|name| !name.eq_ignore_ascii_case(own_host)).map(other).collect();
        let default_port = if scheme == "https" { 443 } else { 80 };
        Self { own_authority: own_authority.to_owned(), port, default_port, others, own: base }
    }

    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// The addresses under the other names, in the order that [`Origins::asked`] counts them in.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(|other| other.base.as_str())
    }

    /// Which of the other names a request names; none if it names the own one, or one that is not followed.
    pub(crate) fn asked(&self, uri: &Uri, headers: &HeaderMap) -> Option<usize> {
        if self.others.is_empty() {
            return None;
        }
        // HTTP/2 names the host in the request target, HTTP/1 in a header.
        let named = uri.authority().map(Authority::as_str);
        let named = named.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok()))?;
        if named == self.own_authority {
            return None;
        }
        let (host, port) = split(named);
        let port = port.map_or(Some(self.default_port), |port| port.parse().ok());
        if port != Some(self.port) {
            return None;
        }
        self.others.iter().position(|other| other.host.eq_ignore_ascii_case(host))
    }
}

/// Host and port of an authority. An IPv6 address keeps its brackets.
fn split(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    }
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
