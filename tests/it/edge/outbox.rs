//! `/api/outbox`: which callers may use it, what it shows, what can be done, and what is refused.

use expect_test::expect;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use switchboard::{Limits, Server, ServerBuilder, Tokens};

use crate::support::bodies::Untouched;
use crate::support::edge::{Edge, echo, get, message, post, request, with};

const ALICE: &str = "a-token-of-alice-for-tests";
const OPS: &str = "o-token-of-ops-for-tests";

fn open_server() -> ServerBuilder {
    Server::builder().agent(echo())
}

fn server_with_tokens() -> ServerBuilder {
    open_server().tokens(Tokens::parse(&format!("{ALICE} alice acme\n{OPS} ops +operator\n")).unwrap())
}

/// The key of operators of a server without tokens.
const KEY: &str = "k-key-of-operators-for-tests";

fn server_with_key() -> ServerBuilder {
    open_server().host_check(true).operator_key(KEY)
}

fn here<B>(request: Request<B>) -> Request<B> {
    with(request, "host", "localhost:8080")
}

/// A request of an operator on this machine.
fn by_operator<B>(request: Request<B>) -> Request<B> {
    with(here(request), "authorization", &format!("Bearer {KEY}"))
}

/// A server for this machine alone, with so many dead letters: nobody listens where their webhooks lead, and one attempt is all.
async fn with_dead_letters(count: usize) -> Edge {
    let limits = Limits { delivery_failures_max: 1, ..Limits::default() };
    let edge = Edge::new(server_with_key().outbound_allow(["127.0.0.1"]).engine_limits(limits));
    for number in 0..count {
        let mut send = message(&format!("text {number}"));
        send["configuration"] = json!({"taskPushNotificationConfig": {
            "id": "c", "url": format!("http://127.0.0.1:{}/path?key=s3cret", 2 + number),
            "token": "s3cret", "authentication": {"scheme": "Bearer", "credentials": "s3cret"},
        }});
        send["message"]["messageId"] = json!(format!("m-{number}"));
        edge.ask(here(post("/message:send", send.to_string()))).await;
    }
    loop {
        if dead(&edge).await.len() == count {
            return edge;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

async fn dead(edge: &Edge) -> Vec<Value> {
    let page = edge.ask(by_operator(get("/api/outbox?state=dead"))).await.json();
    page["deliveries"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn only_operators_are_let_in() {
    let public = || open_server().host_check(true).allow_unauthenticated(true).public_url("https://agents.example/a2a");
    for (name, builder, headers, expected) in [
        ("the holder of the key", server_with_key(), vec![("authorization", KEY)], "200"),
        // A proxy on this machine that adds no headers looks like a user of this machine, and so does a page of a local server.
        ("this machine", server_with_key(), vec![], "403 PERMISSION_DENIED"),
        ("this machine, without a key", open_server().host_check(true), vec![], "403 PERMISSION_DENIED"),
        ("a local page", server_with_key(), vec![("origin", "http://localhost:3000")], "403 PERMISSION_DENIED"),
        ("another key", server_with_key(), vec![("authorization", ALICE)], "403 PERMISSION_DENIED"),
        (
            "another name",
            server_with_key(),
            vec![("host", "evil.example"), ("authorization", KEY)],
            "403 PERMISSION_DENIED",
        ),
        (
            "another page",
            server_with_key(),
            vec![("origin", "https://evil.example"), ("authorization", KEY)],
            "403 PERMISSION_DENIED",
        ),
        (
            "a key where there are tokens",
            server_with_tokens().operator_key(KEY),
            vec![("authorization", KEY)],
            "401 UNAUTHENTICATED",
        ),
        ("the world", open_server(), vec![], "403 PERMISSION_DENIED"),
        ("a public server on loopback", public(), vec![], "403 PERMISSION_DENIED"),
        ("nobody", server_with_tokens(), vec![], "401 UNAUTHENTICATED"),
        ("nobody here", server_with_tokens().host_check(true), vec![], "401 UNAUTHENTICATED"),
        ("alice", server_with_tokens(), vec![("authorization", ALICE)], "403 PERMISSION_DENIED"),
        ("alice here", server_with_tokens().host_check(true), vec![("authorization", ALICE)], "403 PERMISSION_DENIED"),
        ("an operator", server_with_tokens(), vec![("authorization", OPS)], "200"),
    ] {
        let edge = Edge::new(builder);
        let mut outcomes = Vec::new();
        for (method, path, body) in [
            (Method::GET, "/api/outbox", ""),
            (Method::GET, "/api/outbox/endpoints", ""),
            (Method::POST, "/api/outbox:redrive", r#"{"all":true}"#),
            (Method::POST, "/api/outbox:purge", r#"{"all":true}"#),
        ] {
            let mut asked = request(method, path, body);
            if !headers.iter().any(|(name, _)| *name == "host") {
                asked = here(asked);
            }
            for (name, value) in &headers {
                let value = if *name == "authorization" { format!("Bearer {value}") } else { (*value).to_owned() };
                asked = with(asked, name, &value);
            }
            outcomes.push(edge.ask(asked).await.gist());
        }
        assert_eq!(outcomes, [expected; 4], "{name}");
    }
    // Nothing of what others send is read.
    let edge = Edge::new(server_with_tokens());
    let asked = Request::post("/api/outbox:purge").header("authorization", format!("Bearer {ALICE}"));
    assert_eq!(edge.open(asked.body(Untouched).unwrap()).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_shown_without_its_secrets() {
    let edge = with_dead_letters(1).await;
    let list = edge.ask(by_operator(get("/api/outbox"))).await;
    let id = list.json()["deliveries"][0]["id"].as_str().unwrap().to_owned();
    let show = edge.ask(by_operator(get(&format!("/api/outbox/{id}")))).await;
    expect![[r#"
        200 application/json
        {"agent":"echo","configId":"c","createdAt":"<time>","deliveredSeq":0,"endpoint":"http://127.0.0.1:2","failures":1,"id":"1","lastAttemptAt":"<time>","lastError":"no connection to 127.0.0.1:2: Connection refused (os error 111)","newestSeq":3,"next":{"deliveryId":"<id 1>:c:1","kind":"task","seq":1},"nextAttemptAt":null,"principal":"","state":"dead","taskId":"<id 1>","tenant":""}
    "#]]
    .assert_eq(&show.picture());
    for text in [list.text(), show.text()] {
        assert!(!text.contains("s3cret") && !text.contains("/path"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_paged_and_filtered() {
    let edge = with_dead_letters(5).await;
    let mut found = Vec::new();
    let mut token = String::new();
    loop {
        let page =
            edge.ask(by_operator(get(&format!("/api/outbox?state=dead&pageSize=2&pageToken={token}")))).await.json();
        let page_ids = page["deliveries"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
        found.push(page_ids.collect::<Vec<_>>());
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found, [vec!["1", "2"], vec!["3", "4"], vec!["5"]]);
    let one = edge.ask(by_operator(get("/api/outbox?endpoint=http%3A%2F%2F127.0.0.1%3A4"))).await.json();
    assert_eq!(one["deliveries"].as_array().unwrap().len(), 1);
    assert_eq!(one["deliveries"][0]["id"], "3");
    for state in ["waiting", "under-way"] {
        let none = edge.ask(by_operator(get(&format!("/api/outbox?state={state}")))).await.json();
        assert_eq!(none["deliveries"], json!([]), "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn dead_letters_are_redriven_and_dropped() {
    let edge = with_dead_letters(4).await;
    let change = async |path: &str, body: &str| edge.ask(by_operator(post(path, body.to_owned()))).await;
    assert_eq!(change("/api/outbox/1:purge", "").await.json(), json!({"changed": 1}));
    assert_eq!(change("/api/outbox/1:purge", "").await.gist(), "404 INVALID_PARAMS");
    let one = change("/api/outbox:purge", r#"{"endpoint":"http://127.0.0.1:3"}"#).await.json();
    assert_eq!(one, json!({"changed": 1, "nextPageToken": ""}));
    assert_eq!(dead(&edge).await.len(), 2);
    assert_eq!(change("/api/outbox/3:redrive", "").await.json(), json!({"changed": 1}));
    assert_eq!(change("/api/outbox:redrive", r#"{"all":true}"#).await.status, StatusCode::OK);
    // They lead where they led before.
    while dead(&edge).await.len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(edge.metric("switchboard_deliveries_redriven_total").await >= 2);
    assert_eq!(edge.metric("switchboard_deliveries_purged_total").await, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_named() {
    let edge = Edge::new(server_with_key());
    let mut shown = String::new();
    for (method, path, body) in [
        ("GET", "/api/outbox?state=lost", ""),
        ("GET", "/api/outbox?pageSize=101", ""),
        ("GET", "/api/outbox?pageToken=x", ""),
        ("GET", "/api/outbox?endpoint=hooks", ""),
        ("GET", "/api/outbox?limit=1", ""),
        ("GET", "/api/outbox/x", ""),
        ("POST", "/api/outbox", ""),
        ("GET", "/api/outbox:purge", ""),
        ("POST", "/api/outbox/9:redrive", ""),
        ("POST", "/api/outbox:purge", ""),
        ("POST", "/api/outbox:purge", "[]"),
        ("POST", "/api/outbox:purge", "{}"),
        ("POST", "/api/outbox:purge", r#"{"all":false}"#),
        ("POST", "/api/outbox:purge", r#"{"all":true,"endpoint":"https://hooks.example"}"#),
        ("POST", "/api/outbox:purge", r#"{"everything":true}"#),
        ("GET", "/api", ""),
        ("GET", "/api/other", ""),
    ] {
        let asked = with(by_operator(request(method.parse().unwrap(), path, body)), "content-type", "application/json");
        let answer = edge.ask(asked).await;
        shown.push_str(&format!("{method} {path} {body}: {} {}\n", answer.gist(), answer.json()["error"]["message"]));
    }
    expect![[r#"
        GET /api/outbox?state=lost : 400 INVALID_PARAMS "Invalid parameters: state: must be dead, waiting, under-way or all"
        GET /api/outbox?pageSize=101 : 400 INVALID_PARAMS "Invalid parameters: pageSize: must be a number from 1 to 100"
        GET /api/outbox?pageToken=x : 400 INVALID_PARAMS "Invalid parameters: pageToken: is not a token this server gave out"
        GET /api/outbox?endpoint=hooks : 400 INVALID_PARAMS "Invalid parameters: endpoint: must be scheme, host and port, as in https://hooks.example:443"
        GET /api/outbox?limit=1 : 400 INVALID_PARAMS "Invalid parameters: limit: is not known here; expected state, endpoint, pageSize or pageToken"
        GET /api/outbox/x : 404 INVALID_PARAMS "Invalid parameters: id: \"x\" is no delivery that waits or was given up on"
        POST /api/outbox : 405 INVALID_REQUEST "Invalid request: this path takes GET"
        GET /api/outbox:purge : 405 INVALID_REQUEST "Invalid request: this path takes POST"
        POST /api/outbox/9:redrive : 404 INVALID_PARAMS "Invalid parameters: id: \"9\" is no delivery that waits or was given up on"
        POST /api/outbox:purge : 400 PARSE_ERROR "Invalid JSON payload: the body is not JSON: EOF while parsing a value at line 1 column 0"
        POST /api/outbox:purge []: 400 INVALID_REQUEST "Invalid request: the body must be a JSON object"
        POST /api/outbox:purge {}: 400 INVALID_PARAMS "Invalid parameters: endpoint: say either endpoint or \"all\": true"
        POST /api/outbox:purge {"all":false}: 400 INVALID_PARAMS "Invalid parameters: endpoint: say either endpoint or \"all\": true"
        POST /api/outbox:purge {"all":true,"endpoint":"https://hooks.example"}: 400 INVALID_PARAMS "Invalid parameters: endpoint: say either endpoint or \"all\": true"
        POST /api/outbox:purge {"everything":true}: 400 INVALID_PARAMS "Invalid parameters: everything: is not known here"
        GET /api : 404 METHOD_NOT_FOUND "Method not found: /api"
        GET /api/other : 404 METHOD_NOT_FOUND "Method not found: /api/other"
    "#]].assert_eq(&shown);
    let form = with(by_operator(request(Method::POST, "/api/outbox:purge", "all=true")), "content-type", "text/plain");
    assert_eq!(edge.ask(form).await.gist(), "400 CONTENT_TYPE_NOT_SUPPORTED");
}

#[tokio::test(start_paused = true)]
async fn where_webhooks_go_is_counted_by_name_for_operators_alone() {
    let edge = Edge::new(server_with_tokens());
    let seen_by = async |token: &str| {
        let asked = with(get("/metrics"), "authorization", &format!("Bearer {token}"));
        edge.ask(asked).await.text().contains("switchboard_delivery_endpoint_up")
    };
    assert!(seen_by(OPS).await);
    assert!(!seen_by(ALICE).await);
}
