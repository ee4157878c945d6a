//! What the cards of both packages have in common: who provides an agent, its extensions and skills, how it wants to be
//! authenticated to, and signatures. 0.3 has some fields less, none otherwise, so its messages are those of 1.0.

use std::collections::BTreeMap;
use std::fmt::Arguments;

use crate::dialect::json::Check;
use crate::model::{
    AgentCardSignature, AgentExtension, AgentProvider, AgentSkill, OAuthFlow, OAuthFlowKind, SecurityRequirement,
    SecurityScheme,
};

use super::free_form::encode_object;
use super::read::{decode_object, each, list, optional};

#[rustfmt::skip]
pub mod generated;

use generated as wire;
use generated::o_auth_flows::Flow;
use generated::security_scheme::Scheme;

fn some(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

/// Reads a list of a card, of which each entry is at its place.
pub(crate) fn entries<T, M>(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    items: Vec<T>,
    read: impl Fn(T, &mut Check<'_>, Arguments<'_>) -> M,
) -> Vec<M> {
    let max = check.limits.list_items_max;
    each(check, at, ("entries", max), items, read)
}

impl wire::AgentProvider {
    pub(crate) fn of(provider: &AgentProvider) -> Self {
        Self { url: provider.url.clone(), organization: provider.organization.clone() }
    }

    pub(crate) fn read(self) -> AgentProvider {
        AgentProvider { organization: self.organization, url: self.url }
    }
}

impl wire::AgentExtension {
    pub(crate) fn of(extension: &AgentExtension) -> Self {
        Self {
            uri: extension.uri.clone(),
            description: some(extension.description.as_ref()),
            required: extension.required,
            params: extension.params.as_ref().map(encode_object),
        }
    }

    pub(crate) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> AgentExtension {
        AgentExtension {
            uri: self.uri,
            description: optional(self.description),
            required: self.required,
            params: decode_object(check, format_args!("{at}.params"), self.params.as_ref()),
        }
    }
}

impl wire::AgentSkill {
    pub(crate) fn of(skill: &AgentSkill) -> Self {
        Self {
            id: skill.id.clone(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            tags: skill.tags.clone(),
            examples: skill.examples.clone(),
            input_modes: skill.input_modes.clone(),
            output_modes: skill.output_modes.clone(),
            security_requirements: skill.security_requirements.iter().map(wire::SecurityRequirement::of).collect(),
        }
    }

    pub(crate) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> AgentSkill {
        AgentSkill {
            id: self.id,
            name: self.name,
            description: self.description,
            tags: check.lines(format_args!("{at}.tags"), list(self.tags)),
            examples: self.examples,
            input_modes: check.lines(format_args!("{at}.inputModes"), list(self.input_modes)),
            output_modes: check.lines(format_args!("{at}.outputModes"), list(self.output_modes)),
            security_requirements: self
                .security_requirements
                .into_iter()
                .map(wire::SecurityRequirement::read)
                .collect(),
        }
    }
}

impl wire::AgentCardSignature {
    pub(crate) fn of(signature: &AgentCardSignature) -> Self {
        Self {
            protected: signature.protected.clone(),
            signature: signature.signature.clone(),
            header: signature.header.as_ref().map(encode_object),
        }
    }

    pub(crate) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> AgentCardSignature {
        AgentCardSignature {
            protected: self.protected,
            signature: self.signature,
            header: decode_object(check, format_args!("{at}.header"), self.header.as_ref()),
        }
    }
}

impl wire::SecurityRequirement {
    pub(crate) fn of(requirement: &SecurityRequirement) -> Self {
        let schemes = requirement.schemes.iter();
        let schemes = schemes.map(|(name, scopes)| (name.clone(), wire::StringList { list: scopes.clone() }));
        Self { schemes: schemes.collect() }
    }

    pub(crate) fn read(self) -> SecurityRequirement {
        SecurityRequirement { schemes: self.schemes.into_iter().map(|(name, scopes)| (name, scopes.list)).collect() }
    }
}

pub(crate) fn schemes_of(schemes: &[(String, SecurityScheme)]) -> BTreeMap<String, wire::SecurityScheme> {
    schemes.iter().map(|(name, scheme)| (name.clone(), wire::SecurityScheme::of(scheme))).collect()
}

/// Reads the schemes of a card. One of an unknown kind is left out; the requirements still name it, so a client sees
/// that it lacks a scheme.
pub(crate) fn read_schemes(
    check: &mut Check<'_>,
    schemes: BTreeMap<String, wire::SecurityScheme>,
) -> Vec<(String, SecurityScheme)> {
    let schemes = entries(check, format_args!("securitySchemes"), schemes.into_iter().collect(), |entry, _, _| entry);
    schemes.into_iter().filter_map(|(name, scheme)| Some((name, scheme.read()?))).collect()
}

impl wire::SecurityScheme {
    fn of(scheme: &SecurityScheme) -> Self {
        let text = |text: &Option<String>| some(text.as_ref());
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
                    flows: Some(wire::OAuthFlows { flow: Some(flow_of(flow)) }),
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
        Self { scheme: Some(scheme) }
    }

    /// The scheme; none if its kind, or the flow of its OAuth, is not known here.
    fn read(self) -> Option<SecurityScheme> {
        Some(match self.scheme? {
            Scheme::ApiKeySecurityScheme(own) => SecurityScheme::ApiKey {
                description: optional(own.description),
                location: own.location,
                name: own.name,
            },
            Scheme::HttpAuthSecurityScheme(own) => SecurityScheme::Http {
                description: optional(own.description),
                scheme: own.scheme,
                bearer_format: optional(own.bearer_format),
            },
            Scheme::Oauth2SecurityScheme(own) => SecurityScheme::OAuth2 {
                description: optional(own.description),
                flow: read_flow(own.flows?.flow?),
                metadata_url: optional(own.oauth2_metadata_url),
            },
            Scheme::OpenIdConnectSecurityScheme(own) => {
                SecurityScheme::OpenIdConnect { description: optional(own.description), url: own.open_id_connect_url }
            }
            Scheme::MtlsSecurityScheme(own) => SecurityScheme::MutualTls { description: optional(own.description) },
        })
    }
}

fn flow_of(flow: &OAuthFlow) -> Flow {
    let text = |text: &Option<String>| some(text.as_ref());
    let (token_url, refresh_url) = (text(&flow.token_url), text(&flow.refresh_url));
    let authorization_url = text(&flow.authorization_url);
    let scopes = flow.scopes.iter().cloned().collect();
    match flow.kind {
        OAuthFlowKind::AuthorizationCode => Flow::AuthorizationCode(wire::AuthorizationCodeOAuthFlow {
            authorization_url,
            token_url,
            refresh_url,
            scopes,
            pkce_required: flow.pkce_required,
        }),
        OAuthFlowKind::ClientCredentials => {
            Flow::ClientCredentials(wire::ClientCredentialsOAuthFlow { token_url, refresh_url, scopes })
        }
        OAuthFlowKind::Implicit => Flow::Implicit(wire::ImplicitOAuthFlow { authorization_url, refresh_url, scopes }),
        OAuthFlowKind::Password => Flow::Password(wire::PasswordOAuthFlow { token_url, refresh_url, scopes }),
        OAuthFlowKind::DeviceCode => Flow::DeviceCode(wire::DeviceCodeOAuthFlow {
            device_authorization_url: text(&flow.device_authorization_url),
            token_url,
            refresh_url,
            scopes,
        }),
    }
}

fn read_flow(flow: Flow) -> OAuthFlow {
    let of = |kind, refresh_url, scopes: BTreeMap<String, String>| OAuthFlow {
        kind,
        authorization_url: None,
        device_authorization_url: None,
        token_url: None,
        refresh_url: optional(refresh_url),
        scopes: scopes.into_iter().collect(),
        pkce_required: false,
    };
    match flow {
        Flow::AuthorizationCode(own) => OAuthFlow {
            authorization_url: optional(own.authorization_url),
            token_url: optional(own.token_url),
            pkce_required: own.pkce_required,
            ..of(OAuthFlowKind::AuthorizationCode, own.refresh_url, own.scopes)
        },
        Flow::ClientCredentials(own) => OAuthFlow {
            token_url: optional(own.token_url),
            ..of(OAuthFlowKind::ClientCredentials, own.refresh_url, own.scopes)
        },
        Flow::Implicit(own) => OAuthFlow {
            authorization_url: optional(own.authorization_url),
            ..of(OAuthFlowKind::Implicit, own.refresh_url, own.scopes)
        },
        Flow::Password(own) => {
            OAuthFlow { token_url: optional(own.token_url), ..of(OAuthFlowKind::Password, own.refresh_url, own.scopes) }
        }
        Flow::DeviceCode(own) => OAuthFlow {
            device_authorization_url: optional(own.device_authorization_url),
            token_url: optional(own.token_url),
            ..of(OAuthFlowKind::DeviceCode, own.refresh_url, own.scopes)
        },
    }
}
