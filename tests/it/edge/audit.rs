//! The audit log: which requests are in it, what an entry says, and that a flood of refusals is bounded.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use switchboard::{
    AuditLevel, Issuer, KeyAlgorithm, KeyFolder, Rules, Server, ServerBuilder, SharedSecret, SigningKeys, Tls, Tokens,
};
use switchboard_core::model::Timestamp;
use switchboard_engine::memory::{ManualClock, MemoryStore};
use switchboard_engine::ports::{AuditLog, Store};

use super::grpc_calls::say;
use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, get, message, post, with};
use crate::support::grpc::{V1_0, grpc_request};

const ALICE: &str = "a-token-of-alice-for-tests";
const OPS: &str = "o-token-of-ops-for-tests";

/// A server whose store the test can look into.
fn server(level: AuditLevel) -> (Edge, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let tokens = Tokens::parse(&format!("{ALICE} alice acme\n{OPS} ops +operator\n")).unwrap();
    let builder: ServerBuilder = Server::builder().agent(echo()).tokens(tokens).audit(level);
    (Edge::new(builder.store(store.clone() as Arc<dyn Store>)), store)
}

/// The entries, without what differs between runs.
async fn entries(store: &MemoryStore) -> Vec<Value> {
    let page = AuditLog::page(store, 0, 1000).await.unwrap();
    let mut position = page.anchor;
    let mut entries = Vec::new();
    for entry in &page.entries {
        position = position.follow(&page.chain, entry).unwrap();
        let mut value: Value = serde_json::from_str(&entry.record).unwrap();
        for member in ["chain", "no", "at"] {
            assert!(value.as_object_mut().unwrap().remove(member).is_some(), "{member}");
        }
        entries.push(value);
    }
    entries
}

#[tokio::test(start_paused = true)]
async fn refusals_are_in_the_log_and_what_was_answered_is_not() {
    let (edge, store) = server(AuditLevel::Default);
    let send = || post("/message:send", message("hello").to_string());
    let bearer = |request, token: &str| with(request, "authorization", &format!("Bearer {token}"));
    assert_eq!(edge.ask(bearer(send(), ALICE)).await.gist(), "200");
    assert_eq!(edge.ask(bearer(get("/tasks/unknown"), ALICE)).await.gist(), "404 TASK_NOT_FOUND");
    assert_eq!(entries(&store).await, [] as [Value; 0]);

    assert_eq!(edge.ask(bearer(send(), "wrong-token-of-nobody")).await.gist(), "401 UNAUTHENTICATED");
    assert_eq!(edge.ask(bearer(get("/api/outbox"), ALICE)).await.gist(), "403 PERMISSION_DENIED");
    assert_eq!(edge.ask(bearer(post("/rpc", "{}".to_owned()), "wrong-token-of-nobody")).await.status, 401);
    let expected: Vec<Value> = [
        r#"{"event":"refusal","decision":"refused","operation":"unknown","agent":"echo","reason":"UNAUTHENTICATED"}"#,
        r#"{"event":"refusal","decision":"refused","principal":"alice","operation":"Outbox","reason":"PERMISSION_DENIED"}"#,
        r#"{"event":"refusal","decision":"refused","operation":"unknown","agent":"echo","reason":"UNAUTHENTICATED"}"#,
    ]
    .iter()
    .map(|line| serde_json::from_str(line).unwrap())
    .collect();
    assert_eq!(entries(&store).await, expected);
    let text = format!("{:?}", entries(&store).await);
    assert!(!text.contains("token"), "no credential is in the log: {text}");
}

#[tokio::test(start_paused = true)]
async fn what_a_rule_has_refused_is_named_on_every_binding() {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let tokens = Tokens::parse(&format!("{ALICE} alice acme")).unwrap();
    let builder = Server::builder().agent(echo()).tokens(tokens).rules(Rules::parse("allow * read *").unwrap());
    let edge = Edge::new(builder.store(store.clone() as Arc<dyn Store>));
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "CancelTask", "params": {"id": "t"}});
    for ask in [
        post("/message:stream", message("hello").to_string()),
        post("/rpc", rpc.to_string()),
        with(grpc_request(&format!("{V1_0}/SendMessage"), &say("hello")), "a2a-version", "1.0"),
    ] {
        edge.ask(with(ask, "authorization", &format!("Bearer {ALICE}"))).await;
    }
    let expected = ["SendStreamingMessage", "CancelTask", "SendMessage"].map(|operation| {
        json!({
            "event": "refusal", "decision": "refused", "tenant": "acme", "principal": "alice",
            "operation": operation, "agent": "echo", "reason": "PERMISSION_DENIED",
        })
    });
    assert_eq!(entries(&store).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_refusals_is_summed_up() {
    let (edge, store) = server(AuditLevel::Default);
    for _ in 0..200 {
        edge.get("/tasks").await;
    }
    assert_eq!(entries(&store).await.len(), 60);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let all = entries(&store).await;
    assert_eq!(all.len(), 61);
    let summed = r#"{"event":"refusals-summed","decision":"refused","reason":"UNAUTHENTICATED","count":140}"#;
    assert_eq!(all[60], serde_json::from_str::<Value>(summed).unwrap());
    // What is left over when the server stops is summed up then.
    for _ in 0..61 {
        edge.get("/tasks").await;
    }
    edge.engine.shutdown(Duration::ZERO).await;
    let all = entries(&store).await;
    assert_eq!((all.len(), all[121]["count"].as_u64()), (122, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn accepted_messages_are_in_the_log_if_asked_for() {
    for (level, expected) in [(AuditLevel::Off, 0), (AuditLevel::Default, 1), (AuditLevel::All, 2)] {
        let (edge, store) = server(level);
        let send = post("/message:send", message("s3cret words").to_string());
        let sent = edge.ask(with(send, "authorization", &format!("Bearer {ALICE}"))).await.json();
        edge.get("/tasks").await;
        let all = entries(&store).await;
        assert_eq!(all.len(), expected, "{level:?}");
        if level == AuditLevel::All {
            let [event, tenant, principal, operation, agent, task] =
                ["event", "tenant", "principal", "operation", "agent", "task"].map(|member| all[0][member].as_str());
            let known = [event, tenant, principal, operation, agent].map(Option::unwrap);
            assert_eq!(known, ["send", "acme", "alice", "SendMessage", "echo"]);
            assert_eq!(task, sent["task"]["id"].as_str());
            assert!(!format!("{all:?}").contains("s3cret"), "nothing of what was said is in the log");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_operators_do_is_in_the_log() {
    let (edge, store) = server(AuditLevel::Default);
    let purge = post("/api/outbox:purge", r#"{"all":true}"#.to_owned());
    assert_eq!(edge.ask(with(purge, "authorization", &format!("Bearer {OPS}"))).await.gist(), "200");
    let expected = r#"{"event":"operator","decision":"allowed","principal":"ops","operation":"outbox purge","onBehalfOf":"all","count":0}"#;
    assert_eq!(entries(&store).await, [serde_json::from_str::<Value>(expected).unwrap()]);
}

#[tokio::test]
async fn tokens_that_are_read_again_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.txt");
    std::fs::write(&file, format!("{ALICE} alice")).unwrap();
    let tokens = Tokens::from_file(&file).unwrap();
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let builder = Server::builder().agent(echo()).tokens(tokens).store(store.clone() as Arc<dyn Store>);
    let edge = Edge::new(builder);
    std::fs::write(&file, format!("{ALICE} alice\n{OPS} ops")).unwrap();
    edge.handle.reload_files().await;
    std::fs::write(&file, "short alice").unwrap();
    edge.handle.reload_files().await;
    let expected = [
        r#"{"event":"credentials","decision":"allowed","operation":"tokens reload","count":2}"#,
        r#"{"event":"credentials","decision":"failed","operation":"tokens reload","reason":"line 1: the token is shorter than 16 characters; use a long random one"}"#,
    ];
    assert_eq!(entries(&store).await, expected.map(|line| serde_json::from_str::<Value>(line).unwrap()));
}

#[tokio::test]
async fn rules_and_signing_keys_that_are_read_again_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (file, keys) = (folder.path().join("rules.txt"), KeyFolder::at(folder.path().join("keys")));
    std::fs::write(&file, "allow * * *").unwrap();
    keys.make(None, KeyAlgorithm::Es256).unwrap();
    let (rules, signing) = (Rules::from_file(&file).unwrap(), SigningKeys::open(folder.path().join("keys")).unwrap());
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let builder = Server::builder().agent(echo()).rules(rules).signing_keys(signing);
    let edge = Edge::new(builder.store(store.clone() as Arc<dyn Store>));
    std::fs::write(&file, "allow * send *\ndeny * * *").unwrap();
    edge.handle.reload_files().await;
    std::fs::write(&file, "permit * * *").unwrap();
    keys.make(None, KeyAlgorithm::Es256).unwrap();
    edge.handle.reload_files().await;
    let told = entries(&store).await;
    let told: Vec<_> = told.iter().map(|entry| (&entry["operation"], &entry["decision"], &entry["count"])).collect();
    let (rules, keys) = (json!("rules reload"), json!("signing keys reload"));
    let (allowed, failed) = (json!("allowed"), json!("failed"));
    let (one, two, none) = (json!(1), json!(2), Value::Null);
    let (first, second) =
        ([(&rules, &allowed, &two), (&keys, &allowed, &one)], [(&rules, &failed, &none), (&keys, &allowed, &two)]);
    assert_eq!(told, [first, second].concat());
}

#[tokio::test]
async fn certificates_secrets_and_keys_of_providers_that_are_read_again_are_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let [cert, key, orgs, keys] = ["cert.pem", "key.pem", "orgs.txt", "keys.json"].map(|name| folder.path().join(name));
    std::fs::write(&cert, include_str!("../../certificates/first.cert.pem")).unwrap();
    std::fs::write(&key, include_str!("../../certificates/first.key.pem")).unwrap();
    std::fs::write(&orgs, "acme.example a-secret-of-acme-alone").unwrap();
    let jwk = r#"{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    std::fs::write(&keys, format!("{{\"keys\":[{jwk}]}}")).unwrap();
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let builder = Server::builder()
        .agent(echo())
        .tls(Tls::from_files(&cert, &key).unwrap())
        .shared_secret(SharedSecret::default().with_orgs_of(&orgs).unwrap())
        .issuer(Issuer::new("https://login.example", "agents").keys_in_file(&keys).unwrap())
        .public_url("https://agents.example")
        .store(store.clone() as Arc<dyn Store>);
    let server = builder.build().unwrap();
    let handle = server.handle();
    let _service = server.into_service().unwrap();
    handle.reload_files().await;
    std::fs::write(&cert, "no certificate").unwrap();
    std::fs::write(&orgs, "acme.example").unwrap();
    std::fs::write(&keys, "{}").unwrap();
    handle.reload_files().await;
    let told = entries(&store).await;
    let member = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let told: Vec<_> = told.iter().map(|entry| (member(entry, "operation"), member(entry, "decision"))).collect();
    let of = |decision: &str| {
        ["secrets of organizations reload", "keys of an issuer reload", "certificate reload"]
            .map(|operation| (operation.to_owned(), decision.to_owned()))
    };
    assert_eq!(told, [of("allowed"), of("failed")].concat());
    let reasons: Vec<Value> = entries(&store).await.into_iter().skip(3).map(|entry| entry["reason"].clone()).collect();
    assert_eq!(reasons[0], json!("line 1: expected DOMAIN SECRET"));
    handle.shutdown(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_ended_with_its_credential_is_in_the_log_on_every_binding() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens.txt");
    std::fs::write(&file, format!("{ALICE} alice acme\n{OPS} ops")).unwrap();
    let tokens = Tokens::from_file(&file).unwrap();
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let edge = Edge::new(Server::builder().agent(echo()).tokens(tokens.clone()).store(store.clone() as Arc<dyn Store>));
    let asks = [
        post("/message:stream", message("wait").to_string()),
        with(grpc_request(&format!("{V1_0}/SendStreamingMessage"), &say("wait")), "a2a-version", "1.0"),
    ];
    let mut bodies = Vec::new();
    for ask in asks {
        let mut body = edge.open(with(ask, "authorization", &format!("Bearer {ALICE}"))).await.into_body();
        soon(body.frame()).await.unwrap().unwrap();
        bodies.push(body);
    }
    std::fs::write(&file, format!("{OPS} ops")).unwrap();
    tokens.reload().await.unwrap();
    for body in bodies {
        soon(body.collect()).await.unwrap();
    }
    let expected = r#"{"event":"refusal","decision":"refused","tenant":"acme","principal":"alice","operation":"SendStreamingMessage","agent":"echo","reason":"UNAUTHENTICATED"}"#;
    let expected: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(entries(&store).await, [expected.clone(), expected]);
}

#[tokio::test(start_paused = true)]
async fn the_refusals_of_a_server_in_production_that_knows_no_callers_are_in_the_log() {
    let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp::from_ms(0))), 100));
    let builder = Server::builder().agent(echo()).production(true).public_url("https://agents.example");
    let edge = Edge::new(builder.store(store.clone() as Arc<dyn Store>));
    assert_eq!(edge.ask(post("/message:send", message("hello").to_string())).await.status, 503);
    let expected =
        r#"{"event":"refusal","decision":"refused","operation":"unknown","agent":"echo","reason":"UNAVAILABLE"}"#;
    assert_eq!(entries(&store).await, [serde_json::from_str::<Value>(expected).unwrap()]);
}
