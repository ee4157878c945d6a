//! Every operation, over every binding and in every dialect, with each kind of credential in each state: the refusal is the same
//! whatever is wrong, nothing is stored and no agent runs; and with the right one, every operation goes through.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, Issuer, Server, SharedSecret, Skill, Tokens, Turn};
use switchboard_core::dialect::v1_0::proto::generated as wire;

use super::super::grpc_calls::say;
use crate::support::edge::{Answer, Edge, get, message, old_message, post, request, rpc_body, unversioned, with};
use crate::support::grpc::{V0_3, V1_0, grpc_request};
use crate::support::issuers::{Signer, hs256, now_s};

const TOKEN: &str = "a-token-of-alice-for-tests";
const SECRET: &str = "a-secret-that-apps-share";
const ISSUER: &str = "https://login.example";
const OWN: &str = "http://127.0.0.1:8080";

fn edge(signer: &Signer, runs: &Arc<AtomicUsize>) -> Edge {
    let runs = runs.clone();
    let agent = AgentBuilder::from_fn("Echo", move |turn: Turn| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(turn.answer(turn.text()).await?) }
    });
    let agent = agent.skill(Skill::new("echo", "Echo", "Repeats a text")).extended_card(|_| {});
    let keys = json!({"keys": [signer.jwk()]}).to_string();
    let issuer = Issuer::new(ISSUER, OWN).keys(keys).unwrap().tenants_claim("tenants");
    let tokens = Tokens::parse(&format!("{TOKEN} alice acme\n")).unwrap();
    Edge::new(Server::builder().agent(agent).tokens(tokens).shared_secret(SharedSecret::new(SECRET)).issuer(issuer))
}

type Asked = Request<Full<Bytes>>;

/// Each operation with its name. Those of 1.0 are made for a tenant, if one is given.
fn operations(tenant: Option<&str>) -> Vec<(String, Asked)> {
    let mut all = Vec::new();
    let mut add = |name: &str, asked: Asked| all.push((format!("{name} {}", asked.uri().path()), asked));
    let (path, field) = (tenant.map_or(String::new(), |tenant| format!("/{tenant}")), tenant.unwrap_or_default());
    let config = json!({"taskId": "t", "id": "c", "url": "https://hooks.example/"});
    for (method, params) in [
        ("SendMessage", message("hi")),
        ("SendStreamingMessage", message("hi")),
        ("GetTask", json!({"id": "t"})),
        ("ListTasks", json!({})),
        ("CancelTask", json!({"id": "t"})),
        ("SubscribeToTask", json!({"id": "t"})),
        ("CreateTaskPushNotificationConfig", config),
        ("GetTaskPushNotificationConfig", json!({"taskId": "t", "id": "c"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "t"})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": "t", "id": "c"})),
        ("GetExtendedAgentCard", json!({})),
    ] {
        let mut params = params;
        if tenant.is_some() {
            params["tenant"] = json!(field);
        }
        add(&format!("1.0 JSON-RPC {method}"), post("/", rpc_body(method, params)));
    }
    let hook = r#"{"url":"https://hooks.example/"}"#;
    for (method, place, body) in [
        ("POST", "/message:send", message("hi").to_string()),
        ("POST", "/message:stream", message("hi").to_string()),
        ("GET", "/tasks/t", String::new()),
        ("GET", "/tasks", String::new()),
        ("POST", "/tasks/t:cancel", String::new()),
        ("POST", "/tasks/t:subscribe", String::new()),
        ("POST", "/tasks/t/pushNotificationConfigs", hook.to_owned()),
        ("GET", "/tasks/t/pushNotificationConfigs/c", String::new()),
        ("GET", "/tasks/t/pushNotificationConfigs", String::new()),
        ("DELETE", "/tasks/t/pushNotificationConfigs/c", String::new()),
        ("GET", "/extendedAgentCard", String::new()),
    ] {
        let method: Method = method.parse().unwrap();
        let asked = with(request(method.clone(), &format!("{path}{place}"), body), "content-type", "application/json");
        add(&format!("1.0 HTTP {method}"), asked);
    }
    let mut sent = say("hi");
    sent.tenant = field.to_owned();
    let versioned = |asked: Asked| with(asked, "a2a-version", "1.0");
    for method in ["SendMessage", "SendStreamingMessage"] {
        add("1.0 gRPC", versioned(grpc_request(&format!("{V1_0}/{method}"), &sent)));
    }
    let listed = wire::ListTasksRequest { tenant: field.to_owned(), ..wire::ListTasksRequest::default() };
    add("1.0 gRPC", versioned(grpc_request(&format!("{V1_0}/ListTasks"), &listed)));
    if tenant.is_some() {
        return all;
    }
    for method in [
        "GetTask",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    ] {
        add("1.0 gRPC", versioned(grpc_request(&format!("{V1_0}/{method}"), &wire::GetTaskRequest::default())));
    }
    for method in [
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "CancelTask",
        "TaskSubscription",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfig",
        "DeleteTaskPushNotificationConfig",
        "GetAgentCard",
    ] {
        add("0.3 gRPC", grpc_request(&format!("{V0_3}/{method}"), &wire::GetTaskRequest::default()));
    }
    for (method, params) in [
        ("message/send", old_message("hi")),
        ("message/stream", old_message("hi")),
        ("tasks/get", json!({"id": "t"})),
        ("tasks/cancel", json!({"id": "t"})),
        ("tasks/resubscribe", json!({"id": "t"})),
        (
            "tasks/pushNotificationConfig/set",
            json!({"taskId": "t", "pushNotificationConfig": {"url": "https://h.example/"}}),
        ),
        ("tasks/pushNotificationConfig/get", json!({"id": "t"})),
        ("tasks/pushNotificationConfig/list", json!({"id": "t"})),
        ("tasks/pushNotificationConfig/delete", json!({"id": "t", "pushNotificationConfigId": "c"})),
        ("agent/getAuthenticatedExtendedCard", json!({})),
    ] {
        add(&format!("0.3 JSON-RPC {method}"), unversioned(post("/", rpc_body(method, params))));
    }
    for (method, place) in [
        ("POST", "/v1/message:send"),
        ("POST", "/v1/message:stream"),
        ("GET", "/v1/tasks/t"),
        ("POST", "/v1/tasks/t:cancel"),
        ("POST", "/v1/tasks/t:subscribe"),
        ("GET", "/v1/tasks/t/pushNotificationConfigs"),
        ("GET", "/v1/card"),
    ] {
        let method: Method = method.parse().unwrap();
        let asked = unversioned(request(method.clone(), place, "{}"));
        add(&format!("0.3 HTTP {method}"), with(asked, "content-type", "application/json"));
    }
    for (dialect, path, methods) in [
        ("agent-native", "/_agent-native/a2a", &["message/send", "message/stream", "tasks/get", "tasks/cancel"][..]),
        ("selectools", "/dialects/selectools/a2a", &["message/send", "tasks/get", "tasks/cancel"]),
        ("nexus", "/dialects/nexus/rpc", &["message/send", "tasks/get", "tasks/cancel", "tasks/send"]),
    ] {
        for method in methods {
            let mut params = old_message("hi");
            params["id"] = json!("t");
            add(&format!("{dialect} {method}"), unversioned(post(path, rpc_body(method, params))));
        }
    }
    add("corvid send", unversioned(post("/agents/echo/a2a/tasks/send", r#"{"message":"hi"}"#)));
    add("corvid get", unversioned(get("/agents/echo/a2a/tasks/t")));
    add("download", get("/tasks/t/artifacts/a"));
    add("metrics", get("/metrics"));
    all
}

/// How a call was answered, as far as it is about who calls.
fn outcome(answer: &Answer) -> &'static str {
    let is_grpc = answer.header("content-type").starts_with("application/grpc");
    match (is_grpc, answer.header("grpc-status"), answer.status.as_u16()) {
        (true, "16", 200) | (false, _, 401) => "unauthenticated",
        (true, "7", 200) | (false, _, 403) => "denied",
        (true, _, 200) | (false, ..) => "in",
        (true, ..) => "not gRPC",
    }
}

/// What is wrong with a credential, and the credential; none stands for no header.
fn bad_credentials(signer: &Signer) -> Vec<(&'static str, Option<String>)> {
    let stranger = Signer::new("key-1");
    let claims = |changes: Value| {
        let mut claims = json!({
            "iss": ISSUER, "aud": OWN, "sub": "alice", "tenants": ["acme"], "iat": now_s() - 900, "exp": now_s() + 900,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    let expired = json!({"exp": now_s() - 60});
    let elsewhere = json!({"aud": "https://other.example"});
    let mut bad = vec![
        ("nothing", None),
        ("an unknown token", Some("wrong-token-of-nobody".to_owned())),
        ("no JWT", Some("a.b.c".to_owned())),
        ("another secret", Some(hs256(&claims(json!({})), "another-secret-of-nobody"))),
        ("a stranger's key", Some(stranger.token(&claims(json!({}))))),
        ("another issuer", Some(signer.token(&claims(json!({"iss": "https://evil.example"}))))),
        ("no tenant", Some(signer.token(&claims(json!({"tenants": []}))))),
        ("a tenant that cannot be one", Some(signer.token(&claims(json!({"tenants": ["a/b"]}))))),
        ("an organization that cannot be one", Some(hs256(&claims(json!({"org_domain": "a/b"})), SECRET))),
    ];
    for (what, change) in [("expired", expired), ("for another server", elsewhere)] {
        bad.push((what, Some(hs256(&claims(change.clone()), SECRET))));
        bad.push((what, Some(signer.token(&claims(change)))));
    }
    bad
}

fn right_credentials(signer: &Signer) -> [(&'static str, String); 3] {
    let claims = json!({
        "iss": ISSUER, "aud": OWN, "sub": "alice", "tenants": ["acme"], "org_domain": "acme", "exp": now_s() + 900,
    });
    [("token", TOKEN.to_owned()), ("shared secret", hs256(&claims, SECRET)), ("issuer", signer.token(&claims))]
}

fn bearer(asked: Asked, token: &str) -> Asked {
    with(asked, "authorization", &format!("Bearer {token}"))
}

#[tokio::test(start_paused = true)]
async fn only_the_right_credential_comes_in_and_everything_else_is_refused_alike() {
    let (signer, runs) = (Signer::new("key-1"), Arc::default());
    let edge = edge(&signer, &runs);
    let operations = || operations(None).into_iter();
    assert!(operations().count() > 60);
    for (at, (name, _)) in operations().enumerate() {
        let mut answers = BTreeSet::new();
        for (what, credential) in bad_credentials(&signer) {
            let asked = operations().nth(at).unwrap().1;
            let asked = credential.iter().fold(asked, |asked, token| bearer(asked, token));
            let answer = edge.ask(asked).await;
            assert_eq!(outcome(&answer), "unauthenticated", "{name} with {what}: {}", answer.text());
            // The refusals of selectools are those of the original, which has none.
            let challenge = if name.starts_with("selectools") { "" } else { "Bearer realm=\"switchboard\"" };
            assert_eq!(answer.header("www-authenticate"), challenge, "{name} with {what}");
            answers.insert((answer.status.as_u16(), answer.body.clone(), answer.header("grpc-message").to_owned()));
        }
        assert_eq!(answers.len(), 1, "{name} tells what is wrong: {answers:?}");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0, "no agent has run");
    for (kind, token) in right_credentials(&signer) {
        let listed = edge.ask(bearer(get("/tasks"), &token)).await.json();
        assert_eq!(listed["totalSize"], 0, "nothing was stored for {kind}");
    }
    for (kind, token) in right_credentials(&signer) {
        for (name, asked) in operations() {
            let answer = edge.ask(bearer(asked, &token)).await;
            assert_eq!(outcome(&answer), "in", "{name} with {kind}: {}", answer.text());
        }
        // The same name by another issuer is another caller: nobody sees more than what was sent with this kind.
        let listed = edge.ask(bearer(get("/tasks"), &token)).await.json();
        let sends = operations().filter(|(name, _)| name.contains("end")).count();
        let count = usize::try_from(listed["totalSize"].as_u64().unwrap()).unwrap();
        assert!(count > 0 && count <= sends, "{kind}: {count}");
    }
    assert!(runs.load(Ordering::SeqCst) > 0);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_the_credential_does_not_grant_is_denied_everywhere() {
    let (signer, runs) = (Signer::new("key-1"), Arc::default());
    let edge = edge(&signer, &runs);
    for (kind, token) in right_credentials(&signer) {
        for (name, asked) in operations(Some("globex")) {
            let answer = edge.ask(bearer(asked, &token)).await;
            assert_eq!(outcome(&answer), "denied", "{name} with {kind}: {}", answer.text());
        }
        assert_eq!(runs.load(Ordering::SeqCst), 0, "no agent has run");
        assert_eq!(edge.ask(bearer(get("/tasks"), &token)).await.json()["totalSize"], 0);
    }
    for (kind, token) in right_credentials(&signer) {
        for (name, asked) in operations(Some("acme")) {
            let answer = edge.ask(bearer(asked, &token)).await;
            assert_eq!(outcome(&answer), "in", "{name} with {kind}: {}", answer.text());
        }
    }
}
