//! The card as the original writes it: every skill is a tool that takes and gives JSON, and each protocol has a line.

use serde::Deserialize;

use crate::dialect::json::{
    Check, DecodeLimits, List, Obj, Object, Text, read_body, write_array, write_str, write_strings,
};
use crate::dialect::wire;
use crate::error::ProtocolError;
use crate::model::{AgentCard, AgentInterface, AgentSkill, Dialect, SecurityScheme};

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// Where tasks are sent to, below the address of an agent.
const SEND: &str = "/a2a/tasks/send";

/// What a card of corvid has and others have not, or may leave out.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CorvidCard<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    supported_protocols: Option<List<Obj<Protocol<'a>>>>,
}

#[derive(Deserialize)]
struct Protocol<'a> {
    #[serde(borrow)]
    protocol: Option<Text<'a>>,
    #[serde(borrow)]
    endpoint: Option<Text<'a>>,
}

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

/// Reads a card, which must have a name and a version. Its one interface is the address below which tasks are sent: that of the
/// protocol A2A if the card has one, else its `url`.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming each member that cannot be
/// what it is.
pub fn read_card(body: &[u8], limits: &DecodeLimits) -> Result<AgentCard, ProtocolError> {
    let own: CorvidCard<'_> = read_body(body)?;
    let card = wire::read_card_of(body, Dialect::Corvid.version(), limits)?;
    let mut check = Check::new(limits);
    for (name, value) in [("name", &own.name), ("version", &own.version)] {
        if value.as_ref().is_none_or(|text| text.0.is_empty()) {
            check.violation(format_args!("{name}"), "is required and must not be empty");
        }
    }
    let protocols = own.supported_protocols.iter().flat_map(|list| &list.items);
    let endpoint = protocols.filter_map(|Obj(own)| {
        let is_a2a = own.protocol.as_ref().is_some_and(|Text(name)| name == "A2A");
        own.endpoint.as_ref().filter(|_| is_a2a)?.0.strip_suffix(SEND)
    });
    let url = endpoint.chain(own.url.as_ref().map(|Text(url)| url.as_ref())).next();
    let interfaces = url.map(|url| {
        check.line(format_args!("url"), url, limits.line_bytes_max);
        AgentInterface {
            url: url.to_owned(),
            protocol_binding: "HTTP+JSON".to_owned(),
            protocol_version: Dialect::Corvid.version().to_owned(),
            tenant: None,
        }
    });
    let supported_interfaces = interfaces.into_iter().collect();
    check.finish(AgentCard { supported_interfaces, ..card })
}
