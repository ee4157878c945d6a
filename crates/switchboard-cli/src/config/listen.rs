//! Addresses to listen on, and who can reach them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Reads `ADDRESS:PORT`. The only host name that is accepted is `localhost`, because other names depend on DNS.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    if let Ok(addr) = text.parse() {
        return Ok(addr);
    }
    let named = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match named {
        Some((host, port)) if host.eq_ignore_ascii_case("localhost") => Ok(SocketAddr::new(DEFAULT.ip(), port)),
        _ => Err(format!("expected ADDRESS:PORT, as in 127.0.0.1:8080 or [::1]:8080, got {text:?}")),
    }
}

/// Reads the address alone, as in `BIND_HOST`.
pub(super) fn parse_host(text: &str) -> Result<IpAddr, String> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse() {
        Ok(ip) => Ok(ip),
        Err(_) if text.eq_ignore_ascii_case("localhost") => Ok(DEFAULT.ip()),
        Err(_) => Err(format!("expected an IP address, as in 127.0.0.1 or 0.0.0.0, got {text:?}")),
    }
}

/// Reads the port alone, as in `PORT`.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("expected a port from 0 to 65535, got {text:?}"))
}

/// The URL by which a server that listens there, with TLS or without, is reached on its own machine.
pub(crate) fn local_url(listen: SocketAddr, with_tls: bool) -> String {
    let scheme = if with_tls { "https" } else { "http" };
    format!("{scheme}://{}", reachable(listen))
}

/// A port on all addresses is reached on this machine by the loopback one.
fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, addr.port())
}

/// Whether a URL that is known to be one leads to this machine and to no other.
pub(crate) fn is_local_url(url: &str) -> bool {
    let url: Option<http::Uri> = url.parse().ok();
    let Some(host) = url.as_ref().and_then(http::Uri::host) else { return false };
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether only this machine can reach an address.
pub(crate) fn is_local(addr: SocketAddr) -> bool {
    addr.ip().to_canonical().is_loopback()
}
