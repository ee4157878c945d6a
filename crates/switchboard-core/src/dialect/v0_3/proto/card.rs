//! The agent card of 0.3.

use crate::dialect::protobuf::encode_object;
use crate::model::{AgentCard, AgentSkill, OAuthFlow, OAuthFlowKind, SecurityRequirement, SecurityScheme};

use super::generated as wire;
use super::generated::o_auth_flows::Flow;
use super::generated::security_scheme::Scheme;
use crate::dialect::wire::is_of_0_3;

/// A card. Of its interfaces those of this family are written, the first as the preferred one; signatures were made over
/// another form and are left out.
pub(super) fn convert(card: &AgentCard) -> wire::AgentCard {
    let interfaces: Vec<_> = card.supported_interfaces.iter().filter(|interface| is_of_0_3(interface)).collect();
    let main = interfaces.first();
    let provider = card
        .provider
        .as_ref()
        .map(|provider| wire::AgentProvider { url: provider.url.clone(), organization: provider.organization.clone() });
    wire::AgentCard {
        protocol_version: "0.3.0".to_owned(),
        name: card.name.clone(),
        description: card.description.clone(),
        url: main.map(|main| main.url.clone()).unwrap_or_default(),
        preferred_transport: main.map(|main| main.protocol_binding.clone()).unwrap_or_default(),
        additional_interfaces: interfaces
            .iter()
            .map(|interface| wire::AgentInterface {
                url: interface.url.clone(),
                transport: interface.protocol_binding.clone(),
            })
            .collect(),
        provider,
        version: card.version.clone(),
        documentation_url: card.documentation_url.clone().unwrap_or_default(),
        capabilities: Some(capabilities(card)),
        security_schemes: card.security_schemes.iter().map(|(name, it)| (name.clone(), scheme(it))).collect(),
        security: card.security_requirements.iter().map(requirement).collect(),
        default_input_modes: card.default_input_modes.clone(),
        default_output_modes: card.default_output_modes.clone(),
        skills: card.skills.iter().map(skill).collect(),
        supports_authenticated_extended_card: card.capabilities.extended_agent_card == Some(true),
        signatures: Vec::new(),
        icon_url: card.icon_url.clone().unwrap_or_default(),
    }
}

fn capabilities(card: &AgentCard) -> wire::AgentCapabilities {
    let extensions = card.capabilities.extensions.iter().map(|extension| wire::AgentExtension {
        uri: extension.uri.clone(),
        description: extension.description.clone().unwrap_or_default(),
        required: extension.required,
        params: extension.params.as_ref().map(encode_object),
    });
    wire::AgentCapabilities {
        streaming: card.capabilities.streaming == Some(true),
        push_notifications: card.capabilities.push_notifications == Some(true),
        extensions: extensions.collect(),
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
        security: skill.security_requirements.iter().map(requirement).collect(),
    }
}

fn requirement(requirement: &SecurityRequirement) -> wire::Security {
    let schemes = requirement.schemes.iter();
    let schemes = schemes.map(|(name, scopes)| (name.clone(), wire::StringList { list: scopes.clone() }));
    wire::Security { schemes: schemes.collect() }
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
                flows: Some(wire::OAuthFlows { flow: oauth_flow(flow) }),
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

/// The flow of a scheme; none that 0.3 does not know.
fn oauth_flow(flow: &OAuthFlow) -> Option<Flow> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let refresh_url = text(&flow.refresh_url);
    let scopes = flow.scopes.iter().cloned().collect();
    match flow.kind {
        OAuthFlowKind::AuthorizationCode => Some(Flow::AuthorizationCode(wire::AuthorizationCodeOAuthFlow {
            authorization_url: text(&flow.authorization_url),
            token_url: text(&flow.token_url),
            refresh_url,
            scopes,
        })),
        OAuthFlowKind::ClientCredentials => Some(Flow::ClientCredentials(wire::ClientCredentialsOAuthFlow {
            token_url: text(&flow.token_url),
            refresh_url,
            scopes,
        })),
        OAuthFlowKind::Implicit => Some(Flow::Implicit(wire::ImplicitOAuthFlow {
            authorization_url: text(&flow.authorization_url),
            refresh_url,
            scopes,
        })),
        OAuthFlowKind::Password => {
            Some(Flow::Password(wire::PasswordOAuthFlow { token_url: text(&flow.token_url), refresh_url, scopes }))
        }
        OAuthFlowKind::DeviceCode => None,
    }
}
