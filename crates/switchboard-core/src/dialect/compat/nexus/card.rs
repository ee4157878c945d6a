//! The card as agents of NEXUS have it. Nothing that this dialect cannot do is among its capabilities.

use crate::dialect::json::{Object, write_array, write_str, write_strings};
use crate::model::{AgentCard, SecurityScheme};

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
