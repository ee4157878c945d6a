//! Every card declares exactly what is enforced, in the names of its dialect.

use expect_test::expect;
use serde_json::Value;
use switchboard::{Issuer, Server, SharedSecret, Tokens};

use crate::support::edge::{Edge, echo, get, unversioned};

#[tokio::test(start_paused = true)]
async fn each_dialect_has_its_own_names_for_what_is_enforced() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice\n").unwrap();
    let builder =
        Server::builder().agent(echo()).tokens(tokens).shared_secret(SharedSecret::new("a-long-random-secret"));
    let builder =
        builder.issuer(Issuer::new("https://login.example", "agents")).basic(true).api_key_header("X-API-Key");
    let edge = Edge::new(builder.api_key_cookie("session").client_certificates(true));
    let mut shown = String::new();
    for (name, asked) in [
        ("1.0", get("/.well-known/agent-card.json")),
        ("0.3", unversioned(get("/.well-known/agent-card.json"))),
        ("agent-native", unversioned(get("/dialects/agent-native/.well-known/agent-card.json"))),
        ("nexus", unversioned(get("/dialects/nexus/.well-known/agent.json"))),
        ("corvid", unversioned(get("/api/agents/echo/agent-card"))),
    ] {
        let card = edge.ask(asked).await.json();
        for member in ["securitySchemes", "securityRequirements", "security", "authentication"] {
            if let Some(value) = card.get(member).filter(|value| **value != Value::Null) {
                shown.push_str(&format!("{name} {member}: {value}\n"));
            }
        }
    }
    expect![[r#"
        1.0 securitySchemes: {"apiKey":{"apiKeySecurityScheme":{"description":"A token given out by the operator of this server","location":"header","name":"x-api-key"}},"apiKeyCookie":{"apiKeySecurityScheme":{"description":"A token given out by the operator of this server","location":"cookie","name":"session"}},"basic":{"httpAuthSecurityScheme":{"description":"The principal of a token of this server as the name, and the token as the password","scheme":"Basic"}},"bearer":{"httpAuthSecurityScheme":{"description":"A token given out by the operator of this server","scheme":"Bearer"}},"jwtBearer":{"httpAuthSecurityScheme":{"bearerFormat":"JWT","description":"A token that the caller signs with the secret it shares with this server (HS256)","scheme":"Bearer"}},"mtls":{"mtlsSecurityScheme":{"description":"A client certificate of an authority that this server trusts"}},"oidc":{"openIdConnectSecurityScheme":{"description":"A token of https://login.example","openIdConnectUrl":"https://login.example/.well-known/openid-configuration"}}}
        1.0 securityRequirements: [{"schemes":{"bearer":{}}},{"schemes":{"jwtBearer":{}}},{"schemes":{"oidc":{}}},{"schemes":{"basic":{}}},{"schemes":{"apiKey":{}}},{"schemes":{"apiKeyCookie":{}}},{"schemes":{"mtls":{}}}]
        0.3 securitySchemes: {"apiKey":{"apiKeySecurityScheme":{"description":"A token given out by the operator of this server","location":"header","name":"x-api-key"},"description":"A token given out by the operator of this server","in":"header","name":"x-api-key","type":"apiKey"},"apiKeyCookie":{"apiKeySecurityScheme":{"description":"A token given out by the operator of this server","location":"cookie","name":"session"},"description":"A token given out by the operator of this server","in":"cookie","name":"session","type":"apiKey"},"basic":{"description":"The principal of a token of this server as the name, and the token as the password","httpAuthSecurityScheme":{"description":"The principal of a token of this server as the name, and the token as the password","scheme":"Basic"},"scheme":"Basic","type":"http"},"bearer":{"description":"A token given out by the operator of this server","httpAuthSecurityScheme":{"description":"A token given out by the operator of this server","scheme":"Bearer"},"scheme":"Bearer","type":"http"},"jwtBearer":{"bearerFormat":"JWT","description":"A token that the caller signs with the secret it shares with this server (HS256)","httpAuthSecurityScheme":{"bearerFormat":"JWT","description":"A token that the caller signs with the secret it shares with this server (HS256)","scheme":"Bearer"},"scheme":"Bearer","type":"http"},"mtls":{"description":"A client certificate of an authority that this server trusts","mtlsSecurityScheme":{"description":"A client certificate of an authority that this server trusts"},"type":"mutualTLS"},"oidc":{"description":"A token of https://login.example","openIdConnectSecurityScheme":{"description":"A token of https://login.example","openIdConnectUrl":"https://login.example/.well-known/openid-configuration"},"openIdConnectUrl":"https://login.example/.well-known/openid-configuration","type":"openIdConnect"}}
        0.3 securityRequirements: [{"schemes":{"bearer":{}}},{"schemes":{"jwtBearer":{}}},{"schemes":{"oidc":{}}},{"schemes":{"basic":{}}},{"schemes":{"apiKey":{}}},{"schemes":{"apiKeyCookie":{}}},{"schemes":{"mtls":{}}}]
        0.3 security: [{"bearer":[]},{"jwtBearer":[]},{"oidc":[]},{"basic":[]},{"apiKey":[]},{"apiKeyCookie":[]},{"mtls":[]}]
        0.3 authentication: {"schemes":["ApiKey","Basic","Bearer"]}
        agent-native securitySchemes: {"apiKey":{"scheme":"bearer","type":"http"},"jwtBearer":{"bearerFormat":"JWT","scheme":"bearer","type":"http"}}
        agent-native security: [{"jwtBearer":[]},{"apiKey":[]}]
        nexus authentication: {"schemes":["bearer"]}
        corvid authentication: {"schemes":["Bearer"]}
    "#]].assert_eq(&shown);
}
