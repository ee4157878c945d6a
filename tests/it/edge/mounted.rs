//! The server inside an axum app: nested under a path, merged into the app, and with a missing or wrong public URL.

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use switchboard::{ServeErrorKind, Server};
use tower::ServiceExt;

use crate::support::callers::soon;
use crate::support::edge::echo;

const ORIGIN: &str = "https://agents.example";

fn agents(public_url: &str) -> Router {
    Server::builder()
        .agent(echo())
        .allow_unauthenticated(true)
        .public_url(public_url)
        .build()
        .unwrap()
        .into_router()
        .unwrap()
}

async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = soon(app.clone().oneshot(request)).await.unwrap();
    let status = response.status();
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into()))
}

fn get_from(path: &str) -> Request<Body> {
    Request::get(path).header("host", "agents.example").body(Body::empty()).unwrap()
}

fn say_to(path: &str) -> Request<Body> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}"#;
    Request::post(path)
        .header("host", "agents.example")
        .header("content-type", "application/json")
        .header("a2a-version", "1.0")
        .body(Body::from(body))
        .unwrap()
}

/// Goes by the card, as a client does: fetches it below `base` and sends to the first address it names.
async fn talks_by_its_card(app: &Router, base: &str) {
    let (status, card) = ask(app, get_from(&format!("{base}/.well-known/agent-card.json"))).await;
    assert_eq!(status, StatusCode::OK, "{base}: {card}");
    let url = card["supportedInterfaces"][0]["url"].as_str().unwrap();
    let path = url.strip_prefix(ORIGIN).unwrap();
    assert_eq!(path, base, "the card names the mount");
    let (status, reply) = ask(app, say_to(if path.is_empty() { "/" } else { path })).await;
    assert_eq!((status, &reply["result"]["task"]["artifacts"][0]["parts"][0]["text"]), (StatusCode::OK, &"hi".into()));
}

#[tokio::test]
async fn a_nested_server_answers_below_its_path() {
    for base in ["/a2a", "/rpc", "/api/agents/v2"] {
        let app = Router::new().route("/", get(|| async { "my app" })).nest(base, agents(&format!("{ORIGIN}{base}")));
        talks_by_its_card(&app, base).await;
        assert_eq!(ask(&app, get_from("/")).await.1, "my app");
        // The path of the mount is taken off once: below `/a2a` there is another `/a2a`, and corvid's paths begin with it.
        for path in ["/a2a", "/rpc", "/agents/echo", "/agents/echo/a2a"] {
            assert_eq!(ask(&app, say_to(&format!("{base}{path}"))).await.0, StatusCode::OK, "{base}{path}");
        }
        let (status, missing) = ask(&app, get_from(&format!("{base}/a2a/tasks/none"))).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(missing["error"].is_string(), "in corvid's own words: {missing}");
    }
}

#[tokio::test]
async fn a_nested_service_and_a_router_in_a_router_are_found_as_well() {
    let service = Server::builder()
        .agent(echo())
        .allow_unauthenticated(true)
        .public_url(format!("{ORIGIN}/x/y"))
        .build()
        .unwrap();
    let inner: Router = Router::new().nest_service("/y", service.into_service().unwrap());
    talks_by_its_card(&Router::new().nest("/x", inner), "/x/y").await;
}

#[tokio::test]
async fn a_merged_server_answers_what_the_app_does_not() {
    let app = Router::new().route("/app", get(|| async { "my app" })).merge(agents(ORIGIN));
    talks_by_its_card(&app, "").await;
    assert_eq!(ask(&app, get_from("/app")).await.1, "my app");
}

#[tokio::test]
async fn an_app_with_a_state_of_its_own_can_mount_the_server() {
    let server = Server::builder()
        .agent(echo())
        .allow_unauthenticated(true)
        .public_url(format!("{ORIGIN}/a2a"))
        .build()
        .unwrap();
    let page = get(|state: axum::extract::State<String>| async move { state.0 });
    let app: Router<String> = Router::new().route("/", page).nest("/a2a", server.into_router().unwrap());
    let app = app.with_state("my app".to_owned());
    talks_by_its_card(&app, "/a2a").await;
    assert_eq!(ask(&app, get_from("/")).await.1, "my app");
}

#[tokio::test]
async fn a_mounted_server_must_be_told_its_address() {
    let refused = Server::builder().agent(echo()).build().unwrap().into_router::<()>().unwrap_err();
    assert_eq!(refused.kind(), ServeErrorKind::Configuration);
    assert!(refused.to_string().contains("ServerBuilder::public_url"), "{refused}");
}
