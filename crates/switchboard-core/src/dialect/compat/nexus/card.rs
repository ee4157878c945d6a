//! The card as agents of NEXUS have it. Nothing that this dialect cannot do is among its capabilities.

use crate::dialect::json::{DecodeLimits, Object, write_array, write_str, write_strings};
use crate::dialect::wire;
use crate::error::ProtocolError;
use crate::model::{AgentCard, Dialect, SecurityScheme};

/// Writes a card for an agent whose JSON-RPC endpoint is `url`.
pub fn encode_card(card: &AgentCard, url: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("name", &card.name);
    object.str("description", &card.description);
    object.str("url", url);
    object.str("version", &card.version);
    let mut capabilities = Object::open(object.key("capabilities"));
    capabilities.bool("streaming", card.capabilities.streaming == Some(true));
    for name in ["pushNotifications", "stateTransitionHistory"] {
        capabilities.bool(name, false);
    }
    capabilities.close();
    write_array(object.key("skills"), &card.skills, |out, skill| {
        let mut object = Object::open(out);
        object.str("id", &skill.id);
        object.str("name", &skill.name);
        object.str("description", &skill.description);
        write_strings(object.key("tags"), &skill.tags);
        write_strings(object.key("examples"), &skill.examples);
        object.close();
    });
    let is_bearer = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer"));
    if card.security_schemes.iter().any(|(_, scheme)| is_bearer(scheme)) {
        let mut authentication = Object::open(object.key("authentication"));
        write_array(authentication.key("schemes"), ["bearer"], write_str);
        authentication.close();
    }
    object.close();
}

/// Reads a card. What it leaves out has a default, and any version of A2A may stand beside it.
///
/// # Errors
/// As [`wire::read_card`].
pub fn read_card(body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    wire::read_card_of(body, Dialect::Nexus.version(), limits)
}
