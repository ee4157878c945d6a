//! What a check is. Each names the section of the specification that it stands for (`sentences` has the words), and the
//! requirement of the official test kit that asks for the same.

use std::pin::Pin;

use super::bench::{Bench, Checked};
use super::card::Card;
use super::wire::{Binding, Interface, Version};

/// The commit of the kit (`a2aproject/a2a-tck`, branch `1.0-dev`) whose requirement ids are used.
pub(crate) const KIT: &str = "357c4a8";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Must,
    Should,
    May,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        }
    }
}

/// On which interfaces a check is made.
pub(crate) struct Scope {
    pub(crate) words: &'static str,
    bindings: &'static [Binding],
    versions: &'static [Version],
}

const ALL_BINDINGS: &[Binding] = &[Binding::JsonRpc, Binding::HttpJson, Binding::Grpc];
const OVER_HTTP: &[Binding] = &[Binding::JsonRpc, Binding::HttpJson];
const ALL_VERSIONS: &[Version] = &[Version::V1_0, Version::V0_3, Version::V0_2];
const NEWEST: &[Version] = &[Version::V1_0];

pub(crate) const EVERYWHERE: Scope = Scope { words: "all", bindings: ALL_BINDINGS, versions: ALL_VERSIONS };
pub(crate) const V1: Scope = Scope { words: "1.0", bindings: ALL_BINDINGS, versions: NEWEST };
pub(crate) const JSON: Scope = Scope { words: "JSONRPC, HTTP+JSON", bindings: OVER_HTTP, versions: ALL_VERSIONS };
pub(crate) const JSON_V1: Scope = Scope { words: "JSONRPC 1.0, HTTP+JSON 1.0", bindings: OVER_HTTP, versions: NEWEST };
pub(crate) const JSONRPC: Scope = Scope { words: "JSONRPC", bindings: &[Binding::JsonRpc], versions: ALL_VERSIONS };
pub(crate) const JSONRPC_V1: Scope = Scope { words: "JSONRPC 1.0", bindings: &[Binding::JsonRpc], versions: NEWEST };
pub(crate) const HTTP_JSON: Scope =
    Scope { words: "HTTP+JSON", bindings: &[Binding::HttpJson], versions: ALL_VERSIONS };
pub(crate) const HTTP_JSON_V1: Scope =
    Scope { words: "HTTP+JSON 1.0", bindings: &[Binding::HttpJson], versions: NEWEST };
pub(crate) const GRPC: Scope = Scope { words: "GRPC", bindings: &[Binding::Grpc], versions: ALL_VERSIONS };
pub(crate) const GRPC_V1: Scope = Scope { words: "GRPC 1.0", bindings: &[Binding::Grpc], versions: NEWEST };
pub(crate) const CARD: Scope = Scope { words: "card", bindings: &[], versions: &[] };

/// What the card must say for a check to have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Streaming,
    NoStreaming,
    Push,
    NoPush,
    ExtendedCard,
    NoExtendedCard,
    RequiredExtension,
    Credentials,
    Tenant,
    OtherInterfaces,
}

impl Needs {
    /// Why a check is skipped, if it is.
    pub(crate) fn missing(self, card: &Card, to: &Interface) -> Option<&'static str> {
        let (is_met, why) = match self {
            Self::Nothing => (true, ""),
            Self::Streaming => (card.can("streaming"), "the card does not declare streaming"),
            Self::NoStreaming => (!card.can("streaming"), "the card declares streaming"),
            Self::Push => (card.can("pushNotifications"), "the card does not declare push notifications"),
            Self::NoPush => (!card.can("pushNotifications"), "the card declares push notifications"),
            Self::ExtendedCard => (card.has_extended(), "the card declares no extended card"),
            Self::NoExtendedCard => (!card.has_extended(), "the card declares an extended card"),
            Self::RequiredExtension => (!card.required_extensions().is_empty(), "the card requires no extension"),
            Self::Credentials => (card.wants_credentials(), "the card asks for no credentials"),
            Self::Tenant => (to.tenant.is_some(), "the interface names no tenant"),
            Self::OtherInterfaces => (card.interfaces.len() > 1, "the card declares one interface only"),
        };
        (!is_met).then_some(why)
    }
}

pub(crate) type Checking<'a> = Pin<Box<dyn Future<Output = Checked> + 'a>>;

#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// Once, on the card.
    Card(fn(&Card) -> Checked),
    /// On each interface in the scope.
    Interface(for<'a> fn(&'a Bench<'a>) -> Checking<'a>),
}

pub(crate) struct Check {
    pub(crate) id: &'static str,
    /// The requirement of the kit; empty where it has none.
    pub(crate) kit: &'static str,
    pub(crate) level: Level,
    /// The section of the specification 1.0.1.
    pub(crate) section: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) scope: Scope,
    pub(crate) needs: Needs,
    pub(crate) run: Run,
}

impl Check {
    pub(crate) fn is_for(&self, to: &Interface) -> bool {
        self.scope.bindings.contains(&to.binding) && self.scope.versions.contains(&to.version)
    }
}
