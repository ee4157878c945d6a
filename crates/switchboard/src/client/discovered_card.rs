//! Where the card of an agent is, the card as it was found, and what is wrong with it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::error::{ProtocolError, Violation};
use switchboard_core::model::AgentCard;

use super::http::{Named, Origin};
use crate::call_error::{CallError, CallErrorKind};
use crate::outbound::check_url;

/// An agent card as it was found.
#[derive(Clone, PartialEq, Eq)]
pub struct DiscoveredCard {
    card: Arc<AgentCard>,
    json: Bytes,
    url: Option<String>,
    pub(super) compat: Option<Dialect>,
}

impl fmt::Debug for DiscoveredCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiscoveredCard").field("url", &self.url).field("card", &self.card).finish_non_exhaustive()
    }
}

impl DiscoveredCard {
    /// Reads a card of any version or dialect. What it leaves out has a default.
    pub(super) fn read(json: Bytes, url: Option<String>, limits: &DecodeLimits) -> Result<Self, ProtocolError> {
        let compat = compat_dialect(&json);
        // The other dialects of older systems have cards that are read as those of A2A.
        let dialect = compat.filter(|dialect| *dialect == Dialect::Corvid).unwrap_or(Dialect::V1_0);
        let card = Arc::new(dialect.read_card(&json, limits)?);
        Ok(Self { card, json, url, compat })
    }

    /// The card.
    #[must_use]
    pub fn card(&self) -> &Arc<AgentCard> {
        &self.card
    }

    /// The card as it came, with members that this library does not know.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Where it was found; none for a file and for a card that was given.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Whether it is the card of a system that is older than A2A as it is now, and speaks a dialect of its own.
    #[must_use]
    pub fn is_of_older_system(&self) -> bool {
        self.compat.is_some()
    }

    /// Checks the card as strictly as the specification is: every required member is there and is what it must be.
    ///
    /// # Errors
    /// The members that are missing or wrong.
    pub fn validate(&self) -> Result<(), Vec<Violation>> {
        let violations = violations(&self.json);
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }
}

/// Where the card of an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CardReference {
    /// The address of an agent, without a final slash: its card is below it.
    Base(String),
    /// The address of a card.
    Card(String),
    /// The path of a file with a card.
    File(PathBuf),
    /// The card itself, as JSON.
    Inline(String),
}

impl CardReference {
    /// Tells from a text which of them it is: a URL that ends with `.json` is that of a card, another one is that of an agent.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn parse(text: &str) -> Result<Self, CallError> {
        let text = text.trim();
        if text.starts_with('{') {
            return Ok(Self::Inline(text.to_owned()));
        }
        let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            check_url(text).map_err(|why| CallError::new(CallErrorKind::InvalidRequest, why))?;
            let path = text.split('?').next().unwrap_or(text);
            return Ok(match path.ends_with(".json") {
                true => Self::Card(text.to_owned()),
                false => Self::Base(text.trim_end_matches('/').to_owned()),
            });
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Ok(Self::File(path.into()));
        }
        if text.starts_with(['/', '.']) || text.ends_with(".json") {
            return Ok(Self::File(text.into()));
        }
        let why = "an agent is named by a URL (https://host/path), the path of a card (./card.json), or the card itself as JSON";
        Err(CallError::new(CallErrorKind::InvalidRequest, why))
    }

    /// What its card is kept under; none for a card that is not fetched.
    pub(super) fn key(&self) -> Option<&str> {
        match self {
            Self::Base(url) | Self::Card(url) => Some(url),
            Self::File(_) | Self::Inline(_) => None,
        }
    }

    /// What the user vouches for by naming it.
    pub(super) fn named(&self) -> Named {
        match self {
            Self::File(_) | Self::Inline(_) => Named::All,
            Self::Base(url) | Self::Card(url) => match url.parse().ok().as_ref().and_then(Origin::of) {
                Some(origin) => Named::Origin(origin),
                None => Named::All,
            },
        }
    }
}

/// What tells the cards of older systems from those of A2A. Of most members only their presence counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardMembers {
    #[serde(default)]
    supported_interfaces: Option<IgnoredAny>,
    #[serde(default)]
    additional_interfaces: Option<IgnoredAny>,
    #[serde(default)]
    preferred_transport: Option<IgnoredAny>,
    #[serde(default)]
    default_input_modes: Option<IgnoredAny>,
    #[serde(default)]
    supported_protocols: Option<IgnoredAny>,
    #[serde(default)]
    protocol_version: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

/// The dialect of the older system that a card is of; none for a card of A2A.
fn compat_dialect(json: &[u8]) -> Option<Dialect> {
    let card: CardMembers = serde_json::from_slice(json).ok()?;
    if card.supported_interfaces.is_some() || card.additional_interfaces.is_some() || card.preferred_transport.is_some()
    {
        return None;
    }
    if card.supported_protocols.is_some() {
        return Some(Dialect::Corvid);
    }
    let url = card.url.as_deref()?.trim_end_matches('/');
    match card.protocol_version.as_deref() {
        _ if url.ends_with("/_agent-native/a2a") => Some(Dialect::AgentNative),
        Some("0.3") if card.default_input_modes.is_none() => Some(Dialect::AgentNative),
        Some(_) if url.is_empty() => Some(Dialect::Selectools),
        None if card.default_input_modes.is_none() => Some(Dialect::Nexus),
        Some(_) | None => None,
    }
}

/// What a card lacks of what the specification requires of it: of 1.0 if it lists interfaces, else of 0.3.
fn violations(json: &[u8]) -> Vec<Violation> {
    let wrong = |field: &str, why: &str| Violation { field: field.to_owned(), description: why.to_owned() };
    let card = match serde_json::from_slice::<Value>(json) {
        Ok(Value::Object(card)) => card,
        Ok(_) => return vec![wrong("", "must be an object")],
        Err(error) => return vec![wrong("", &format!("is not JSON: {error}"))],
    };
    let mut found = Vec::new();
    let mut texts = |object: &serde_json::Map<String, Value>, at: &str, names: &[&str]| {
        for name in names {
            match object.get(*name) {
                Some(Value::String(text)) if !text.is_empty() => {}
                Some(Value::String(_)) => found.push(wrong(&format!("{at}{name}"), "must not be empty")),
                Some(_) => found.push(wrong(&format!("{at}{name}"), "must be a text")),
                None => found.push(wrong(&format!("{at}{name}"), "is required")),
            }
        }
    };
    texts(&card, "", &["name", "description", "version"]);
    let items = |name: &str| card.get(name).and_then(Value::as_array);
    match items("supportedInterfaces") {
        Some(interfaces) => {
            for (i, interface) in interfaces.iter().enumerate() {
                if let Some(interface) = interface.as_object() {
                    let at = format!("supportedInterfaces[{i}].");
                    texts(interface, &at, &["url", "protocolBinding", "protocolVersion"]);
                }
            }
        }
        None => texts(&card, "", &["url", "protocolVersion"]),
    }
    for (i, skill) in items("skills").into_iter().flatten().enumerate() {
        if let Some(skill) = skill.as_object() {
            texts(skill, &format!("skills[{i}]."), &["id", "name", "description"]);
        }
    }
    if let Some(provider) = card.get("provider").and_then(Value::as_object) {
        texts(provider, "provider.", &["organization", "url"]);
    }
    for name in ["defaultInputModes", "defaultOutputModes", "skills"] {
        match card.get(name) {
            Some(Value::Array(_)) => {}
            Some(_) => found.push(wrong(name, "must be a list")),
            None => found.push(wrong(name, "is required")),
        }
    }
    match card.get("capabilities") {
        Some(Value::Object(_)) => {}
        Some(_) => found.push(wrong("capabilities", "must be an object")),
        None => found.push(wrong("capabilities", "is required")),
    }
    match items("supportedInterfaces") {
        Some(interfaces) if interfaces.is_empty() => found.push(wrong("supportedInterfaces", "must not be empty")),
        Some(_) | None => {}
    }
    if items("supportedInterfaces").is_none() {
        let url = card.get("url").and_then(Value::as_str).filter(|url| !url.is_empty());
        if url.is_some_and(|url| check_url(url).is_err()) {
            found.push(wrong("url", "must be an absolute URL"));
        }
    }
    found
}

#[cfg(test)]
#[path = "discovered_card_tests.rs"]
mod tests;
