//! Identity providers: their keys are fetched, found by discovery, exchanged, and missing.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard::{Issuer, Server};

use crate::support::edge::{Edge, echo, get, with};
use crate::support::issuers::{Provider, Signer, now_s};

fn edge(provider: &Provider, change: impl FnOnce(Issuer) -> Issuer) -> Edge {
    let issuer = change(Issuer::new(provider.issuer(), "agents"));
    Edge::new(Server::builder().agent(echo()).issuer(issuer).outbound_allow([provider.address.to_string()]))
}

fn claims(provider: &Provider) -> Value {
    json!({"iss": provider.issuer(), "aud": "agents", "sub": "alice", "exp": now_s() + 900})
}

async fn ask(edge: &Edge, token: &str) -> String {
    edge.ask(with(get("/tasks"), "authorization", &format!("Bearer {token}"))).await.gist()
}

/// Moves the clock while nothing waits for a socket.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn keys_are_found_by_discovery_and_fetched_once() {
    let signer = Signer::new("key-1");
    let provider = Provider::start(&[signer.jwk()]).await;
    let edge = edge(&provider, |issuer| issuer);
    for _ in 0..3 {
        assert_eq!(ask(&edge, &signer.token(&claims(&provider))).await, "200");
    }
    assert_eq!(provider.fetched(), 1);
    let card = edge.get("/.well-known/agent-card.json").await.json();
    let url = format!("{}/.well-known/openid-configuration", provider.issuer());
    assert_eq!(card["securitySchemes"]["oidc"]["openIdConnectSecurityScheme"]["openIdConnectUrl"], json!(url));
}

#[tokio::test]
async fn a_document_of_another_issuer_is_not_believed() {
    let signer = Signer::new("key-1");
    let provider = Provider::start(&[signer.jwk()]).await;
    // The same document, under a name that the provider does not have.
    let other = provider.issuer().replace("127.0.0.1", "localhost");
    let issuer = Issuer::new(&other, "agents");
    let allow = ["127.0.0.1", "localhost", "::1"];
    let edge = Edge::new(Server::builder().agent(echo()).issuer(issuer).outbound_allow(allow));
    let mut claims = claims(&provider);
    claims["iss"] = json!(other);
    assert_eq!(ask(&edge, &signer.token(&claims)).await, "503 UNAVAILABLE");
    assert_eq!(provider.fetched(), 0);
}

#[tokio::test]
async fn an_unknown_key_is_asked_for_once_in_a_while_and_an_old_one_is_forgotten() {
    let (old, new) = (Signer::new("key-1"), Signer::new("key-2"));
    let provider = Provider::start(&[old.jwk()]).await;
    let url = provider.keys_url();
    let edge = edge(&provider, |issuer| issuer.keys_at(url));
    let [of_old, of_new] = [&old, &new].map(|signer| signer.token(&claims(&provider)));
    assert_eq!(ask(&edge, &of_old).await, "200");
    provider.publish(Some(&[new.jwk()]));
    assert_eq!(ask(&edge, &of_new).await, "401 UNAUTHENTICATED", "it is too soon to ask again");
    assert_eq!((ask(&edge, &of_old).await.as_str(), provider.fetched()), ("200", 1));
    pass(Duration::from_secs(31)).await;
    assert_eq!((ask(&edge, &of_new).await.as_str(), provider.fetched()), ("200", 2));
    assert_eq!(ask(&edge, &of_old).await, "401 UNAUTHENTICATED", "its key was taken back");
    for stranger in ["key-3", "key-4", "key-5"] {
        let token = Signer::new(stranger).token(&claims(&provider));
        assert_eq!(ask(&edge, &token).await, "401 UNAUTHENTICATED");
    }
    assert_eq!(provider.fetched(), 2, "strangers do not make the server fetch");
    pass(Duration::from_secs(31)).await;
    let token = Signer::new("key-6").token(&claims(&provider));
    assert_eq!((ask(&edge, &token).await.as_str(), provider.fetched()), ("401 UNAUTHENTICATED", 3));
    assert_eq!(ask(&edge, &of_new).await, "200");
}

#[tokio::test]
async fn without_keys_the_server_says_that_it_cannot_tell() {
    let signer = Signer::new("key-1");
    let provider = Provider::start(&[]).await;
    provider.publish(None);
    let url = provider.keys_url();
    let edge = edge(&provider, |issuer| issuer.keys_at(url));
    let token = signer.token(&claims(&provider));
    assert_eq!(ask(&edge, &token).await, "503 UNAVAILABLE");
    assert_eq!(ask(&edge, &token).await, "503 UNAVAILABLE");
    assert_eq!(provider.fetched(), 1, "a failure is not repeated at once");
    assert_eq!(ask(&edge, "wrong-token-of-nobody").await, "401 UNAUTHENTICATED");
    provider.publish(Some(&[signer.jwk()]));
    pass(Duration::from_secs(6)).await;
    assert_eq!(ask(&edge, &token).await, "200");
    // Keys that were good stay good while the provider is away.
    provider.publish(None);
    pass(Duration::from_secs(3_700)).await;
    let again = signer.token(&json!({"iss": provider.issuer(), "aud": "agents", "sub": "bob", "exp": now_s() + 900}));
    assert_eq!(ask(&edge, &again).await, "200");
}

#[tokio::test]
async fn a_private_address_is_only_called_where_it_is_allowed() {
    let signer = Signer::new("key-1");
    let provider = Provider::start(&[signer.jwk()]).await;
    let issuer = Issuer::new(provider.issuer(), "agents").keys_at(provider.keys_url());
    let edge = Edge::new(Server::builder().agent(echo()).issuer(issuer));
    assert_eq!(ask(&edge, &signer.token(&claims(&provider))).await, "503 UNAVAILABLE");
    assert_eq!(provider.fetched(), 0);
}
