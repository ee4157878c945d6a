//! The card as the original writes it: one skill per tool, no capabilities, plain text in and out.

use crate::dialect::json::{Object, write_array, write_str};
use crate::model::AgentCard;

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
