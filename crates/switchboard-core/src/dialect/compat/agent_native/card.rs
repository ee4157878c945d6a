//! The card as the original generates it.

use crate::dialect::json::{DecodeLimits, Object, write_array, write_strings};
use crate::dialect::wire;
use crate::error::ProtocolError;
use crate::model::{AgentCard, AgentSkill, Dialect, SecurityScheme};

/// Writes a card for an agent served at `url`.
pub fn encode_card(card: &AgentCard, url: &str, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("name", &card.name);
    object.str("description", &card.description);
    object.str("url", url);
    object.str("version", &card.version);
    object.str("protocolVersion", "0.3");
    let mut capabilities = Object::open(object.key("capabilities"));
    capabilities.bool("streaming", card.capabilities.streaming == Some(true));
    capabilities.bool("pushNotifications", false);
    capabilities.bool("stateTransitionHistory", true);
    capabilities.close();
    write_array(object.key("skills"), &card.skills, |out, skill| encode_skill(skill, out));
    encode_security(card, &mut object);
    object.close();
}

fn encode_skill(skill: &AgentSkill, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", &skill.id);
    object.str("name", &skill.name);
    object.str("description", &skill.description);
    write_strings(object.key("tags"), &skill.tags);
    object.strings_if_any("examples", &skill.examples);
    object.close();
}

/// Bearer tokens are all that callers here know. A token that is a JWT has a name of its own, and comes first.
fn encode_security(card: &AgentCard, object: &mut Object<'_>) {
    let bearers = card.security_schemes.iter().filter_map(|(_, scheme)| match scheme {
        SecurityScheme::Http { scheme, bearer_format, .. } if scheme.eq_ignore_ascii_case("bearer") => {
            Some(bearer_format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("jwt")))
        }
        _ => None,
    });
    let mut is_jwt: Vec<bool> = bearers.collect();
    is_jwt.sort_by_key(|is_jwt| !is_jwt);
    is_jwt.dedup();
    if is_jwt.is_empty() {
        return;
    }
    let name = |is_jwt: bool| if is_jwt { "jwtBearer" } else { "apiKey" };
    let mut schemes = Object::open(object.key("securitySchemes"));
    for is_jwt in &is_jwt {
        let mut scheme = Object::open(schemes.key(name(*is_jwt)));
        scheme.str("type", "http");
        scheme.str("scheme", "bearer");
        scheme.str_if_set("bearerFormat", is_jwt.then_some("JWT"));
        scheme.close();
    }
    schemes.close();
    write_array(object.key("security"), &is_jwt, |out, is_jwt| {
        let mut requirement = Object::open(out);
        write_strings(requirement.key(name(*is_jwt)), &[]);
        requirement.close();
    });
}

/// Reads a card. What it leaves out has a default, and any version of A2A may stand beside it.
///
/// # Errors
/// As [`wire::read_card`].
pub fn read_card(body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    wire::read_card_of(body, Dialect::AgentNative.version(), limits)
}
