//! The card as the original writes it: every skill is a tool that takes and gives JSON, and each protocol has a line.

use crate::dialect::json::{Object, write_array, write_str, write_strings};
use crate::model::{AgentCard, AgentSkill, SecurityScheme};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// Writes a card for an agent at `url`, whose tasks are sent to `endpoint`.
pub fn encode_card(card: &AgentCard, url: &str, endpoint: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("name", &card.name);
    object.str("description", &card.description);
    object.str("url", url);
    if let Some(provider) = &card.provider {
        let mut inner = Object::open(object.key("provider"));
        inner.str("organization", &provider.organization);
        inner.str("url", &provider.url);
        inner.close();
    }
    object.str("version", &card.version);
    object.str_if_set("documentationUrl", card.documentation_url.as_deref());
    let mut capabilities = Object::open(object.key("capabilities"));
    capabilities.bool("streaming", card.capabilities.streaming == Some(true));
    capabilities.bool("pushNotifications", false);
    capabilities.bool("stateTransitionHistory", false);
    capabilities.close();
    let mut authentication = Object::open(object.key("authentication"));
    let is_bearer = |scheme: &SecurityScheme| matches!(scheme, SecurityScheme::Http { scheme, .. } if scheme.eq_ignore_ascii_case("bearer"));
    let schemes = card.security_schemes.iter().any(|(_, scheme)| is_bearer(scheme)).then_some("Bearer");
    write_array(authentication.key("schemes"), schemes, write_str);
    authentication.close();
    for name in ["defaultInputModes", "defaultOutputModes"] {
        write_array(object.key(name), [TEXT, JSON], write_str);
    }
    write_array(object.key("skills"), &card.skills, |out, skill| encode_skill(skill, out));
    write_array(object.key("supportedProtocols"), [endpoint], |out, endpoint| {
        let mut protocol = Object::open(out);
        protocol.str("protocol", "A2A");
        protocol.str("description", "Tasks over HTTP: one is sent, then asked for until it has ended");
        protocol.str("endpoint", endpoint);
        protocol.close();
    });
    object.close();
}

fn encode_skill(skill: &AgentSkill, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", &skill.id);
    object.str("name", &skill.name);
    match skill.description.as_str() {
        "" => object.str("description", &format!("Tool: {}", skill.id)),
        description => object.str("description", description),
    }
    match skill.tags.as_slice() {
        [] => write_array(object.key("tags"), ["general"], write_str),
        tags => write_strings(object.key("tags"), tags),
    }
    object.strings_if_any("examples", &skill.examples);
    write_array(object.key("inputModes"), [JSON], write_str);
    write_array(object.key("outputModes"), [JSON, TEXT], write_str);
    object.close();
}
