//! Cards that the server signs: in every form, on every binding, under every name of the server, and after a change of keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde_json::{Value, json};
use switchboard::client::{CardKeys, Client, SignatureStatus};
use switchboard::model::{AgentCard, OAuthFlow, OAuthFlowKind, SecurityScheme};
use switchboard::{AgentBuilder, CardForm, KeyAlgorithm, KeyFolder, Server, SigningKeys, Tokens};
use switchboard_core::dialect::json::DecodeLimits;
use switchboard_core::dialect::v0_3::encode_card as encode_card_0_3;
use switchboard_core::dialect::v0_3::proto::{generated as v0_3, read_card as read_card_0_3};
use switchboard_core::dialect::v1_0::encode_card as encode_card_1_0;
use switchboard_core::dialect::v1_0::proto::{generated as v1_0, read_card as read_card_1_0};

use crate::support::edge::{Answer, Edge, echo, get, post, rpc_body, unversioned, with};
use crate::support::grpc::{V0_3, V1_0, grpc_request};

const CARD: &str = "/.well-known/agent-card.json";
const KEYS: &str = "/.well-known/jwks.json";

/// What a client that has the published keys says about a card.
async fn status(edge: &Edge, card: &[u8]) -> SignatureStatus {
    let keys = CardKeys::none().and_jwk_set(edge.get(KEYS).await.body).unwrap();
    let client = Client::builder().card_keys(keys).build().unwrap();
    let found = client.discover(std::str::from_utf8(card).unwrap()).await.unwrap();
    client.signature_status(&found).await
}

#[track_caller]
fn assert_unverifiable(status: &SignatureStatus, expected: &str) {
    match status {
        SignatureStatus::Unverifiable { reason } => assert!(reason.contains(expected), "{reason}"),
        other => panic!("{other:?}"),
    }
}

fn headers(card: &Value) -> Vec<Value> {
    let header = |signature: &Value| {
        let text = URL_SAFE_NO_PAD.decode(signature["protected"].as_str().unwrap()).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    card["signatures"].as_array().map(|all| all.iter().map(header).collect()).unwrap_or_default()
}

/// A card with every kind of member, and texts and values that SDKs write in different ways.
fn rich() -> AgentBuilder {
    let flow = |kind: OAuthFlowKind| OAuthFlow {
        kind,
        authorization_url: Some("https://id.example/auth".into()),
        device_authorization_url: Some("https://id.example/device".into()),
        token_url: Some("https://id.example/token".into()),
        refresh_url: None,
        scopes: vec![("read".into(), String::new()), ("\u{e4}ndern".into(), "\u{c4}ndern".into())],
        pkce_required: true,
    };
    let oauth = |kind| SecurityScheme::OAuth2 {
        description: Some("OAuth".into()),
        flow: flow(kind),
        metadata_url: Some("https://id.example/.well-known/oauth-authorization-server".into()),
    };
    let schemes = [
        ("key", SecurityScheme::ApiKey { description: None, location: "header".into(), name: "X-Key".into() }),
        (
            "http",
            SecurityScheme::Http {
                description: Some(String::new()),
                scheme: "Bearer".into(),
                bearer_format: Some("JWT".into()),
            },
        ),
        ("code", oauth(OAuthFlowKind::AuthorizationCode)),
        ("client", oauth(OAuthFlowKind::ClientCredentials)),
        ("implicit", oauth(OAuthFlowKind::Implicit)),
        ("password", oauth(OAuthFlowKind::Password)),
        ("device", oauth(OAuthFlowKind::DeviceCode)),
        ("oidc", SecurityScheme::OpenIdConnect { description: None, url: "https://id.example".into() }),
        ("mtls", SecurityScheme::MutualTls { description: None }),
    ];
    echo()
        .provider("B\u{fc}cher & S\u{f6}hne \u{1f980}", "https://books.example")
        .extension("https://books.example/ext", "", true)
        .card(move |card| {
            card.documentation_url = Some("https://books.example/docs".into());
            card.icon_url = Some(String::new());
            card.security_schemes = schemes.map(|(name, scheme)| (name.to_owned(), scheme)).to_vec();
            card.skills[0].examples = vec!["\"quoted\"\n".into()];
        })
        .extended_card(|card| card.description.push_str(" \u{2026} and more"))
        .extended_card_for_anyone()
}

#[tokio::test]
async fn the_card_of_both_versions_has_a_signature_for_each_and_the_card_of_one_has_one() {
    for algorithm in [KeyAlgorithm::Es256, KeyAlgorithm::EdDsa] {
        let keys = SigningKeys::generate(algorithm).unwrap();
        let id = keys.active_id().unwrap();
        let edge = Edge::new(
            Server::builder()
                .agent(echo())
                .allow_unauthenticated(true)
                .public_url("https://agents.example/a2a")
                .signing_keys(keys),
        );
        let verified = SignatureStatus::Verified { key_id: id.clone(), key_url: None };
        let both = edge.ask(unversioned(get(CARD))).await;
        let jku = "https://agents.example/a2a/.well-known/jwks.json";
        let header = json!({"alg": algorithm.as_str(), "kid": id, "typ": "JOSE", "jku": jku});
        // The form that the SDK of 0.3 verifies is not the one with every member.
        let mut of_sdk = header.clone();
        of_sdk["form"] = json!("non-empty");
        assert_eq!(headers(&both.json()), [header.clone(), header.clone(), of_sdk]);
        assert_eq!(status(&edge, &both.body).await, verified);
        let one = edge.ask(with(get(CARD), "a2a-version", "1.0")).await;
        assert_eq!(headers(&one.json()), [header]);
        assert_eq!(status(&edge, &one.body).await, verified);
        // It is signed once, and not again for each request.
        assert_eq!(edge.ask(unversioned(get(CARD))).await.body, both.body);
        assert_eq!(both.header("etag"), edge.ask(unversioned(get(CARD))).await.header("etag"));
        // Those of other systems have no place for signatures.
        let other = edge.get("/dialects/selectools/.well-known/agent.json").await;
        assert_eq!((other.status.as_u16(), other.json().get("signatures")), (200, None));
    }
}

#[tokio::test]
async fn each_version_is_verified_by_its_own_signature_alone() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let edge = Edge::new(Server::builder().agent(rich()).signing_keys(keys));
    let card = edge.ask(unversioned(get(CARD))).await.json();
    // A client of 1.0 reads the members of 1.0, one of 0.3 those of 0.3.
    let of_1_0 = edge.ask(with(get(CARD), "a2a-version", "1.0")).await.json();
    let of_0_3 = edge.ask(with(unversioned(get("/v1/card")), "a2a-version", "0.3")).await.json();
    let mut verified = Vec::new();
    for own in [&of_1_0, &of_0_3] {
        let mut own = own.clone();
        own["description"] = card["description"].clone();
        for (at, signature) in card["signatures"].as_array().unwrap().iter().enumerate() {
            own["signatures"] = json!([signature]);
            if status(&edge, own.to_string().as_bytes()).await.is_verified() {
                verified.push(at);
                own["name"] = json!("Other");
                assert_unverifiable(&status(&edge, own.to_string().as_bytes()).await, "the card was changed");
                own["name"] = card["name"].clone();
            }
        }
    }
    // The others are over forms that leave out empty members.
    let marked: Vec<bool> = headers(&card).iter().map(|header| header.get("form").is_some()).collect();
    assert_eq!((verified, marked), (vec![0, 3], vec![false, true, true, false, true]));
}

#[tokio::test]
async fn a_member_of_either_version_that_was_changed_or_added_is_noticed() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let edge = Edge::new(Server::builder().agent(rich()).tokens(tokens).signing_keys(keys));
    let card = edge.ask(unversioned(get(CARD))).await.json();
    assert!(status(&edge, card.to_string().as_bytes()).await.is_verified());
    let evil = json!("https://evil.example");
    for (place, value) in [
        ("/name", json!("Other")),
        ("/supportedInterfaces/0/url", evil.clone()),
        ("/url", evil.clone()),
        ("/additionalInterfaces/0/url", evil),
        ("/securityRequirements", json!([])),
        ("/securityRequirements/0/schemes", json!({})),
        ("/skills/0/description", json!("Something else")),
        ("/securitySchemes/bearer/httpAuthSecurityScheme/scheme", json!("Basic")),
    ] {
        let mut changed = card.clone();
        *changed.pointer_mut(place).unwrap_or_else(|| panic!("{place} {card:#}")) = value;
        assert!(!status(&edge, changed.to_string().as_bytes()).await.is_verified(), "{place}");
    }
    // Without the signature over the members of 1.0, nothing covers what a client uses.
    let mut cut = card.clone();
    let of_0_3 = headers(&card).iter().rposition(|header| header.get("form").is_none()).unwrap();
    cut["signatures"] = json!([card["signatures"][of_0_3]]);
    assert_unverifiable(&status(&edge, cut.to_string().as_bytes()).await, "covered by no valid signature");
    // Nor does one that is there for SDKs.
    cut["signatures"] = json!([card["signatures"][1]]);
    assert_eq!(headers(&cut)[0]["form"], "non-empty");
    assert_unverifiable(&status(&edge, cut.to_string().as_bytes()).await, "says nothing about empty members");
}

#[tokio::test]
async fn a_card_is_signed_under_the_name_that_a_gateway_gives_it() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let under = |url: &str| {
        let server = Server::builder().agent(echo()).allow_unauthenticated(true).public_url(url);
        Edge::new(server.signing_keys(keys.clone()))
    };
    let (inner, outer) = ("https://inner.example/a2a", "https://gateway.example/agents/one");
    let own = under(inner);
    let card = own.ask(unversioned(get(CARD))).await.text();
    // A gateway that writes its own name into the card of another.
    let rewritten = card.replace(inner, outer);
    assert!(rewritten.contains(outer));
    assert!(!status(&own, rewritten.as_bytes()).await.is_verified());
    // Here the name is a setting, and the card that is served is the one that was signed.
    let behind = under(outer);
    let served = behind.ask(unversioned(get(CARD))).await;
    assert!(served.text().contains(outer) && !served.text().contains(inner));
    assert!(status(&behind, &served.body).await.is_verified());
}

#[tokio::test]
async fn a_new_key_signs_within_a_running_server_and_the_old_one_stays_published() {
    let dir = tempfile::tempdir().unwrap();
    let folder = KeyFolder::at(dir.path());
    let keys = SigningKeys::open(dir.path()).unwrap();
    let edge = Edge::new(Server::builder().agent(echo()).signing_keys(keys.clone()));
    let unsigned = edge.get(CARD).await;
    assert_eq!(unsigned.json().get("signatures"), None);
    assert_eq!(edge.get(KEYS).await.json(), json!({"keys": []}));
    folder.make(Some("one"), KeyAlgorithm::Es256).unwrap();
    keys.reload().unwrap();
    let first = edge.get(CARD).await;
    assert_eq!(headers(&first.json())[0]["kid"], "one");
    assert_ne!(first.header("etag"), unsigned.header("etag"));
    folder.make(Some("two"), KeyAlgorithm::EdDsa).unwrap();
    keys.reload().unwrap();
    assert_eq!(headers(&edge.get(CARD).await.json())[0]["kid"], "one");
    folder.rotate(Some("two"), KeyAlgorithm::Es256).unwrap();
    keys.reload().unwrap();
    let second = edge.get(CARD).await;
    assert_eq!(headers(&second.json())[0]["kid"], "two");
    // Both are verified, until the old key is removed.
    assert!(status(&edge, &first.body).await.is_verified());
    assert!(status(&edge, &second.body).await.is_verified());
    folder.remove("one").unwrap();
    keys.reload().unwrap();
    assert_unverifiable(&status(&edge, &first.body).await, "its key \"one\" is not known");
    let set = edge.get(KEYS).await;
    assert_eq!(
        (set.header("content-type"), set.header("cache-control")),
        ("application/jwk-set+json", "public, max-age=300")
    );
}

/// The one message of an answer over gRPC.
fn message_of(answer: &Answer) -> Bytes {
    answer.body.slice(5..)
}

/// A card that came as protobuf, as it is in JSON.
fn as_json(card: &AgentCard, encode: fn(&AgentCard, &mut Vec<u8>)) -> Value {
    let mut text = Vec::new();
    encode(card, &mut text);
    let mut json: Value = serde_json::from_slice(&text).unwrap();
    let signatures = card.signatures.iter();
    json["signatures"] =
        signatures.map(|one| json!({"protected": one.protected, "signature": one.signature})).collect();
    json
}

#[tokio::test]
async fn extended_cards_are_signed_on_every_binding() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let edge = Edge::new(Server::builder().agent(rich()).signing_keys(keys));
    let rest = edge.get("/extendedAgentCard").await.json();
    let rpc = edge.ask(post("/", rpc_body("GetExtendedAgentCard", json!({})))).await.json()["result"].clone();
    let old = edge.old_rpc("agent/getAuthenticatedExtendedCard", json!({})).await.json()["result"].clone();
    let asked = grpc_request(&format!("{V1_0}/GetExtendedAgentCard"), &v1_0::GetExtendedAgentCardRequest::default());
    let read = read_card_1_0(message_of(&edge.ask(asked).await), &DecodeLimits::default()).unwrap();
    let grpc = as_json(&read, encode_card_1_0);
    let asked = unversioned(grpc_request(&format!("{V0_3}/GetAgentCard"), &v0_3::GetAgentCardRequest {}));
    let read = read_card_0_3(message_of(&edge.ask(asked).await), &DecodeLimits::default()).unwrap();
    let old_grpc = as_json(&read, encode_card_0_3);
    for card in [rest, rpc, old, grpc, old_grpc] {
        assert!(card["description"].as_str().unwrap().ends_with("and more"), "{card:#}");
        assert!(status(&edge, card.to_string().as_bytes()).await.is_verified(), "{card:#}");
    }
}

#[tokio::test]
async fn nothing_is_signed_or_published_without_being_asked_for() {
    let without = Edge::usual();
    assert_eq!(without.get(KEYS).await.status, 404);
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let off = Edge::new(Server::builder().agent(rich()).signing_keys(keys).sign_cards(false));
    assert_eq!(off.get(CARD).await.json().get("signatures"), None);
    assert_eq!(off.get("/extendedAgentCard").await.json().get("signatures"), None);
    assert_eq!(off.get(KEYS).await.json()["keys"].as_array().unwrap().len(), 1);
    // The card of one system is as it is there.
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let form = CardForm::Compat(switchboard::Dialect::Corvid);
    let edge = Edge::new(Server::builder().agent(echo()).card_form(form).signing_keys(keys));
    assert_eq!(edge.ask(unversioned(get(CARD))).await.json().get("signatures"), None);
}
