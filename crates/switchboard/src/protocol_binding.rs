//! The protocol bindings, by the names that cards have for them.

use std::fmt;
use std::str::FromStr;

/// A protocol binding that a card can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProtocolBinding {
    /// JSON-RPC over HTTP, named `JSONRPC` on cards.
    JsonRpc,
    /// HTTP with JSON bodies, named `HTTP+JSON` on cards.
    HttpJson,
    /// gRPC, named `GRPC` on cards.
    Grpc,
}

impl ProtocolBinding {
    /// Every binding, in the order of a card that names all of them.
    pub const ALL: [Self; 3] = [Self::JsonRpc, Self::HttpJson, Self::Grpc];

    /// Its name on a card.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
            Self::Grpc => "GRPC",
        }
    }
}

impl fmt::Display for ProtocolBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProtocolBinding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = |binding: &Self| binding.as_str().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(named).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            format!("{name:?} is not a protocol binding; there are {known}")
        })
    }
}
