//! Which verbs each place takes, at the root, under an agent's name, and behind a tenant.

use expect_test::expect;
use http::Method;
use switchboard::Server;

use crate::support::edge::{Edge, echo, message, post, request, rpc_body};

const VERBS: [Method; 6] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD];

/// The places that are under a tenant, too.
const REST: [&str; 9] = [
    "/message:send",
    "/message:stream",
    "/tasks",
    "/tasks/ID",
    "/tasks/ID:cancel",
    "/tasks/ID:subscribe",
    "/tasks/ID/pushNotificationConfigs",
    "/tasks/ID/pushNotificationConfigs/c",
    "/extendedAgentCard",
];

/// The places of every agent.
const AGENT: [&str; 4] = ["/", "/rpc", "/a2a", "/.well-known/agent-card.json"];

/// The places of the server.
const SERVER: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

fn server() -> Edge {
    Edge::new(Server::builder().agent(echo()).agent(echo().slug("other")).tenants(["acme", "globex"]))
}

/// What each verb gets at a place: the status, the reason of a refusal, and what would have been allowed.
async fn verbs(edge: &Edge, path: &str) -> String {
    // A fresh task each time, since some verbs change it.
    let tenant = if path.contains("globex") { "/globex" } else { "" };
    let agent = if path.contains("/agents/other") { "/agents/other" } else { "" };
    let mut shown = String::new();
    for verb in VERBS {
        let asked = edge.post(&format!("{agent}{tenant}/message:send"), message("ask which?").to_string()).await;
        let id = asked.json()["task"]["id"].as_str().unwrap().to_owned();
        let config = r#"{"id":"c","url":"https://hooks.example/"}"#;
        let configs = format!("{agent}{tenant}/tasks/{id}/pushNotificationConfigs");
        assert_eq!(edge.post(&configs, config).await.gist(), "200");
        let body = if path.ends_with("pushNotificationConfigs") || path.ends_with("pushNotificationConfigs/") {
            config.to_owned()
        } else if path.contains("message:") {
            message("hello").to_string()
        } else if path.contains("tasks") {
            String::new()
        } else {
            rpc_body("ListTasks", serde_json::json!({}))
        };
        let path = path.replace("ID", &id);
        let request = if verb == Method::POST { post(&path, body) } else { request(verb.clone(), &path, "") };
        // A subscription to a paused task would never end by itself.
        let answer = if path.ends_with(":subscribe") || path.ends_with(":subscribe/") {
            let response = edge.open(request).await;
            format!("{} {}", response.status().as_u16(), response.headers()["content-type"].to_str().unwrap())
        } else {
            let answer = edge.ask(request).await;
            let allowed =
                answer.headers.get("allow").map_or(String::new(), |allow| format!(" ({})", allow.to_str().unwrap()));
            format!("{}{allowed}", answer.gist())
        };
        shown.push_str(&format!("  {verb}: {answer}\n"));
    }
    shown
}

async fn table(edge: &Edge, prefix: &str, places: &[&str], suffix: &str) -> String {
    let mut shown = String::new();
    for place in places {
        shown.push_str(&format!("{place}\n{}", verbs(edge, &format!("{prefix}{place}{suffix}")).await));
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn every_place_takes_its_verbs_and_no_others() {
    let edge = server().ready().await;
    let places: Vec<&str> = AGENT.into_iter().chain(SERVER).chain(REST).collect();
    expect![[r#"
        /
          GET: 200
          POST: 200
          PUT: 405 INVALID_REQUEST (POST)
          PATCH: 405 INVALID_REQUEST (POST)
          DELETE: 405 INVALID_REQUEST (POST)
          HEAD: 200
        /rpc
          GET: 405 INVALID_REQUEST (POST)
          POST: 200
          PUT: 405 INVALID_REQUEST (POST)
          PATCH: 405 INVALID_REQUEST (POST)
          DELETE: 405 INVALID_REQUEST (POST)
          HEAD: 405 INVALID_REQUEST (POST)
        /a2a
          GET: 405 INVALID_REQUEST (POST)
          POST: 200
          PUT: 405 INVALID_REQUEST (POST)
          PATCH: 405 INVALID_REQUEST (POST)
          DELETE: 405 INVALID_REQUEST (POST)
          HEAD: 405 INVALID_REQUEST (POST)
        /.well-known/agent-card.json
          GET: 200
          POST: 405 INVALID_REQUEST (GET)
          PUT: 405 INVALID_REQUEST (GET)
          PATCH: 405 INVALID_REQUEST (GET)
          DELETE: 405 INVALID_REQUEST (GET)
          HEAD: 200
        /healthz
          GET: 200
          POST: 405 INVALID_REQUEST (GET)
          PUT: 405 INVALID_REQUEST (GET)
          PATCH: 405 INVALID_REQUEST (GET)
          DELETE: 405 INVALID_REQUEST (GET)
          HEAD: 200
        /readyz
          GET: 200
          POST: 405 INVALID_REQUEST (GET)
          PUT: 405 INVALID_REQUEST (GET)
          PATCH: 405 INVALID_REQUEST (GET)
          DELETE: 405 INVALID_REQUEST (GET)
          HEAD: 200
        /metrics
          GET: 200
          POST: 405 INVALID_REQUEST (GET)
          PUT: 405 INVALID_REQUEST (GET)
          PATCH: 405 INVALID_REQUEST (GET)
          DELETE: 405 INVALID_REQUEST (GET)
          HEAD: 200
        /message:send
          GET: 405 METHOD_NOT_FOUND (POST)
          POST: 200
          PUT: 405 METHOD_NOT_FOUND (POST)
          PATCH: 405 METHOD_NOT_FOUND (POST)
          DELETE: 405 METHOD_NOT_FOUND (POST)
          HEAD: 405 METHOD_NOT_FOUND (POST)
        /message:stream
          GET: 405 METHOD_NOT_FOUND (POST)
          POST: 200
          PUT: 405 METHOD_NOT_FOUND (POST)
          PATCH: 405 METHOD_NOT_FOUND (POST)
          DELETE: 405 METHOD_NOT_FOUND (POST)
          HEAD: 405 METHOD_NOT_FOUND (POST)
        /tasks
          GET: 200
          POST: 405 METHOD_NOT_FOUND (GET)
          PUT: 405 METHOD_NOT_FOUND (GET)
          PATCH: 405 METHOD_NOT_FOUND (GET)
          DELETE: 405 METHOD_NOT_FOUND (GET)
          HEAD: 405 METHOD_NOT_FOUND (GET)
        /tasks/ID
          GET: 200
          POST: 405 METHOD_NOT_FOUND (GET)
          PUT: 405 METHOD_NOT_FOUND (GET)
          PATCH: 405 METHOD_NOT_FOUND (GET)
          DELETE: 405 METHOD_NOT_FOUND (GET)
          HEAD: 405 METHOD_NOT_FOUND (GET)
        /tasks/ID:cancel
          GET: 405 METHOD_NOT_FOUND (POST)
          POST: 200
          PUT: 405 METHOD_NOT_FOUND (POST)
          PATCH: 405 METHOD_NOT_FOUND (POST)
          DELETE: 405 METHOD_NOT_FOUND (POST)
          HEAD: 405 METHOD_NOT_FOUND (POST)
        /tasks/ID:subscribe
          GET: 200 text/event-stream
          POST: 200 text/event-stream
          PUT: 405 application/a2a+json
          PATCH: 405 application/a2a+json
          DELETE: 405 application/a2a+json
          HEAD: 405 application/a2a+json
        /tasks/ID/pushNotificationConfigs
          GET: 200
          POST: 200
          PUT: 405 METHOD_NOT_FOUND (GET, POST)
          PATCH: 405 METHOD_NOT_FOUND (GET, POST)
          DELETE: 405 METHOD_NOT_FOUND (GET, POST)
          HEAD: 405 METHOD_NOT_FOUND (GET, POST)
        /tasks/ID/pushNotificationConfigs/c
          GET: 200
          POST: 405 METHOD_NOT_FOUND (GET, DELETE)
          PUT: 405 METHOD_NOT_FOUND (GET, DELETE)
          PATCH: 405 METHOD_NOT_FOUND (GET, DELETE)
          DELETE: 200
          HEAD: 405 METHOD_NOT_FOUND (GET, DELETE)
        /extendedAgentCard
          GET: 400 UNSUPPORTED_OPERATION
          POST: 405 METHOD_NOT_FOUND (GET)
          PUT: 405 METHOD_NOT_FOUND (GET)
          PATCH: 405 METHOD_NOT_FOUND (GET)
          DELETE: 405 METHOD_NOT_FOUND (GET)
          HEAD: 405 METHOD_NOT_FOUND (GET)
    "#]]
    .assert_eq(&table(&edge, "", &places, "").await);
}

#[tokio::test(start_paused = true)]
async fn a_slash_at_the_end_changes_nothing() {
    let edge = server();
    for places in [&AGENT[1..], &SERVER, &REST] {
        assert_eq!(table(&edge, "", places, "/").await, table(&edge, "", places, "").await);
    }
}

#[tokio::test(start_paused = true)]
async fn every_agent_and_tenant_has_the_same_places() {
    let edge = server();
    let at_root = table(&edge, "", &REST, "").await;
    for prefix in ["/agents/echo", "/agents/other", "/globex", "/agents/other/globex"] {
        assert_eq!(table(&edge, prefix, &REST, "").await, at_root, "{prefix}");
    }
    let at_root = table(&edge, "", &AGENT[1..], "").await;
    for prefix in ["/agents/echo", "/agents/other"] {
        assert_eq!(table(&edge, prefix, &AGENT[1..], "").await, at_root, "{prefix}");
        for root in [prefix.to_owned(), format!("{prefix}/")] {
            assert_eq!(edge.post(&root, rpc_body("ListTasks", serde_json::json!({}))).await.gist(), "200", "{root}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_nowhere_is_not_found() {
    let edge = server();
    for path in [
        "/nothing",
        "/tasks/1/nothing",
        "/tasks/1/pushNotificationConfigs/2/3",
        "/message",
        "/message:nothing",
        "/agents",
        "/agents/",
        "/agents/nobody",
        "/agents/nobody/message:send",
        "/agents/echo/agents/echo/tasks",
        "/acme",
        "/acme/",
        "/acme/globex/tasks",
        "/acme/healthz",
        "/agents/echo/healthz",
        "/v1/tasks",
        "/v1/message:send",
        "/healthz/more",
        "//",
        "//tasks",
        "/.well-known/",
    ] {
        for verb in [Method::GET, Method::POST] {
            let answer = edge.ask(request(verb, path, "{}")).await;
            assert_eq!(answer.gist(), "404 METHOD_NOT_FOUND", "{path}");
        }
    }
    expect![[r#"
        404 application/a2a+json
        {"error":{"code":404,"status":"UNIMPLEMENTED","message":"Method not found: /nothing","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"METHOD_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"method":"/nothing"}}]}}
    "#]]
    .assert_eq(&edge.get("/nothing").await.picture());
}

#[tokio::test(start_paused = true)]
async fn a_refused_verb_is_told_what_is_allowed() {
    let edge = server();
    expect![[r#"
        405 application/a2a+json
        {"error":{"code":405,"status":"UNIMPLEMENTED","message":"Method not found: PUT /tasks/1","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"METHOD_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"method":"PUT /tasks/1"}}]}}
    "#]].assert_eq(&edge.ask(request(Method::PUT, "/tasks/1", "")).await.picture());
    expect![[r#"
        405 application/a2a+json
        {"error":{"code":405,"status":"INVALID_ARGUMENT","message":"Invalid request: this path takes GET","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_REQUEST","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&edge.ask(request(Method::PUT, "/healthz", "")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_server_do_not_share_tasks() {
    let edge = server();
    let id = edge.task("hello").await;
    assert_eq!(edge.get(&format!("/tasks/{id}")).await.gist(), "200");
    assert_eq!(edge.get(&format!("/agents/echo/tasks/{id}")).await.gist(), "200", "the first agent is the default one");
    assert_eq!(edge.get(&format!("/agents/other/tasks/{id}")).await.gist(), "404 TASK_NOT_FOUND");
}

#[tokio::test(start_paused = true)]
async fn a_public_url_with_a_path_is_understood_with_and_without_it() {
    let edge = Edge::new(
        Server::builder().agent(echo()).allow_unauthenticated(true).public_url("https://agents.example/base/"),
    );
    for path in
        ["/base/tasks", "/tasks", "/base/agents/echo/tasks", "/base/healthz", "/base/.well-known/agent-card.json"]
    {
        assert_eq!(edge.get(path).await.gist(), "200", "{path}");
    }
    assert_eq!(edge.post("/base", rpc_body("ListTasks", serde_json::json!({}))).await.gist(), "200");
    assert_eq!(edge.get("/based/tasks").await.gist(), "403 PERMISSION_DENIED", "that is a tenant, and not one of ours");
    assert_eq!(edge.get("/base/base/tasks").await.gist(), "403 PERMISSION_DENIED");
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_agent_is_answered_with_the_one_that_was_meant() {
    let edge = Edge::usual();
    let told = async |path: &str| edge.get(path).await.json()["error"]["message"].as_str().unwrap().to_owned();
    for typed in ["ech", "Echo", "echos"] {
        let expected = format!("Method not found: /agents/{typed}/rpc; did you mean /agents/echo?");
        assert_eq!(told(&format!("/agents/{typed}/rpc")).await, expected);
    }
    assert_eq!(told("/agents/weather/rpc").await, "Method not found: /agents/weather/rpc");
    let long = format!("/agents/{}/rpc", "echo".repeat(1_000));
    assert!(told(&long).await.len() < 300);
}
