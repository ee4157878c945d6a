//! The card as the original writes it: one skill per tool, no capabilities, plain text in and out.

use crate::dialect::json::{DecodeLimits, Object, write_array, write_str};
use crate::dialect::wire;
use crate::error::ProtocolError;
use crate::model::{AgentCard, Dialect};

/// Writes a card. The original leaves `url` empty unless it is told one.
pub fn encode_card(card: &AgentCard, url: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("protocolVersion", "0.2.6");
    object.str("name", &card.name);
    object.str("description", &card.description);
    object.str("url", url);
    object.str("version", &card.version);
    let mut capabilities = Object::open(object.key("capabilities"));
    for name in ["streaming", "pushNotifications", "stateTransitionHistory"] {
        capabilities.bool(name, false);
    }
    capabilities.close();
    for name in ["defaultInputModes", "defaultOutputModes"] {
        write_array(object.key(name), ["text/plain"], write_str);
    }
    write_array(object.key("skills"), &card.skills, |out, skill| {
        let mut object = Object::open(out);
        object.str("id", &skill.id);
        object.str("name", &skill.id);
        object.str("description", &skill.description);
        write_array(object.key("tags"), ["tool"], write_str);
        object.close();
    });
    object.close();
}

/// Reads a card. One with an empty `url` has no interface: the agent is where the card was found.
///
/// # Errors
/// As [`wire::read_card`].
pub fn read_card(body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    let mut card = wire::read_card_of(body, Dialect::Selectools.version(), limits)?;
    card.supported_interfaces.retain(|own| !own.url.is_empty());
    Ok(card)
}
