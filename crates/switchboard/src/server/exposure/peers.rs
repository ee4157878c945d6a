//! Callers without credentials who are known by their address: agents of corvid and gateways of NEXUS send none, so a server that asks
//! for credentials can be told from which addresses they come. Only the paths that belong to their dialect are open to them.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};
use switchboard_core::dialect::Dialect;

use crate::outbound::AddressRange;
use crate::server::authentication::Identity;

/// How many entries a list of open peers may have.
pub(crate) const OPEN_PEERS_MAX: usize = 256;

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
