//! The agent card of 1.0. Required fields are always written, even empty; optional ones when they are set; everything
//! else when it is not its default. That is also the form a signature is made over.

use crate::dialect::json::{Object, write_array, write_str, write_strings};
use crate::model::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, OAuthFlow, OAuthFlowKind, SecurityRequirement,
    SecurityScheme,
};

/// Writes a card.
pub fn encode_card(card: &AgentCard, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("name", &card.name);
    object.str("description", &card.description);
    write_array(object.key("supportedInterfaces"), &card.supported_interfaces, |out, i| encode_interface(i, out));
    if let Some(provider) = &card.provider {
        let mut inner = Object::open(object.key("provider"));
        inner.str("url", &provider.url);
        inner.str("organization", &provider.organization);
        inner.close();
    }
    object.str("version", &card.version);
    object.str_if_set("documentationUrl", card.documentation_url.as_deref());
    encode_capabilities(&card.capabilities, object.key("capabilities"));
    if !card.security_schemes.is_empty() {
        let mut schemes = Object::open(object.key("securitySchemes"));
        for (name, scheme) in &card.security_schemes {
            encode_scheme(scheme, schemes.named(name));
        }
        schemes.close();
    }
    encode_requirements(&card.security_requirements, &mut object);
    write_strings(object.key("defaultInputModes"), &card.default_input_modes);
    write_strings(object.key("defaultOutputModes"), &card.default_output_modes);
    write_array(object.key("skills"), &card.skills, |out, skill| encode_skill(skill, out));
    if !card.signatures.is_empty() {
        write_array(object.key("signatures"), &card.signatures, |out, signature| {
            let mut object = Object::open(out);
            object.str("protected", &signature.protected);
            object.str("signature", &signature.signature);
            object.json_if_set("header", signature.header.as_ref());
            object.close();
        });
    }
    object.str_if_set("iconUrl", card.icon_url.as_deref());
    object.close();
}

fn encode_interface(interface: &AgentInterface, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("url", &interface.url);
    object.str("protocolBinding", &interface.protocol_binding);
    object.str_if_set("tenant", interface.tenant.as_deref());
    object.str("protocolVersion", &interface.protocol_version);
    object.close();
}

fn encode_capabilities(capabilities: &AgentCapabilities, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    if let Some(streaming) = capabilities.streaming {
        object.bool("streaming", streaming);
    }
    if let Some(push_notifications) = capabilities.push_notifications {
        object.bool("pushNotifications", push_notifications);
    }
    if !capabilities.extensions.is_empty() {
        write_array(object.key("extensions"), &capabilities.extensions, |out, extension| {
            let mut object = Object::open(out);
            object.str("uri", &extension.uri);
            object.str_if_set("description", extension.description.as_deref());
            object.flag("required", extension.required);
            object.json_if_set("params", extension.params.as_ref());
            object.close();
        });
    }
    if let Some(extended) = capabilities.extended_agent_card {
        object.bool("extendedAgentCard", extended);
    }
    object.close();
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

/// Any one of the requirements suffices; inside one, every scheme is needed.
fn encode_requirements(requirements: &[SecurityRequirement], object: &mut Object<'_>) {
    if requirements.is_empty() {
        return;
    }
    write_array(object.key("securityRequirements"), requirements, |out, requirement| {
        let mut object = Object::open(out);
        let mut schemes = Object::open(object.key("schemes"));
        for (name, scopes) in &requirement.schemes {
            let mut list = Object::open(schemes.named(name));
            list.strings_if_any("list", scopes);
            list.close();
        }
        schemes.close();
        object.close();
    });
}

/// A scheme is a oneof, so its member is written even when there is nothing in it.
fn encode_scheme(scheme: &SecurityScheme, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            let mut inner = Object::open(object.key("apiKeySecurityScheme"));
            inner.str_if_set("description", description.as_deref());
            inner.str("location", location);
            inner.str("name", name);
            inner.close();
        }
        SecurityScheme::Http { description, scheme, bearer_format } => {
            let mut inner = Object::open(object.key("httpAuthSecurityScheme"));
            inner.str_if_set("description", description.as_deref());
            inner.str("scheme", scheme);
            inner.str_if_set("bearerFormat", bearer_format.as_deref());
            inner.close();
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            let mut inner = Object::open(object.key("oauth2SecurityScheme"));
            inner.str_if_set("description", description.as_deref());
            encode_flow(flow, inner.key("flows"));
            inner.str_if_set("oauth2MetadataUrl", metadata_url.as_deref());
            inner.close();
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            let mut inner = Object::open(object.key("openIdConnectSecurityScheme"));
            inner.str_if_set("description", description.as_deref());
            inner.str("openIdConnectUrl", url);
            inner.close();
        }
        SecurityScheme::MutualTls { description } => {
            let mut inner = Object::open(object.key("mtlsSecurityScheme"));
            inner.str_if_set("description", description.as_deref());
            inner.close();
        }
    }
    object.close();
}

fn encode_flow(flow: &OAuthFlow, out: &mut Vec<u8>) {
    /// Which of a flow's fields its kind has, and which of those it requires.
    struct Shape {
        name: &'static str,
        authorization_url: Field,
        device_authorization_url: Field,
        token_url: Field,
        scopes: Field,
    }
    enum Field {
        Required,
        Optional,
        Unknown,
    }
    use Field::{Optional, Required, Unknown};
    let shape = |name, authorization_url, device_authorization_url, token_url, scopes| Shape {
        name,
        authorization_url,
        device_authorization_url,
        token_url,
        scopes,
    };
    let shape = match flow.kind {
        OAuthFlowKind::AuthorizationCode => shape("authorizationCode", Required, Unknown, Required, Required),
        OAuthFlowKind::ClientCredentials => shape("clientCredentials", Unknown, Unknown, Required, Required),
        OAuthFlowKind::Implicit => shape("implicit", Optional, Unknown, Unknown, Optional),
        OAuthFlowKind::Password => shape("password", Unknown, Unknown, Optional, Optional),
        OAuthFlowKind::DeviceCode => shape("deviceCode", Unknown, Required, Required, Required),
    };
    let mut object = Object::open(out);
    let mut inner = Object::open(object.key(shape.name));
    let mut url = |name, field, url: Option<&str>| match field {
        Required => inner.str(name, url.unwrap_or_default()),
        Optional => inner.str_if_set(name, url),
        Unknown => {}
    };
    url("deviceAuthorizationUrl", shape.device_authorization_url, flow.device_authorization_url.as_deref());
    url("authorizationUrl", shape.authorization_url, flow.authorization_url.as_deref());
    url("tokenUrl", shape.token_url, flow.token_url.as_deref());
    url("refreshUrl", Optional, flow.refresh_url.as_deref());
    if matches!(shape.scopes, Required) || !flow.scopes.is_empty() {
        let mut scopes = Object::open(inner.key("scopes"));
        for (name, description) in &flow.scopes {
            write_str(scopes.named(name), description);
        }
        scopes.close();
    }
    inner.flag("pkceRequired", flow.pkce_required && flow.kind == OAuthFlowKind::AuthorizationCode);
    inner.close();
    object.close();
}
