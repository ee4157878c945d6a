//! Cards beside the one an SDK writes, and beside the sample of the 0.2 specification.

use serde_json::Value;

use crate::model::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill, OAuthFlow, OAuthFlowKind,
    SecurityRequirement, SecurityScheme,
};

use super::super::encode_card;
use super::{assert_covers, encoded, golden_value, json};

fn written(card: &AgentCard) -> Value {
    serde_json::from_str(&encoded(|out| encode_card(card, out))).unwrap()
}

fn interface(url: &str, binding: &str, version: &str) -> AgentInterface {
    AgentInterface {
        url: url.to_owned(),
        protocol_binding: binding.to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    }
}

fn flow(kind: OAuthFlowKind) -> OAuthFlow {
    let url = |tail: &str| Some(format!("https://id.example/{tail}"));
    OAuthFlow {
        kind,
        authorization_url: (kind == OAuthFlowKind::AuthorizationCode).then(|| url("a")).flatten(),
        device_authorization_url: None,
        token_url: url("t"),
        refresh_url: (kind == OAuthFlowKind::AuthorizationCode).then(|| url("r")).flatten(),
        scopes: vec![("route".to_owned(), "plan routes".to_owned())],
        pkce_required: true,
    }
}

fn needs(schemes: &[(&str, &[&str])]) -> SecurityRequirement {
    let scopes = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect();
    SecurityRequirement { schemes: schemes.iter().map(|(name, list)| ((*name).to_owned(), scopes(list))).collect() }
}

fn full() -> AgentCard {
    let text = |text: &str| text.to_owned();
    AgentCard {
        name: text("Router"),
        description: text("Plans routes"),
        version: text("2.1.0"),
        supported_interfaces: vec![
            interface("https://agents.example", "JSONRPC", "1.0"),
            interface("https://agents.example/rpc", "JSONRPC", "0.3"),
            interface("https://agents.example", "HTTP+JSON", "0.3"),
        ],
        provider: Some(AgentProvider { organization: text("Example"), url: text("https://example") }),
        documentation_url: Some(text("https://agents.example/docs")),
        icon_url: Some(text("https://agents.example/i.png")),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extended_agent_card: Some(true),
            extensions: vec![AgentExtension {
                uri: text("https://ext.example/geo/v1"),
                description: Some(text("coordinates")),
                required: true,
                params: Some(json(r#"{"crs":"EPSG:4326"}"#)),
            }],
        },
        security_schemes: vec![
            (text("key"), SecurityScheme::ApiKey { description: None, location: text("header"), name: text("X-Key") }),
            (
                text("jwt"),
                SecurityScheme::Http { description: None, scheme: text("Bearer"), bearer_format: Some(text("JWT")) },
            ),
            (
                text("oauth"),
                SecurityScheme::OAuth2 {
                    description: None,
                    flow: flow(OAuthFlowKind::AuthorizationCode),
                    metadata_url: Some(text("https://id.example/meta")),
                },
            ),
            (
                text("machine"),
                SecurityScheme::OAuth2 {
                    description: None,
                    flow: flow(OAuthFlowKind::ClientCredentials),
                    metadata_url: None,
                },
            ),
            (
                text("oidc"),
                SecurityScheme::OpenIdConnect {
                    description: None,
                    url: text("https://id.example/.well-known/openid-configuration"),
                },
            ),
            (text("cert"), SecurityScheme::MutualTls { description: Some(text("client certificate")) }),
        ],
        security_requirements: vec![needs(&[("oauth", &["route"])]), needs(&[("key", &[]), ("cert", &[])])],
        default_input_modes: vec![text("text/plain")],
        default_output_modes: vec![text("text/plain"), text("application/json")],
        skills: vec![AgentSkill {
            id: text("plan"),
            name: text("Plan"),
            description: text("Find a route"),
            tags: vec![text("maps")],
            examples: vec![text("From A to B")],
            input_modes: vec![text("text/plain")],
            output_modes: vec![text("application/json")],
            security_requirements: vec![needs(&[("oauth", &["route"])])],
        }],
        signatures: Vec::new(),
    }
}

#[test]
fn a_card_is_written_as_the_sdk_does() {
    let card = written(&full());
    assert_covers(&card, &golden_value("card-full"), &["authentication"]);
    assert_eq!(card["authentication"]["schemes"], serde_json::json!(["ApiKey", "Bearer"]));
}

#[test]
fn what_0_3_does_not_know_is_left_out() {
    let mut card = full();
    let device = SecurityScheme::OAuth2 {
        description: None,
        flow: OAuthFlow { device_authorization_url: Some(String::new()), ..flow(OAuthFlowKind::DeviceCode) },
        metadata_url: None,
    };
    card.security_schemes = vec![("device".to_owned(), device)];
    card.supported_interfaces.truncate(1);
    let card = written(&card);
    assert_eq!(card["securitySchemes"]["device"], serde_json::json!({"type": "oauth2", "flows": {}}));
    assert_eq!((card.get("url"), card.get("additionalInterfaces")), (None, None));
    assert!(!card.to_string().contains("pkce"));
}

#[test]
fn the_sample_of_the_0_2_specification_can_be_said() {
    let sample = golden_value("spec02-card");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let texts = |value: &Value| value.as_array().map_or(Vec::new(), |items| items.iter().map(text).collect());
    let skill = |skill: &Value| AgentSkill {
        id: text(&skill["id"]),
        name: text(&skill["name"]),
        description: text(&skill["description"]),
        tags: texts(&skill["tags"]),
        examples: texts(&skill["examples"]),
        input_modes: texts(&skill["inputModes"]),
        output_modes: texts(&skill["outputModes"]),
        security_requirements: Vec::new(),
    };
    let card = AgentCard {
        name: text(&sample["name"]),
        description: text(&sample["description"]),
        version: text(&sample["version"]),
        supported_interfaces: vec![interface(&text(&sample["url"]), "JSONRPC", "0.3")],
        provider: Some(AgentProvider {
            organization: text(&sample["provider"]["organization"]),
            url: text(&sample["provider"]["url"]),
        }),
        documentation_url: Some(text(&sample["documentationUrl"])),
        icon_url: Some(text(&sample["iconUrl"])),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extended_agent_card: Some(true),
            extensions: Vec::new(),
        },
        security_schemes: vec![(
            "google".to_owned(),
            SecurityScheme::OpenIdConnect {
                description: None,
                url: text(&sample["securitySchemes"]["google"]["openIdConnectUrl"]),
            },
        )],
        security_requirements: vec![needs(&[("google", &["openid", "profile", "email"])])],
        default_input_modes: texts(&sample["defaultInputModes"]),
        default_output_modes: texts(&sample["defaultOutputModes"]),
        skills: sample["skills"].as_array().unwrap().iter().map(skill).collect(),
        signatures: Vec::new(),
    };
    let since_0_2 = ["protocolVersion", "preferredTransport", "additionalInterfaces", "authentication"];
    assert_covers(&written(&card), &sample, &since_0_2);
}
