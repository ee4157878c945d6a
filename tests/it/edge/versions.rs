//! Which protocol version a request is in. One without a version means 0.3; on paths and for methods of 1.0 that is refused,
//! and the refusal says how to mend the request.

use expect_test::expect;
use http::Request;
use http_body_util::Full;
use switchboard::{Dialect, Server};

use crate::support::edge::{Edge, echo, get, post, rpc_body, with};

fn versioned(request: Request<Full<bytes::Bytes>>, version: Option<&str>) -> Request<Full<bytes::Bytes>> {
    let mut request = with(request, "a2a-version", "");
    if let Some(version) = version {
        request.headers_mut().insert("a2a-version", version.parse().unwrap());
    }
    request
}

#[tokio::test(start_paused = true)]
async fn the_header_decides_on_both_bindings() {
    let edge = Edge::usual();
    for (version, served) in [
        (Some("1.0"), true),
        (Some("1.0.1"), true),
        (Some("v1.0"), true),
        (Some(" 1.0 "), true),
        (None, false),
        (Some(""), false),
        (Some("0.3"), false),
        (Some("0.3.0"), false),
        (Some("1"), false),
        (Some("1.1"), false),
        (Some("99.0"), false),
        (Some("1.0.x"), false),
        (Some("-1.0"), false),
        (Some("one"), false),
        (Some("1.0, 0.3"), false),
    ] {
        let rest = edge.ask(versioned(get("/tasks"), version)).await;
        assert_eq!(rest.gist(), if served { "200" } else { "400 VERSION_NOT_SUPPORTED" }, "{version:?}");
        let rpc = edge.ask(versioned(post("/", rpc_body("ListTasks", serde_json::json!({}))), version)).await;
        assert_eq!(rpc.gist(), if served { "200" } else { "200 VERSION_NOT_SUPPORTED" }, "{version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_query_decides_where_there_is_no_header() {
    let edge = Edge::usual();
    let list = || rpc_body("ListTasks", serde_json::json!({}));
    for (query, version, served) in [
        ("?A2A-Version=1.0", None, true),
        ("?A2A-Version=1.0", Some(""), true),
        ("?A2A-Version=0.3", None, false),
        ("?A2A-Version=", None, false),
        ("?A2A-Version=0.3", Some("1.0"), true),
        ("?A2A-Version=1.0", Some("0.3"), false),
        ("?x=1&A2A%2DVersion=1%2E0", None, true),
    ] {
        let rest = edge.ask(versioned(get(&format!("/tasks{query}")), version)).await;
        assert_eq!(rest.status == 200, served, "{query} {version:?}");
        let rpc = edge.ask(versioned(post(&format!("/{query}"), list()), version)).await;
        assert_eq!(rpc.json().get("result").is_some(), served, "{query} {version:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_refusal_names_the_fix() {
    let edge = Edge::usual();
    expect![[r#"
        400 application/a2a+json
        {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"This path is of A2A 1.0: send header A2A-Version: 1.0 (a request without it means 0.3, whose paths begin with /v1)","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VERSION_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{"requested":"0.3","supported":"1.0,0.3"}}]}}
    "#]].assert_eq(&edge.ask(versioned(get("/tasks"), None)).await.picture());
    let rpc = edge.ask(versioned(post("/", rpc_body("ListTasks", serde_json::json!({}))), Some("99.0"))).await;
    expect![[r#"
        200 application/json
        {"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"Protocol version 99.0 is not offered here (served: 1.0, 0.3); send header A2A-Version: 1.0 (a request without it means 0.3)","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VERSION_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{"requested":"99.0","supported":"1.0,0.3"}}]}}
    "#]].assert_eq(&rpc.picture());
}

#[tokio::test(start_paused = true)]
async fn a_closed_network_may_say_what_no_version_means() {
    let edge = Edge::new(Server::builder().agent(echo()).default_version(Dialect::V1_0));
    assert_eq!(edge.ask(versioned(get("/tasks"), None)).await.gist(), "200");
    assert_eq!(edge.ask(versioned(get("/tasks"), Some(""))).await.gist(), "200");
    assert_eq!(edge.ask(versioned(get("/tasks"), Some("0.3"))).await.gist(), "400 VERSION_NOT_SUPPORTED");
}

#[tokio::test(start_paused = true)]
async fn cards_and_the_operators_places_need_no_version() {
    let edge = Edge::usual().ready().await;
    for path in ["/.well-known/agent-card.json", "/healthz", "/readyz", "/metrics", "/"] {
        assert_eq!(edge.ask(versioned(get(path), None)).await.gist(), "200", "{path}");
    }
}
