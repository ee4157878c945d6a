//! The agent card of 1.0.

use crate::dialect::protobuf::{encode_object, write};
use crate::model::{
    AgentCapabilities, AgentCard, AgentSkill, OAuthFlow, OAuthFlowKind, SecurityRequirement, SecurityScheme,
};

use super::generated as wire;
use super::generated::o_auth_flows::Flow;
use super::generated::security_scheme::Scheme;

/// Appends a card.
pub fn encode_card(card: &AgentCard, out: &mut Vec<u8>) {
    write(&convert(card), out);
}

fn convert(card: &AgentCard) -> wire::AgentCard {
    let interfaces = card.supported_interfaces.iter().map(|interface| wire::AgentInterface {
        url: interface.url.clone(),
        protocol_binding: interface.protocol_binding.clone(),
        tenant: interface.tenant.clone().unwrap_or_default(),
        protocol_version: interface.protocol_version.clone(),
    });
    let provider = card
        .provider
        .as_ref()
        .map(|provider| wire::AgentProvider { url: provider.url.clone(), organization: provider.organization.clone() });
    let signatures = card.signatures.iter().map(|signature| wire::AgentCardSignature {
        protected: signature.protected.clone(),
        signature: signature.signature.clone(),
        header: signature.header.as_ref().map(encode_object),
    });
    wire::AgentCard {
        name: card.name.clone(),
        description: card.description.clone(),
        supported_interfaces: interfaces.collect(),
        provider,
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone(),
        capabilities: Some(capabilities(&card.capabilities)),
        security_schemes: card.security_schemes.iter().map(|(name, it)| (name.clone(), scheme(it))).collect(),
        security_requirements: card.security_requirements.iter().map(requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(skill).collect(),
        signatures: signatures.collect(),
        icon_url: card.icon_url.clone(),
    }
}

fn capabilities(capabilities: &AgentCapabilities) -> wire::AgentCapabilities {
    let extensions = capabilities.extensions.iter().map(|extension| wire::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.as_ref().map(encode_object),
    });
    wire::AgentCapabilities {
        streaming: capabilities.streaming,
        push_notifications: capabilities.push_notifications,
        extensions: extensions.collect(),
        extended_agent_card: capabilities.extended_agent_card,
    }
}

fn skill(skill: &AgentSkill) -> wire::AgentSkill {
    wire::AgentSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
        input_modes: skill.input_modes.clone(),
        output_modes: skill.output_modes.clone(),
        security_requirements: skill.security_requirements.iter().map(requirement).collect(),
    }
}

fn requirement(requirement: &SecurityRequirement) -> wire::SecurityRequirement {
    let schemes = requirement.schemes.iter();
    let schemes = schemes.map(|(name, scopes)| (name.clone(), wire::StringList { list: scopes.clone() }));
    wire::SecurityRequirement { schemes: schemes.collect() }
}

fn scheme(scheme: &SecurityScheme) -> wire::SecurityScheme {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let scheme = match scheme {
        SecurityScheme::ApiKey { description, location, name } => {
            Scheme::ApiKeySecurityScheme(wire::ApiKeySecurityScheme {
                description: text(description),
                location: location.clone(),
                name: name.clone(),
            })
        }
        SecurityScheme::Http { description, scheme, bearer_format } => {
            Scheme::HttpAuthSecurityScheme(wire::HttpAuthSecurityScheme {
                description: text(description),
                scheme: scheme.clone(),
                bearer_format: text(bearer_format),
            })
        }
        SecurityScheme::OAuth2 { description, flow, metadata_url } => {
            Scheme::Oauth2SecurityScheme(wire::OAuth2SecurityScheme {
                description: text(description),
                flows: Some(wire::OAuthFlows { flow: Some(oauth_flow(flow)) }),
                oauth2_metadata_url: text(metadata_url),
            })
        }
        SecurityScheme::OpenIdConnect { description, url } => {
            Scheme::OpenIdConnectSecurityScheme(wire::OpenIdConnectSecurityScheme {
                description: text(description),
                open_id_connect_url: url.clone(),
            })
        }
        SecurityScheme::MutualTls { description } => {
            Scheme::MtlsSecurityScheme(wire::MutualTlsSecurityScheme { description: text(description) })
        }
    };
    wire::SecurityScheme { scheme: Some(scheme) }
}

fn oauth_flow(flow: &OAuthFlow) -> Flow {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let refresh_url = text(&flow.refresh_url);
    let scopes = flow.scopes.iter().cloned().collect();
    match flow.kind {
        OAuthFlowKind::AuthorizationCode => Flow::AuthorizationCode(wire::AuthorizationCodeOAuthFlow {
            authorization_url: text(&flow.authorization_url),
            token_url: text(&flow.token_url),
            refresh_url,
            scopes,
            pkce_required: flow.pkce_required,
        }),
        OAuthFlowKind::ClientCredentials => Flow::ClientCredentials(wire::ClientCredentialsOAuthFlow {
            token_url: text(&flow.token_url),
            refresh_url,
            scopes,
        }),
        OAuthFlowKind::Implicit => Flow::Implicit(wire::ImplicitOAuthFlow {
            authorization_url: text(&flow.authorization_url),
            refresh_url,
            scopes,
        }),
        OAuthFlowKind::Password => {
            Flow::Password(wire::PasswordOAuthFlow { token_url: text(&flow.token_url), refresh_url, scopes })
        }
        OAuthFlowKind::DeviceCode => Flow::DeviceCode(wire::DeviceCodeOAuthFlow {
            device_authorization_url: text(&flow.device_authorization_url),
            token_url: text(&flow.token_url),
            refresh_url,
            scopes,
        }),
    }
}
