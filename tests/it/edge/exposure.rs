//! What a server that others can reach refuses. Each attack is also shown to succeed against an edge that is put together
//! without the stage which stops it.

use axum::Router;
use axum::extract::Request as AxumRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use serde_json::json;
use switchboard::call::BoxFuture;
use switchboard::outbound::{AddressPolicy, Client, RequestLimits};
use switchboard::{
    AgentBuilder, Authenticator, Identity, IdentityFromExtensions, ProtocolError, Server, ServerBuilder, Tokens,
};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use tower::ServiceExt;

use crate::support::edge::{Edge, echo, get, message, old_message, post, request, rpc_body, unversioned, with};
use crate::support::grpc::grpc_request;

const ALICE: &str = "a-token-of-alice-for-tests";

fn server() -> ServerBuilder {
    Server::builder().agent(echo())
}

/// Lets everybody in, by a function: what is left of an edge without its own checks.
pub(super) struct Naive(pub(super) fn(&Parts) -> Identity);

impl Authenticator for Naive {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Identity, ProtocolError>> {
        let identity = (self.0)(head);
        Box::pin(std::future::ready(Ok(identity)))
    }
}

fn everybody(_: &Parts) -> Identity {
    Identity::anonymous()
}

fn send() -> Request<http_body_util::Full<bytes::Bytes>> {
    post("/message:send", message("hello").to_string())
}

#[tokio::test(start_paused = true)]
async fn a_page_elsewhere_cannot_run_the_agent_of_an_open_server() {
    let beyond = || server().public_url("https://agents.example").allow_unauthenticated(true);
    let edge = Edge::new(beyond());
    let unchecked = Edge::new(beyond().authenticate(Naive(everybody)));
    // A page elsewhere, and a page whose own name was made to point here after it was read.
    let attacks = [
        with(with(send(), "host", "agents.example"), "origin", "https://evil.example"),
        with(with(send(), "host", "192.0.2.7:8080"), "origin", "http://localhost:3000"),
        with(with(send(), "host", "evil.example"), "origin", "http://evil.example"),
        with(send(), "host", "evil.example"),
    ];
    for (number, attack) in attacks.into_iter().enumerate() {
        assert_eq!(unchecked.ask(attack.clone()).await.status, 200, "attack {number} works without the check");
        assert_eq!(edge.ask(attack).await.gist(), "403 PERMISSION_DENIED", "attack {number}");
    }
    for (host, origin) in [("agents.example", ""), ("agents.example", "https://agents.example"), ("192.0.2.7", "")] {
        let own = with(with(send(), "host", host), "origin", origin);
        assert_eq!(edge.ask(own).await.status, 200, "{host} {origin}");
    }
    let named = Edge::new(beyond().allowed_hosts(["agents.lan"]));
    assert_eq!(named.ask(with(send(), "host", "agents.lan:8080")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn two_hosts_or_origins_are_refused_whoever_calls() {
    let tokens = Tokens::parse(&format!("{ALICE} alice")).unwrap();
    let edge = Edge::new(server().tokens(tokens));
    let by_alice = || with(get("/tasks"), "authorization", &format!("Bearer {ALICE}"));
    assert_eq!(edge.ask(with(by_alice(), "host", "anything")).await.status, 200);
    for name in ["host", "origin"] {
        let twice = with(with(by_alice(), name, "https://a.example"), name, "https://a.example");
        assert_eq!(edge.ask(twice).await.gist(), "403 PERMISSION_DENIED", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_calls_through_a_proxy_is_no_operator_of_an_open_server() {
    // What a proxy on this machine with default settings sends: its own name for this server, and nothing about its client.
    let proxied = || with(request(Method::POST, "/api/outbox:purge", r#"{"all":true}"#), "host", "127.0.0.1:8080");
    let proxied = || with(proxied(), "content-type", "application/json");
    let trusting = |head: &Parts| {
        let is_forwarded = ["forwarded", "x-forwarded-for", "via"].iter().any(|name| head.headers.contains_key(*name));
        Identity::new("here").operator(!is_forwarded)
    };
    let unchecked = Edge::new(server().host_check(true).authenticate(Naive(trusting)));
    assert_eq!(unchecked.ask(proxied()).await.status, 200, "works where the connection decides");
    let edge = Edge::new(server().host_check(true).operator_key("k-key-of-operators-for-tests"));
    assert_eq!(edge.ask(proxied()).await.gist(), "403 PERMISSION_DENIED");
    let by_page = with(proxied(), "origin", "http://localhost:3000");
    assert_eq!(edge.ask(by_page).await.gist(), "403 PERMISSION_DENIED");
}

#[tokio::test(start_paused = true)]
async fn a_header_from_outside_names_nobody() {
    const HEADERS: [&str; 6] =
        ["x-user-id", "x-forwarded-user", "x-remote-user", "remote-user", "x-ms-client-principal-name", "x_user_id"];
    let believing = |head: &Parts| {
        let named = HEADERS.iter().find_map(|name| head.headers.get(*name)?.to_str().ok());
        named.map_or_else(Identity::anonymous, Identity::new)
    };
    let edge = Edge::new(server().authenticate(Naive(believing)));
    // The same belief in a layer before the server, where nothing has been dropped yet.
    let layered = server().authenticate(IdentityFromExtensions).public_url("http://127.0.0.1:8080").build().unwrap();
    let layer = move |mut request: AxumRequest, next: Next| async move {
        let (parts, body) = request.into_parts();
        let identity = believing(&parts);
        request = AxumRequest::from_parts(parts, body);
        request.extensions_mut().insert(identity);
        next.run(request).await as Response
    };
    let unchecked: Router = Router::new().merge(layered.into_router().unwrap()).layer(from_fn(layer));
    for header in HEADERS {
        let as_admin = with(get("/tasks"), header, "admin");
        let seen = unchecked.clone().oneshot(as_admin.clone()).await.unwrap();
        assert_eq!(seen.status(), StatusCode::OK, "{header}");
        // A task of the admin's is there for whoever writes the header, and with the stage it is not.
        let sent = unchecked.clone().oneshot(with(send(), header, "admin")).await.unwrap();
        assert_eq!(sent.status(), StatusCode::OK);
        edge.ask(with(send(), header, "admin")).await;
        let listed = edge.ask(get("/tasks")).await.json();
        let anonymous = listed["totalSize"].as_u64().unwrap();
        assert_eq!(edge.ask(with(get("/tasks"), header, "admin")).await.json()["totalSize"], anonymous, "{header}");
        assert!(anonymous > 0, "it was sent by nobody: {header}");
    }
}

/// A message whose part says what it is under this name.
fn says(kind: &str) -> serde_json::Value {
    json!({"message": {"role": "user", "messageId": "m-1", "parts": [{kind: "text", "text": "hi"}]}})
}

/// Every way to ask for something, and what its refusal is in HTTP.
pub(super) fn every_operation() -> Vec<(&'static str, Request<http_body_util::Full<bytes::Bytes>>)> {
    let asked = wire::GetTaskRequest { id: "1".to_owned(), ..Default::default() };
    let grpc = grpc_request("/lf.a2a.v1.A2AService/GetTask", &asked);
    vec![
        ("HTTP+JSON", send()),
        ("HTTP+JSON read", get("/tasks")),
        ("HTTP+JSON 0.3", unversioned(get("/v1/tasks/1"))),
        ("JSON-RPC", post("/", rpc_body("SendMessage", message("hi")))),
        ("JSON-RPC 0.3", unversioned(post("/", rpc_body("message/send", old_message("hi"))))),
        ("extended card", get("/extendedAgentCard")),
        ("agent-native", unversioned(post("/_agent-native/a2a", rpc_body("message/send", says("type"))))),
        ("selectools", unversioned(post("/dialects/selectools", rpc_body("message/send", says("kind"))))),
        ("nexus", unversioned(post("/dialects/nexus/rpc", rpc_body("tasks/get", json!({"id": "1"}))))),
        ("corvid", unversioned(post("/a2a/tasks/send", json!({"params": {"message": "hi"}}).to_string()))),
        ("download", get("/tasks/1/artifacts/a")),
        ("outbox", get("/api/outbox")),
        ("metrics", get("/metrics")),
        ("gRPC", grpc),
    ]
}

#[tokio::test(start_paused = true)]
async fn in_production_nobody_calls_a_server_that_knows_no_callers() {
    let closed = Edge::new(server().production(true).public_url("https://agents.example"));
    let here = Edge::new(server().production(true).host_check(true).operator_key("k-key-of-operators-for-tests"));
    for edge in [closed, here] {
        for (name, request) in every_operation() {
            let answer = edge.ask(with(request, "host", "localhost")).await;
            match name {
                "gRPC" => assert_eq!((answer.status.as_u16(), answer.header("grpc-status")), (200, "14"), "{name}"),
                name => assert_eq!(answer.status, 503, "{name}: {}", answer.text()),
            }
            if name.starts_with("JSON-RPC") || name == "agent-native" {
                assert!(answer.json()["error"]["code"].is_i64() && answer.json()["jsonrpc"] == "2.0", "{name}");
            }
        }
        for path in ["/.well-known/agent-card.json", "/.well-known/agent.json", "/healthz"] {
            assert_eq!(edge.ask(with(get(path), "host", "localhost")).await.status, 200, "{path}");
        }
        assert_eq!(edge.engine.store_stats().commits, 0, "nothing was stored");
    }
    // The same calls go through where somebody has said that everybody may call, or who may.
    let meant = Edge::new(server().production(true).allow_unauthenticated(true));
    assert_eq!(meant.ask(send()).await.status, 200);
    let tokens = Tokens::parse(&format!("{ALICE} alice")).unwrap();
    let known = Edge::new(server().production(true).tokens(tokens));
    assert_eq!(known.ask(send()).await.status, 401);
    assert_eq!(known.ask(with(send(), "authorization", &format!("Bearer {ALICE}"))).await.status, 200);
    // In development it is one warning.
    assert_eq!(Edge::usual().ask(send()).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn in_production_cards_name_no_foreign_address_without_encryption() {
    let build = |url: &str, allowed: bool| {
        let echo = AgentBuilder::from_fn("Echo", |_| async { Ok(()) });
        let server = Server::builder().agent(echo).production(true).allow_unauthenticated(true);
        server.public_url(url).allow_plain_http(allowed).build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert!(build("http://agents.example", false).unwrap_err().contains("is not encrypted"));
    for (url, allowed) in
        [("http://agents.example", true), ("https://agents.example", false), ("http://[::1]:1", false)]
    {
        assert_eq!(build(url, allowed), Ok(()), "{url}");
    }
}

#[tokio::test]
async fn listed_peers_use_the_paths_of_their_dialect_without_a_credential() {
    let tokens = Tokens::parse(&format!("{ALICE} alice")).unwrap();
    for (peers, expected) in [
        (vec!["nexus=127.0.0.1"], [200, 401, 401, 401]),
        (vec!["corvid=127.0.0.0/8"], [401, 200, 401, 401]),
        (vec!["nexus=10.0.0.0/8", "corvid=::1"], [401, 401, 401, 401]),
        (vec![], [401, 401, 401, 401]),
    ] {
        let agent = echo().compat(|compat| compat.default_project = true);
        let server = Server::builder().agent(agent).tokens(tokens.clone()).open_peers(peers.clone());
        let bound = server.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let url = bound.url().to_owned();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(bound.run_until(async { drop(stopped.await) }, std::time::Duration::from_secs(1)));
        let client = Client::builder().policy(AddressPolicy::any()).build().unwrap();
        let nexus = json!({"id": "mine", "message": {"role": "user", "parts": [{"type": "text", "data": "hi"}]}});
        let nexus = rpc_body("message/send", nexus);
        let corvid = json!({"params": {"message": "hi"}}).to_string();
        let mut statuses = Vec::new();
        for (path, body, token) in [
            ("/dialects/nexus/rpc", &nexus, ""),
            ("/a2a/tasks/send", &corvid, ""),
            // Shared paths want a credential, and who shows one is checked by it.
            ("/rpc", &nexus, ""),
            ("/dialects/nexus/rpc", &nexus, "Bearer wrong"),
        ] {
            let mut request = Request::post(format!("{url}{path}")).header("content-type", "application/json");
            if !token.is_empty() {
                request = request.header("authorization", token);
            }
            let request = request.body(bytes::Bytes::from(body.clone())).unwrap();
            let answer = client.send(request, &RequestLimits::default()).await.unwrap();
            statuses.push(answer.status().as_u16());
        }
        assert_eq!(statuses, expected, "{peers:?}");
        stop.send(()).unwrap();
        serving.await.unwrap();
    }
}
