//! The agent card of 0.3, which readers of 0.2 understand as well: one address with a preferred transport and others beside
//! it, flat security schemes with a `type`.

use crate::dialect::json::{Object, write_array, write_str, write_strings};
use crate::model::{
    AgentCard, AgentExtension, AgentInterface, AgentSkill, OAuthFlow, OAuthFlowKind, SecurityRequirement,
    SecurityScheme,
};

/// Writes a card. Of its interfaces those of this family are written, the first as the preferred one.
pub fn encode_card(card: &AgentCard, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("protocolVersion", "0.3.0");
    object.str("name", &card.name);
    object.str("description", &card.description);
    let interfaces: Vec<_> = card.supported_interfaces.iter().filter(|interface| is_ours(interface)).collect();
    if let Some(main) = interfaces.first() {
        object.str("url", &main.url);
        object.str("preferredTransport", &main.protocol_binding);
        // The preferred one is listed again: a client may look for its transport only here.
        write_array(object.key("additionalInterfaces"), interfaces, |out, interface| {
            let mut object = Object::open(out);
            object.str("url", &interface.url);
            object.str("transport", &interface.protocol_binding);
            object.close();
        });
    }
    object.str_if_set("iconUrl", card.icon_url.as_deref());
    if let Some(provider) = &card.provider {
        let mut inner = Object::open(object.key("provider"));
        inner.str("organization", &provider.organization);
        inner.str("url", &provider.url);
        inner.close();
    }
    object.str("version", &card.version);
    object.str_if_set("documentationUrl", card.documentation_url.as_deref());
    encode_capabilities(card, object.key("capabilities"));
    encode_security(card, &mut object);
    write_strings(object.key("defaultInputModes"), &card.default_input_modes);
    write_strings(object.key("defaultOutputModes"), &card.default_output_modes);
    write_array(object.key("skills"), &card.skills, |out, skill| encode_skill(skill, out));
    object.bool("supportsAuthenticatedExtendedCard", card.capabilities.extended_agent_card == Some(true));
    object.close();
}

pub(super) fn is_ours(interface: &AgentInterface) -> bool {
    ["0.3", "0.2"].iter().any(|version| interface.protocol_version.starts_with(version))
}

/// All three are always there: what is left out would be read as false anyway.
fn encode_capabilities(card: &AgentCard, out: &mut Vec<u8>) {
    let capabilities = &card.capabilities;
    let mut object = Object::open(out);
    object.bool("streaming", capabilities.streaming == Some(true));
    object.bool("pushNotifications", capabilities.push_notifications == Some(true));
    object.bool("stateTransitionHistory", false);
    if !capabilities.extensions.is_empty() {
        write_array(object.key("extensions"), &capabilities.extensions, |out, extension| {
            encode_extension(extension, out);
        });
    }
    object.close();
}

fn encode_extension(extension: &AgentExtension, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("uri", &extension.uri);
    object.str_if_set("description", extension.description.as_deref());
    object.flag("required", extension.required);
    object.json_if_set("params", extension.params.as_ref());
    object.close();
}

/// The schemes, which of them are needed, and a bare list of their names: the text of 0.2, and what was built after it,
/// reads `authentication`.
fn encode_security(card: &AgentCard, object: &mut Object<'_>) {
    if !card.security_schemes.is_empty() {
        let mut schemes = Object::open(object.key("securitySchemes"));
        for (name, scheme) in &card.security_schemes {
            encode_scheme(scheme, schemes.named(name));
        }
        schemes.close();
        let mut words: Vec<&str> = card.security_schemes.iter().filter_map(|(_, scheme)| http_scheme(scheme)).collect();
        words.sort_unstable();
        words.dedup();
        let mut authentication = Object::open(object.key("authentication"));
        write_array(authentication.key("schemes"), words, write_str);
        authentication.close();
    }
    encode_requirements(&card.security_requirements, object);
}

/// The word of HTTP authentication for a scheme; a certificate is not shown in a header.
fn http_scheme(scheme: &SecurityScheme) -> Option<&str> {
    match scheme {
        SecurityScheme::ApiKey { .. } => Some("ApiKey"),
        SecurityScheme::Http { scheme, .. } => Some(scheme),
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => Some("Bearer"),
        SecurityScheme::MutualTls { .. } => None,
    }
}

/// Any one of the requirements suffices; inside one, every scheme is needed.
fn encode_requirements(requirements: &[SecurityRequirement], object: &mut Object<'_>) {
    if requirements.is_empty() {
        return;
    }
    write_array(object.key("security"), requirements, |out, requirement| {
        let mut object = Object::open(out);
        for (name, scopes) in &requirement.schemes {
            write_strings(object.named(name), scopes);
        }
        object.close();
    });
}

fn encode_skill(skill: &AgentSkill, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", &skill.id);
    object.str("name", &skill.name);
    object.str("description", &skill.description);
    write_strings(object.key("tags"), &skill.tags);
    object.strings_if_any("examples", &skill.examples);
    object.strings_if_any("inputModes", &skill.input_modes);
    object.strings_if_any("outputModes", &skill.output_modes);
    encode_requirements(&skill.security_requirements, &mut object);
    object.close();
}

fn encode_scheme(scheme: &SecurityScheme, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let description = match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            object.str("type", "apiKey");
            object.str("in", location);
            object.str("name", name);
            description
        }
        SecurityScheme::Http { description, scheme, bearer_format } => {
            object.str("type", "http");
            object.str("scheme", scheme);
            object.str_if_set("bearerFormat", bearer_format.as_deref());
            description
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            object.str("type", "oauth2");
            encode_flow(flow, object.key("flows"));
            object.str_if_set("oauth2MetadataUrl", metadata_url.as_deref());
            description
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            object.str("type", "openIdConnect");
            object.str("openIdConnectUrl", url);
            description
        }
        SecurityScheme::MutualTls { description } => {
            object.str("type", "mutualTLS");
            description
        }
    };
    object.str_if_set("description", description.as_deref());
    object.close();
}

/// The flows of a scheme. One that 0.3 does not know is left out, and the object is then empty.
fn encode_flow(flow: &OAuthFlow, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let (name, has_authorization, has_token) = match flow.kind {
        OAuthFlowKind::AuthorizationCode => ("authorizationCode", true, true),
        OAuthFlowKind::ClientCredentials => ("clientCredentials", false, true),
        OAuthFlowKind::Implicit => ("implicit", true, false),
        OAuthFlowKind::Password => ("password", false, true),
        OAuthFlowKind::DeviceCode => return object.close(),
    };
    let mut inner = Object::open(object.key(name));
    if has_authorization {
        inner.str("authorizationUrl", flow.authorization_url.as_deref().unwrap_or_default());
    }
    if has_token {
        inner.str("tokenUrl", flow.token_url.as_deref().unwrap_or_default());
    }
    inner.str_if_set("refreshUrl", flow.refresh_url.as_deref());
    let mut scopes = Object::open(inner.key("scopes"));
    for (name, description) in &flow.scopes {
        write_str(scopes.named(name), description);
    }
    scopes.close();
    inner.close();
    object.close();
}
