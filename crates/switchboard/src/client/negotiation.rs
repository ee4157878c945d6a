//! From a card to the places where its agent may be called, best first. Pure.

use std::cmp::Reverse;

use http::Uri;
use switchboard_core::dialect::Dialect;
#[cfg(feature = "grpc")]
use switchboard_core::dialect::Package;
use switchboard_core::model::{AgentCard, AgentInterface};

use super::discovered_card::{CardReference, DiscoveredCard};
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::check_url;
use crate::protocol_binding::ProtocolBinding;

/// The binding of this name, in any case. A card of 0.2 names none.
fn binding_of(name: &str) -> Option<ProtocolBinding> {
    match name.to_ascii_uppercase().as_str() {
        "" | "JSON-RPC" => Some(ProtocolBinding::JsonRpc),
        "REST" => Some(ProtocolBinding::HttpJson),
        name => name.parse().ok(),
    }
}

/// Which interfaces of a card are used, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Preferences {
    /// Those that may be used, best first; none is all, in the order of the card.
    pub(super) bindings: Option<Vec<ProtocolBinding>>,
    /// Versions that may be used, such as `1.0` and `0.3`, best first; none is all, newest first.
    pub(super) versions: Option<Vec<String>>,
}

/// A place where an agent may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uri: Uri,
    pub(super) form: Form,
    pub(super) tenant: Option<String>,
}

/// How calls to a place are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    JsonRpc(Dialect),
    Http(Dialect),
    #[cfg(feature = "grpc")]
    Grpc(Package),
}

impl Form {
    /// The version of the protocol, as `A2A-Version` names it. None for what older systems speak instead: they do not know the
    /// header, and a server that speaks several dialects would take it for a request in that version.
    pub(super) fn version(self) -> Option<&'static str> {
        match self {
            Self::JsonRpc(dialect) | Self::Http(dialect) if Dialect::COMPAT.contains(&dialect) => None,
            Self::JsonRpc(dialect) | Self::Http(dialect) => Some(dialect.version()),
            #[cfg(feature = "grpc")]
            Self::Grpc(Package::V1_0) => Some("1.0"),
            #[cfg(feature = "grpc")]
            Self::Grpc(Package::V0_3) => Some("0.3"),
        }
    }

    pub(super) fn binding(self) -> &'static str {
        match self {
            Self::JsonRpc(_) => "JSONRPC",
            Self::Http(_) => "HTTP+JSON",
            #[cfg(feature = "grpc")]
            Self::Grpc(_) => "GRPC",
        }
    }
}

/// Where older systems have their endpoint of JSON-RPC, below the address of the agent.
const KNOWN_PATHS: [&str; 4] = ["/_agent-native/a2a", "/a2a", "/rpc", "/"];

/// The places where the agent of a card may be called, best first.
pub(super) fn targets(
    found: &DiscoveredCard,
    reference: &CardReference,
    dialect: Option<Dialect>,
    preferences: &Preferences,
) -> Result<Vec<Target>, CallError> {
    let base = base_of(found, reference);
    let compat =
        dialect.filter(|dialect| Dialect::COMPAT.contains(dialect)).or(found.compat.filter(|_| dialect.is_none()));
    let mut targets = Vec::new();
    if let Some(compat) = compat {
        let interface = found.card().supported_interfaces.first();
        add_compat(compat, interface, base.as_deref(), &mut targets);
    } else {
        for (form, interface) in chosen(found.card(), dialect, preferences) {
            add(form, interface, base.as_deref(), &mut targets);
        }
    }
    if targets.is_empty() {
        return Err(nothing_spoken(found.card()));
    }
    Ok(targets)
}

/// The interfaces that are spoken and wanted, best first.
fn chosen<'a>(
    card: &'a AgentCard,
    dialect: Option<Dialect>,
    preferences: &Preferences,
) -> Vec<(Form, &'a AgentInterface)> {
    let known = card.supported_interfaces.iter().filter_map(|interface| {
        let binding = binding_of(&interface.protocol_binding)?;
        let version = major_minor(&interface.protocol_version);
        let form = match (binding, version) {
            (ProtocolBinding::JsonRpc, (1, _)) => Form::JsonRpc(Dialect::V1_0),
            (ProtocolBinding::JsonRpc, (0, _)) => Form::JsonRpc(Dialect::V0_3),
            (ProtocolBinding::HttpJson, (1, _)) => Form::Http(Dialect::V1_0),
            (ProtocolBinding::HttpJson, (0, _)) => Form::Http(Dialect::V0_3Rest),
            #[cfg(feature = "grpc")]
            (ProtocolBinding::Grpc, (1, _)) => Form::Grpc(Package::V1_0),
            #[cfg(feature = "grpc")]
            (ProtocolBinding::Grpc, (0, _)) => Form::Grpc(Package::V0_3),
            _ => return None,
        };
        let binding_place = match &preferences.bindings {
            Some(wanted) => wanted.iter().position(|wanted| *wanted == binding)?,
            None => 0,
        };
        let version_place = match &preferences.versions {
            Some(wanted) => wanted.iter().position(|wanted| major_minor(wanted) == version)?,
            None => 0,
        };
        let is_wanted = dialect.is_none_or(|dialect| form.version() == Some(dialect.version()));
        is_wanted.then_some(((version_place, Reverse(version), binding_place), form, interface))
    });
    let mut known: Vec<_> = known.collect();
    // Stable, so that the order of the card decides between equals.
    known.sort_by_key(|(rank, ..)| *rank);
    known.into_iter().map(|(_, form, interface)| (form, interface)).collect()
}

/// The version that a text names; what names none is the oldest that is spoken.
fn major_minor(version: &str) -> (u32, u32) {
    let mut numbers = version.trim_start_matches('v').split('.').map(|number| number.parse().unwrap_or(0));
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => (major, minor),
        (Some(major), None) if major > 0 => (major, 0),
        _ => (0, 2),
    }
}

fn add(form: Form, interface: &AgentInterface, base: Option<&str>, targets: &mut Vec<Target>) {
    let tenant = interface.tenant.clone().filter(|tenant| !tenant.is_empty());
    let mut push = |url: &str| {
        if let Ok(uri) = check_url(url) {
            let target = Target { uri, form, tenant: tenant.clone() };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    };
    match form {
        #[cfg(feature = "grpc")]
        Form::Grpc(_) => push(&grpc_url(&interface.url, base)),
        Form::Http(_) => push(absolute(&interface.url, base).trim_end_matches('/')),
        Form::JsonRpc(_) => {
            let url = absolute(&interface.url, base);
            push(&url);
            known_paths(&url, base).iter().for_each(|url| push(url));
        }
    }
}

fn add_compat(dialect: Dialect, interface: Option<&AgentInterface>, base: Option<&str>, targets: &mut Vec<Target>) {
    let form = if dialect == Dialect::Corvid { Form::Http(dialect) } else { Form::JsonRpc(dialect) };
    let here = AgentInterface {
        url: String::new(),
        protocol_binding: String::new(),
        protocol_version: String::new(),
        tenant: None,
    };
    add(form, interface.unwrap_or(&here), base, targets);
}

/// The URL of an interface; one that is empty is where the card was found.
fn absolute(url: &str, base: Option<&str>) -> String {
    match (url.trim(), base) {
        ("", Some(base)) => base.to_owned(),
        (path, Some(base)) if path.starts_with('/') => format!("{}{path}", origin_of(base)),
        (url, _) => url.to_owned(),
    }
}

/// Where else the endpoint may be, if the card names only the address of the agent, or one of these paths.
fn known_paths(url: &str, base: Option<&str>) -> Vec<String> {
    let bare = url.trim_end_matches('/');
    let below =
        KNOWN_PATHS.iter().find_map(|path| bare.strip_suffix(path.trim_end_matches('/')).filter(|_| *path != "/"));
    let is_base = base.is_some_and(|base| base == bare) || origin_of(bare) == bare;
    let root = match (is_base, below) {
        (true, _) => bare,
        (false, Some(below)) => below,
        (false, None) => return Vec::new(),
    };
    KNOWN_PATHS.iter().map(|path| format!("{root}{path}")).collect()
}

/// Scheme, host and port of a URL.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    url[start..].find('/').map_or(url, |at| &url[..start + at])
}

/// The URL of a gRPC interface, which may have any scheme or none. Without one, TLS is used if the card was fetched with it.
#[cfg(feature = "grpc")]
fn grpc_url(url: &str, base: Option<&str>) -> String {
    let url = url.trim().trim_end_matches('/');
    let is_secure = base.is_some_and(|base| base.starts_with("https://"));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" | "grpcs" => "https",
        "http" | "grpc" => "http",
        _ if is_secure => "https",
        _ => "http",
    };
    let rest = rest.strip_prefix("dns:").unwrap_or(rest).trim_start_matches('/');
    format!("{scheme}://{rest}")
}

/// The address of the agent: what the user named, or what the card was found below.
fn base_of(found: &DiscoveredCard, reference: &CardReference) -> Option<String> {
    match reference {
        CardReference::Base(base) => Some(base.clone()),
        CardReference::Card(_) => {
            let url = found.url()?;
            let base = url.find("/.well-known/").map_or_else(|| origin_of(url), |at| &url[..at]);
            Some(base.to_owned())
        }
        CardReference::File(_) | CardReference::Inline(_) => None,
    }
}

fn nothing_spoken(card: &AgentCard) -> CallError {
    let listed = card.supported_interfaces.iter().map(|own| {
        let AgentInterface { protocol_binding, protocol_version, url, .. } = own;
        format!("{protocol_binding} {protocol_version} at {url:?}")
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { "none".to_owned() } else { listed };
    let why = format!("the card of {:?} names no interface that this client speaks and may use: {listed}", card.name);
    CallError::new(CallErrorKind::NoCard, why)
}

#[cfg(test)]
#[path = "negotiation_tests.rs"]
mod tests;
