//! The login of an embedding application decides who calls: by an authenticator that is asked, or by an identity that a layer has
//! put into the request.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axum::Router;
use axum::body::Body;
use axum::extract::Request as AxumRequest;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::HeaderValue;
use http::request::Parts;
use http_body_util::BodyExt;
use switchboard::call::BoxFuture;
use switchboard::model::SecurityScheme;
use switchboard::{Authenticator, Identity, IdentityFromExtensions, ProtocolError, Server, Tokens};
use tower::ServiceExt;

use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::grpc_request;
use switchboard_core::dialect::v1_0::proto::generated as wire;

/// Knows a user by a header, and counts how often it is asked.
#[derive(Clone, Default)]
struct Users(Arc<AtomicUsize>);

impl Authenticator for Users {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Identity, ProtocolError>> {
        self.0.fetch_add(1, Relaxed);
        Box::pin(async move {
            tokio::task::yield_now().await;
            let user = head.headers.get("x-session").and_then(|user| user.to_str().ok()).unwrap_or_default();
            match user {
                "" => Err(ProtocolError::Unauthenticated { reason: "log in first".to_owned() }),
                "banned" => Err(ProtocolError::PermissionDenied { reason: "you are banned".to_owned() }),
                "nameless" => Ok(Identity::new("")),
                "slow" => pending().await,
                "ops" => Ok(Identity::new("ops").operator(true)),
                user => Ok(Identity::new(user).tenants(["acme", "globex"])),
            }
        })
    }
}

fn edge(users: &Users) -> Edge {
    Edge::new(Server::builder().agent(echo()).authenticate(users.clone()))
}

#[tokio::test(start_paused = true)]
async fn the_application_says_whose_tasks_a_caller_sees() {
    let edge = edge(&Users::default());
    let sent = edge.ask(with(post("/message:send", message("hi").to_string()), "x-session", "alice")).await.json();
    let path = format!("/tasks/{}", sent["task"]["id"].as_str().unwrap());
    for (user, path, expected) in [
        ("alice", path.as_str(), "200"),
        ("bob", &path, "404 TASK_NOT_FOUND"),
        ("alice", &format!("/acme{path}"), "200"),
        ("alice", &format!("/globex{path}"), "404 TASK_NOT_FOUND"),
        ("alice", &format!("/initech{path}"), "403 PERMISSION_DENIED"),
    ] {
        assert_eq!(edge.ask(with(get(path), "x-session", user)).await.gist(), expected, "{user} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_asked_about_once_and_cards_never() {
    let users = Users::default();
    let edge = edge(&users);
    for request in [
        get("/tasks"),
        post("/", rpc_body("SendMessage", message("hi"))),
        unversioned(post("/rpc", rpc_body("message/send", old_message("hi")))),
        unversioned(post("/dialects/nexus", rpc_body("message/send", old_message("hi")))),
        unversioned(post("/a2a/tasks/send", "{}")),
        grpc_request("/lf.a2a.v1.A2AService/ListTasks", &wire::ListTasksRequest::default()),
        get("/tasks/1/artifacts/1"),
        get("/api/outbox"),
        get("/metrics"),
    ] {
        let path = request.uri().clone();
        let before = users.0.load(Relaxed);
        edge.ask(with(request, "x-session", "alice")).await;
        assert_eq!(users.0.load(Relaxed) - before, 1, "{path}");
    }
    let before = users.0.load(Relaxed);
    for path in ["/.well-known/agent-card.json", "/healthz", "/readyz", "/", "/nothing"] {
        edge.get(path).await;
    }
    assert_eq!(users.0.load(Relaxed), before);
}

#[tokio::test(start_paused = true)]
async fn what_the_application_refuses_has_the_form_of_the_binding() {
    let edge = edge(&Users::default());
    for (user, expected) in [
        ("", "401 UNAUTHENTICATED"),
        ("banned", "403 PERMISSION_DENIED"),
        ("nameless", "401 UNAUTHENTICATED"),
        ("slow", "503 UNAVAILABLE"),
    ] {
        let rest = edge.ask(with(get("/tasks"), "x-session", user)).await;
        assert_eq!(rest.gist(), expected, "{user}");
        let rpc = edge.ask(with(post("/", rpc_body("SendMessage", message("hi"))), "x-session", user)).await;
        assert_eq!((rpc.gist().as_str(), &rpc.json()["id"]), (expected, &serde_json::Value::Null), "{user}");
    }
    let grpc = grpc_request("/lf.a2a.v1.A2AService/ListTasks", &wire::ListTasksRequest::default());
    assert_eq!(edge.ask(grpc).await.header("grpc-status"), "16");
}

/// Refuses every caller and names the way to log in.
struct Desk(&'static str);

impl Authenticator for Desk {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Identity, ProtocolError>> {
        Box::pin(async { Err(ProtocolError::Unauthenticated { reason: "log in first".to_owned() }) })
    }

    fn challenge(&self) -> HeaderValue {
        HeaderValue::from_static(self.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_401_names_the_login_of_the_application_and_bearer_if_it_says_nothing() {
    let requests = || {
        let grpc = grpc_request("/lf.a2a.v1.A2AService/ListTasks", &wire::ListTasksRequest::default());
        [get("/tasks"), post("/", rpc_body("SendMessage", message("hi"))), get("/metrics"), get("/api/outbox"), grpc]
    };
    let silent = edge(&Users::default());
    let basic = Edge::new(Server::builder().agent(echo()).authenticate(Desk("Basic realm=\"shop\"")));
    for (edge, expected) in [(silent, "Bearer realm=\"switchboard\""), (basic, "Basic realm=\"shop\"")] {
        for request in requests() {
            let path = request.uri().clone();
            assert_eq!(edge.ask(request).await.header("www-authenticate"), expected, "{path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_who_the_application_says_is_one() {
    let edge = edge(&Users::default());
    for (user, expected) in [("ops", "200"), ("alice", "403 PERMISSION_DENIED"), ("", "401 UNAUTHENTICATED")] {
        assert_eq!(edge.ask(with(get("/api/outbox"), "x-session", user)).await.gist(), expected, "{user}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_identity_that_a_layer_has_found_is_taken_and_without_one_nobody_comes_in() {
    async fn log_in(mut request: AxumRequest, next: Next) -> Response {
        if request.headers().contains_key("x-session") {
            request.extensions_mut().insert(Identity::new("alice"));
        }
        next.run(request).await
    }
    let server = Server::builder().agent(echo()).authenticate(IdentityFromExtensions);
    let server = server.public_url("https://agents.example/a2a").build().unwrap();
    let app: Router = Router::new().nest("/a2a", server.into_router().unwrap()).layer(from_fn(log_in));
    for (user, expected) in [(Some("alice"), 200), (None, 401)] {
        let mut request = http::Request::get("/a2a/tasks").header("a2a-version", "1.0");
        if let Some(user) = user {
            request = request.header("x-session", user);
        }
        let response = soon(app.clone().oneshot(request.body(Body::empty()).unwrap())).await.unwrap();
        assert_eq!(response.status(), expected, "{user:?}");
        soon(response.into_body().collect()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn cards_say_what_the_application_takes() {
    let cookie =
        SecurityScheme::ApiKey { description: None, location: "cookie".to_owned(), name: "session".to_owned() };
    let server = Server::builder().agent(echo()).authenticate(Users::default()).security_scheme("session", cookie);
    let card = Edge::new(server).get("/.well-known/agent-card.json").await.json();
    assert_eq!(card["securityRequirements"], serde_json::json!([{"schemes": {"session": {}}}]));
    let silent = edge(&Users::default()).get("/.well-known/agent-card.json").await.json();
    assert_eq!(silent.get("securityRequirements"), None);
}

#[tokio::test]
async fn tokens_and_a_login_of_ones_own_exclude_each_other() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice").unwrap();
    let both = Server::builder().agent(echo()).authenticate(IdentityFromExtensions).tokens(tokens).build();
    let error = both.unwrap_err().to_string();
    assert!(error.starts_with("both an authenticator and tokens"), "{error}");
}
