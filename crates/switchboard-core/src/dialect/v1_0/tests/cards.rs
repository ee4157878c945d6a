//! Cards: one with everything, one with nothing.

use std::sync::Arc;

use crate::call::Reply;
use crate::model::{
    AgentCapabilities, AgentCard, AgentCardSignature, AgentExtension, AgentInterface, AgentProvider, AgentSkill, Json,
    OAuthFlow, OAuthFlowKind, SecurityRequirement, SecurityScheme,
};

use super::super::{encode_card, encode_reply};
use super::encoded;

fn text(text: &str) -> String {
    text.to_owned()
}

fn some(value: &str) -> Option<String> {
    Some(value.to_owned())
}

fn needs(schemes: &[(&str, &[&str])]) -> SecurityRequirement {
    let scopes = |scopes: &[&str]| scopes.iter().map(|scope| text(scope)).collect();
    SecurityRequirement { schemes: schemes.iter().map(|(name, list)| (text(name), scopes(list))).collect() }
}

fn flow(kind: OAuthFlowKind) -> OAuthFlow {
    OAuthFlow {
        kind,
        authorization_url: some("https://id.example/authorize"),
        device_authorization_url: some("https://id.example/device"),
        token_url: some("https://id.example/token"),
        refresh_url: None,
        scopes: vec![(text("tides"), text("read tides"))],
        pkce_required: true,
    }
}

fn oauth(kind: OAuthFlowKind, metadata_url: Option<String>) -> SecurityScheme {
    SecurityScheme::OAuth2 { description: None, flow: flow(kind), metadata_url }
}

fn full_card() -> AgentCard {
    let interface = |url: &str, binding: &str, version: &str, tenant: Option<String>| AgentInterface {
        url: text(url),
        protocol_binding: text(binding),
        protocol_version: text(version),
        tenant,
    };
    AgentCard {
        name: text("Tide Agent"),
        description: text("Knows the tides"),
        version: text("3.1.0"),
        supported_interfaces: vec![
            interface("https://tides.example/rpc", "JSONRPC", "1.0", None),
            interface("https://tides.example", "HTTP+JSON", "1.0", some("acme")),
            interface("tides.example:443", "GRPC", "1.0", None),
        ],
        provider: Some(AgentProvider { organization: text("Example"), url: text("https://example.net") }),
        documentation_url: some("https://tides.example/docs"),
        icon_url: some("https://tides.example/icon.png"),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(false),
            extended_agent_card: Some(true),
            extensions: vec![
                AgentExtension {
                    uri: text("https://ext.example/geo/v1"),
                    description: some("coordinates"),
                    required: true,
                    params: Some(Json::from_trusted(r#"{"crs":"EPSG:4326"}"#)),
                },
                AgentExtension {
                    uri: text("https://ext.example/time/v1"),
                    description: None,
                    required: false,
                    params: None,
                },
            ],
        },
        security_schemes: vec![
            (
                text("key"),
                SecurityScheme::ApiKey { description: some("ask us"), location: text("header"), name: text("X-Key") },
            ),
            (
                text("jwt"),
                SecurityScheme::Http { description: None, scheme: text("Bearer"), bearer_format: some("JWT") },
            ),
            (text("code"), oauth(OAuthFlowKind::AuthorizationCode, some("https://id.example/meta"))),
            (text("machine"), oauth(OAuthFlowKind::ClientCredentials, None)),
            (text("device"), oauth(OAuthFlowKind::DeviceCode, None)),
            (text("implicit"), oauth(OAuthFlowKind::Implicit, None)),
            (text("password"), oauth(OAuthFlowKind::Password, None)),
            (
                text("oidc"),
                SecurityScheme::OpenIdConnect {
                    description: None,
                    url: text("https://id.example/.well-known/openid-configuration"),
                },
            ),
            (text("cert"), SecurityScheme::MutualTls { description: None }),
        ],
        security_requirements: vec![needs(&[("code", &["tides"])]), needs(&[("key", &[]), ("cert", &[])])],
        default_input_modes: vec![text("text/plain")],
        default_output_modes: vec![text("text/plain"), text("application/json")],
        skills: vec![AgentSkill {
            id: text("tide"),
            name: text("Tide"),
            description: text("When is high water?"),
            tags: vec![text("sea")],
            examples: vec![text("High water in Husum?")],
            input_modes: vec![text("text/plain")],
            output_modes: vec![text("application/json")],
            security_requirements: vec![needs(&[("code", &["tides"])])],
        }],
        signatures: vec![AgentCardSignature {
            protected: text("eyJhbGciOiJFUzI1NiJ9"),
            signature: text("c2lnbmVk"),
            header: Some(Json::from_trusted(r#"{"note":"x"}"#)),
        }],
    }
}

#[test]
fn a_card_with_everything_is_written_whole() {
    super::goldens::check_written("card-full", &encoded(|out| encode_card(&full_card(), out)));
    #[cfg(feature = "protobuf")]
    super::proto::check_card("card-full", &full_card());
}

#[test]
fn a_card_with_nothing_still_has_what_is_required() {
    assert_eq!(
        encoded(|out| encode_reply(&Reply::Card(Arc::new(AgentCard::default())), out)),
        r#"{"name":"","description":"","supportedInterfaces":[],"version":"","capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#
    );
}

#[test]
fn a_flow_has_the_fields_of_its_kind_and_its_required_ones_always() {
    use OAuthFlowKind as K;
    for (kind, expected) in [
        (K::AuthorizationCode, r#""flows":{"authorizationCode":{"authorizationUrl":"","tokenUrl":"","scopes":{}}}"#),
        (K::ClientCredentials, r#""flows":{"clientCredentials":{"tokenUrl":"","scopes":{}}}"#),
        (K::DeviceCode, r#""flows":{"deviceCode":{"deviceAuthorizationUrl":"","tokenUrl":"","scopes":{}}}"#),
        (K::Implicit, r#""flows":{"implicit":{}}"#),
        (K::Password, r#""flows":{"password":{}}"#),
    ] {
        let flow = OAuthFlow {
            kind,
            authorization_url: None,
            device_authorization_url: None,
            token_url: None,
            refresh_url: None,
            scopes: Vec::new(),
            pkce_required: false,
        };
        let scheme = SecurityScheme::OAuth2 { description: None, flow, metadata_url: None };
        let card = AgentCard { security_schemes: vec![(text("o"), scheme)], ..AgentCard::default() };
        let written = encoded(|out| encode_card(&card, out));
        assert!(written.contains(expected), "{written}");
    }
}
