//! Who may use a relay, what its upstream must show, what it is shown, and gateways in a circle.

use std::time::Duration;

use switchboard::client::{CardKeys, Client, Credentials, OAuthClient, RetryPolicy};
use switchboard::{KeyAlgorithm, Rules, Server, SigningKeys, TaskState, Tokens};
use switchboard_hub::relay::{Relay, RelayHandle, RelayOptions};
use switchboard_test_servers::free_addr;

use super::{Upstream, outcome, quick};
use crate::support::callers::soon;
use crate::support::grpc::Served;
use crate::support::scripted::{Scripted, answer, json};

const ALICE: &str = "a-token-of-alice-for-tests";
const BOB: &str = "b-token-of-bob-for-tests";

/// Rules are about the agents of the gateway, and a relay is one: nothing that they refuse reaches the upstream.
#[tokio::test]
async fn rules_hold_for_a_relay_as_for_every_agent() {
    let upstream = Upstream::start().await;
    let relay = Relay::new(&upstream.url, Client::builder(), quick()).unwrap();
    let rules =
        Rules::parse("allow principal:alice send weather/forecast\nallow principal:alice read weather").unwrap();
    let tokens = Tokens::parse(&format!("{ALICE} alice\n{BOB} bob\n")).unwrap();
    let gateway = Server::builder().agent(relay.agent("Weather").slug("weather")).tokens(tokens).rules(rules);
    let gateway = Served::start(gateway).await;
    let client = Client::builder().retry(RetryPolicy::never()).build().unwrap();
    let agent = soon(client.agent(&format!("http://{}", gateway.address))).await.unwrap();
    let send = |skill: &str| {
        let mut send = switchboard::call::SendMessage::new(super::message(&format!("m-{skill}"), "hello"));
        let said = serde_json::json!({"skillId": skill});
        send.metadata = switchboard::Json::from_serialize(&said).ok();
        send
    };
    for (token, skill, allowed) in
        [(ALICE, "forecast", true), (ALICE, "history", false), (BOB, "forecast", false), (BOB, "history", false)]
    {
        let agent = agent.clone().with_credentials(Credentials::bearer(token));
        let sent = soon(agent.send_with(send(skill))).await;
        assert_eq!(sent.is_ok(), allowed, "{token} {skill}: {sent:?}");
        if let Err(error) = sent {
            assert_eq!(error.http_status(), Some(403), "{error}");
        }
    }
    assert_eq!(upstream.seen().len(), 1, "what was refused has not left");
    let bob = agent.with_credentials(Credentials::bearer(BOB));
    assert_eq!(soon(bob.tasks(Default::default())).await.unwrap_err().http_status(), Some(403));
}

fn signed_by(keys: &SigningKeys) -> CardKeys {
    CardKeys::none().and_jwk_set(keys.jwk_set()).unwrap()
}

/// A gateway with keys of its own in front of an upstream whose card must be signed.
async fn trusting(url: &str, keys: CardKeys, options: RelayOptions) -> (Served, RelayHandle) {
    let client = Client::builder().card_keys(keys).require_signed_cards();
    let relay = Relay::new(url, client, options).unwrap();
    let handle = relay.handle();
    let own = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let served = Served::start(Server::builder().agent(relay.agent("Relay")).signing_keys(own)).await;
    handle.begin().await;
    (served, handle)
}

#[tokio::test]
async fn the_signature_of_an_upstream_is_verified_kept_and_replaced_by_our_own() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let echo = crate::support::edge::echo();
    let upstream = Served::start(Server::builder().agent(echo).signing_keys(keys.clone())).await;
    let url = format!("http://{}", upstream.address);
    let folder = tempfile::tempdir().unwrap();
    let mut options = quick();
    options.card_file = Some(folder.path().join("echo.json"));
    let (gateway, handle) = trusting(&url, signed_by(&keys), options).await;

    let theirs = handle.card().expect("it was verified");
    assert!(!theirs.signatures.is_empty());
    let kept = std::fs::read_to_string(folder.path().join("echo.json")).unwrap();
    assert!(theirs.signatures.iter().all(|theirs| kept.contains(&theirs.signature)), "they are kept with the card");
    let client = Client::builder().build().unwrap();
    let shown = soon(client.discover(&format!("http://{}", gateway.address))).await.unwrap().card().clone();
    assert_eq!(shown.name, "Echo");
    let is_theirs = |own: &str| theirs.signatures.iter().any(|theirs| theirs.signature == own);
    assert!(
        !shown.signatures.is_empty() && !shown.signatures.iter().any(|own| is_theirs(&own.signature)),
        "ours alone"
    );
    let agent = soon(client.agent(&format!("http://{}", gateway.address))).await.unwrap();
    assert_eq!(soon(agent.send_text("hello")).await.unwrap().text(), "hello");
}

#[tokio::test]
async fn an_upstream_that_is_not_signed_or_by_another_key_is_not_called() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let other = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let unsigned = Upstream::start().await;
    let signed = Upstream::start_signed(other).await;
    for upstream in [unsigned, signed] {
        let (gateway, handle) = trusting(&upstream.url, signed_by(&keys), quick()).await;
        assert_eq!(handle.card(), None);
        assert!(handle.refresh().await.is_err());
        let client = Client::builder().build().unwrap();
        let agent = soon(client.agent(&format!("http://{}", gateway.address))).await.unwrap();
        let (state, text) = outcome(&agent, "hello").await;
        assert_eq!(state, TaskState::Failed, "{text}");
        assert!(upstream.seen().is_empty(), "nothing was sent");
    }
}

/// A card may name another host; a private one that nobody named is not called.
#[tokio::test]
async fn a_card_that_leads_to_a_private_address_elsewhere_fails_the_task() {
    let upstream = Scripted::start(|_, _| {
        json(
            r#"{"name":"Bad","version":"1","protocolVersion":"0.3.0","url":"http://10.9.8.7/","preferredTransport":"JSONRPC",
            "capabilities":{"streaming":true}}"#,
        )
    })
    .await;
    let (_gateway, agent, _) = super::gateway(&upstream.url, quick());
    let (state, text) = outcome(&agent, "go").await;
    assert_eq!(state, TaskState::Failed, "{text}");
    assert!(!text.contains("10.9.8.7"), "{text}");
    assert!(upstream.lines().iter().all(|line| line.starts_with("GET ")), "{:?}", upstream.lines());
}

/// Each of three gateways passes on to the next, over real sockets: the message makes three hops, and is then refused by name.
#[tokio::test]
async fn three_gateways_in_a_circle_end_in_a_named_error() {
    let addresses = [free_addr(), free_addr(), free_addr()];
    let mut servers = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        let next = format!("http://{}", addresses[(at + 1) % 3]);
        let relay = Relay::new(&next, Client::builder(), quick()).unwrap();
        let server = Server::builder().agent(relay.agent(format!("gateway-{at}"))).build().unwrap();
        servers
            .push(tokio::spawn(server.bind(*address).await.unwrap().run_until(std::future::pending(), Duration::ZERO)));
    }
    let client = Client::builder().build().unwrap();
    let agent = soon(client.agent(&format!("http://{}", addresses[0]))).await.unwrap();
    let (state, text) = outcome(&agent, "round").await;
    assert_eq!(state, TaskState::Rejected, "{text}");
    assert!(text.starts_with("TOO_MANY_HOPS: agent \"gateway-0\" is not called"), "{text}");
    let tasks = soon(agent.tasks(Default::default())).await.unwrap().tasks;
    assert_eq!(tasks.len(), 2, "the first gateway has had it twice");
    assert!(tasks.iter().all(|task| task.task.state() == TaskState::Rejected), "nothing is left at work");
    servers.iter().for_each(tokio::task::JoinHandle::abort);
}

/// An application gets a token in its own name, and uses it again.
#[tokio::test]
async fn a_relay_gets_tokens_of_oauth_for_its_upstream() {
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"here"}]}}"#;
    let upstream = Scripted::start(|_, asked| match asked.line.as_str() {
        "POST /token" => json(r#"{"access_token":"good","token_type":"Bearer","expires_in":3600}"#),
        "POST /" if asked.header("authorization") == Some("bearer good") => json(ANSWER),
        "POST /" => answer(401, "www-authenticate: Bearer", ""),
        _ => json(
            r#"{"name":"A","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC","capabilities":{},
            "securitySchemes":{"o":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"https://elsewhere.example/token","scopes":{}}}}},
            "security":[{"o":["read"]}]}"#,
        ),
    })
    .await;
    let app = OAuthClient::new("gateway").with_secret("s3cret").with_scopes(["agents"]);
    let app = app.with_token_url(format!("{}/token", upstream.url));
    let client = Client::builder().credentials(Credentials::oauth(app));
    let relay = Relay::new(&upstream.url, client, quick()).unwrap();
    let server = Server::builder().agent(switchboard::AgentBuilder::new("Relay", relay)).build().unwrap();
    let agent = server.local("relay").unwrap();
    for _ in 0..2 {
        assert_eq!(soon(agent.send_text("go")).await.unwrap().text(), "here");
    }
    let forms: Vec<_> = upstream.asked().into_iter().filter(|asked| asked.line == "POST /token").collect();
    assert_eq!((forms.len(), forms[0].body.as_str()), (1, "grant_type=client_credentials&scope=agents"));
}
