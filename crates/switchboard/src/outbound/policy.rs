//! Which addresses may be called: none that `ranges` refuses, unless the operator has allowed it. Pure: names are resolved
//! in `connector`, and the addresses they resolved to are checked here.

use std::net::IpAddr;

use super::ranges::{AddressRange, refusal};
use super::target::{is_host_name, literal};

/// Which addresses a [`Client`](super::Client) may call: those of the open internet, and what is opened in addition.
///
/// Private, loopback, link-local, metadata and other special-purpose addresses are refused by default. The check is made on
/// the address that is dialled, so a name that resolves to a private address is refused as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    allow: Vec<Allow>,
    allows_all: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Allow {
    target: AllowedTarget,
    /// None opens every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum AllowedTarget {
    Range(AddressRange),
    /// Opens whatever the name resolves to: the operator vouches for the name. In lower case, without a final dot.
    Host(String),
}

impl AddressPolicy {
    /// Public addresses only.
    #[must_use]
    pub fn public() -> Self {
        Self::default()
    }

    /// Every address: for URLs that the person who runs the program has named.
    #[must_use]
    pub fn any() -> Self {
        Self { allow: Vec::new(), allows_all: true }
    }

    /// Reads entries such as `10.1.0.0/16`, `fd00::/8`, `192.168.0.7`, `[::1]:8080`, `hooks.internal` and
    /// `localhost:9000`: what is opened beside the open internet.
    ///
    /// # Errors
    /// A sentence about the first entry that is none of these.
    pub fn parse(entries: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self, String> {
        let allow = entries.into_iter().map(|entry| {
            let entry = entry.as_ref();
            Allow::parse(entry.trim()).ok_or_else(|| {
                format!(
                    "{entry:?} is none of: a range without bits behind its prefix (10.0.0.0/8), an address (::1), \
                     a host (hooks.internal), a host or address with a port (localhost:8080, [::1]:8080)"
                )
            })
        });
        Ok(Self { allow: allow.collect::<Result<_, _>>()?, allows_all: false })
    }

    /// Judges one of the addresses that `host` stands for. The text of a refusal is for operators.
    pub(crate) fn check_addr(&self, ip: IpAddr, port: u16, host: &str) -> Result<(), String> {
        // A socket to an IPv4-mapped address talks IPv4, so the operator's IPv4 entries speak of it too. The other ways
        // to hide an IPv4 address lead through a gateway, and are opened by their IPv6 address only.
        let ip = ip.to_canonical();
        let Some(why) = refusal(ip) else { return Ok(()) };
        if self.allows_all || self.allow.iter().any(|allow| allow.covers(ip, port, host)) {
            return Ok(());
        }
        let named = literal(host).is_none();
        let target = if named { format!("{host} ({ip}) port {port}") } else { format!("{ip} port {port}") };
        Err(format!("{target} may not be called: {why}; the operator can open it"))
    }
}

impl Allow {
    fn parse(entry: &str) -> Option<Self> {
        if entry.contains('/') {
            return Some(Self { target: AllowedTarget::Range(AddressRange::parse(entry).ok()?), port: None });
        }
        // Tried before a port is looked for, because the colons of an IPv6 address announce none.
        if let Some(target) = AllowedTarget::parse(entry) {
            return Some(Self { target, port: None });
        }
        let (target, port) = entry.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        // Without brackets it is not clear where the address ends and the port begins.
        let target = AllowedTarget::parse(target).filter(|_| target.starts_with('[') || !target.contains(':'))?;
        Some(Self { target, port: Some(port) })
    }

    fn covers(&self, ip: IpAddr, port: u16, host: &str) -> bool {
        let here = match &self.target {
            AllowedTarget::Range(range) => range.contains(ip),
            AllowedTarget::Host(name) => host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(name),
        };
        here && self.port.is_none_or(|open| open == port)
    }
}

impl AllowedTarget {
    fn parse(text: &str) -> Option<Self> {
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match (bracketed, bracketed.unwrap_or(text).parse::<IpAddr>()) {
            (Some(_), Ok(IpAddr::V4(_))) => None,
            (Some(_) | None, Ok(ip)) => Some(Self::Range(AddressRange::single(ip))),
            (Some(_) | None, Err(_)) if is_host_name(text) => {
                Some(Self::Host(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase()))
            }
            (Some(_) | None, Err(_)) => None,
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
