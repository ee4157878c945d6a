//! Callers without credentials who are known by their address: agents of corvid and gateways of NEXUS send none, so a server that asks
//! for credentials can be told from which addresses they come. Only the paths that belong to their dialect are open to them.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use switchboard_core::dialect::Dialect;

use crate::server::authentication::Identity;

/// How many entries a list of open peers may have.
pub(crate) const OPEN_PEERS_MAX: usize = 256;

/// An address, or a range of them in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressRange {
    base: IpAddr,
    prefix: u32,
}

impl AddressRange {
    /// Reads `192.0.2.7`, `10.0.0.0/8` or `2001:db8::/32`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            |why: &str| format!("{text:?} {why}; expected an address such as 192.0.2.7, or a range such as 10.0.0.0/8");
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let base: IpAddr = address.parse().map_err(|_| wrong("is not an address"))?;
        let bits = if base.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) => {
                let number = digits.parse().ok().filter(|prefix| *prefix <= bits && !digits.starts_with('+'));
                number.ok_or_else(|| wrong("has a prefix length that does not fit"))?
            }
        };
        let range = Self { base, prefix };
        if range.network(base) != to_bits(base) {
            return Err(wrong("has bits set behind its prefix"));
        }
        Ok(range)
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && self.network(address) == to_bits(self.base)
    }

    /// The bits of an address that the prefix covers.
    fn network(&self, address: IpAddr) -> u128 {
        let bits = if self.base.is_ipv4() { 32 } else { 128 };
        let host_bits = bits - self.prefix;
        to_bits(address).checked_shr(host_bits).and_then(|network| network.checked_shl(host_bits)).unwrap_or(0)
    }
}

fn to_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

/// From which addresses callers of which dialect need no credentials.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenPeers {
    entries: Vec<(Dialect, AddressRange)>,
}

impl OpenPeers {
    /// Reads entries such as `nexus=10.1.0.0/16`.
    pub(crate) fn parse(entries: &[String]) -> Result<Self, String> {
        if entries.len() > OPEN_PEERS_MAX {
            return Err(format!("there are {} open peers, and at most {OPEN_PEERS_MAX} are allowed", entries.len()));
        }
        let parse = |entry: &String| {
            let wrong =
                || format!("open peer {entry:?}: expected corvid=ADDRESS or nexus=ADDRESS, as in nexus=10.1.0.0/16");
            let (dialect, range) = entry.split_once('=').ok_or_else(wrong)?;
            let dialect = match dialect {
                "corvid" => Dialect::Corvid,
                "nexus" => Dialect::Nexus,
                _ => return Err(wrong()),
            };
            let range = AddressRange::parse(range).map_err(|why| format!("open peer {entry:?}: {why}"))?;
            Ok((dialect, range))
        };
        Ok(Self { entries: entries.iter().map(parse).collect::<Result<_, _>>()? })
    }

    /// Who calls at a path of this dialect without a credential; none if the caller must show one. Tasks of such callers belong to
    /// their address.
    pub(crate) fn identify(
        &self,
        dialect: Dialect,
        peer: Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Option<Arc<Identity>> {
        let peer = peer?.to_canonical();
        let is_listed = self.entries.iter().any(|(open, range)| *open == dialect && range.contains(peer));
        if !is_listed || headers.contains_key(header::AUTHORIZATION) {
            return None;
        }
        // No name in a file of tokens has this sign, so a peer is nobody else.
        let mut identity = Identity::new(format!("peer#{peer}"));
        identity.authenticated = false;
        Some(Arc::new(identity))
    }
}

#[cfg(test)]
#[path = "peers_tests.rs"]
mod tests;
