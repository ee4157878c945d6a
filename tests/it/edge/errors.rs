//! Refusals as they go over the wire: one of each kind, whole, on both bindings.

use expect_test::expect;
use serde_json::{Value, json};
use switchboard::{Server, ServerBuilder};

use crate::support::edge::{Edge, echo, get, message, post, redacted, rpc_body};

/// The same refusal over HTTP+JSON and over JSON-RPC.
async fn both(edge: &Edge, rest: http::Request<http_body_util::Full<bytes::Bytes>>, method: &str, params: Value) -> String {
    let rest = edge.ask(rest).await;
    let rpc = edge.ask(post("/", rpc_body(method, params))).await;
    let (over_rest, over_rpc) = (redacted(&rest.text()), redacted(&rpc.text()));
    format!("{} {over_rest}\n{} {over_rpc}\n", rest.status.as_u16(), rpc.status.as_u16())
}

fn builder() -> ServerBuilder {
    Server::builder().agent(echo())
}

#[tokio::test(start_paused = true)]
async fn task_not_found() {
    let edge = Edge::new(builder());
    expect![[r#""#]].assert_eq(&both(&edge, get("/tasks/t-9"), "GetTask", json!({"id": "t-9"})).await);
}

#[tokio::test(start_paused = true)]
async fn task_not_cancelable() {
    let edge = Edge::new(builder());
    let id = edge.task("hello").await;
    let cancel = post(&format!("/tasks/{id}:cancel"), "");
    expect![[r#""#]].assert_eq(&both(&edge, cancel, "CancelTask", json!({"id": id})).await);
}

#[tokio::test(start_paused = true)]
async fn push_notification_not_supported() {
    let edge = Edge::new(Server::builder().agent(echo().push_notifications(false)));
    let list = get("/tasks/t/pushNotificationConfigs");
    expect![[r#""#]].assert_eq(&both(&edge, list, "ListTaskPushNotificationConfigs", json!({"taskId": "t"})).await);
}

#[tokio::test(start_paused = true)]
async fn unsupported_operation() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false)));
    let stream = post("/message:stream", message("hello").to_string());
    expect![[r#""#]].assert_eq(&both(&edge, stream, "SendStreamingMessage", message("hello")).await);
}

#[tokio::test(start_paused = true)]
async fn content_type_not_supported() {
    let edge = Edge::new(builder());
    let mut params = message("hello");
    params["message"]["parts"][0]["mediaType"] = "text/html".into();
    let send = post("/message:send", params.to_string());
    expect![[r#""#]].assert_eq(&both(&edge, send, "SendMessage", params).await);
}

#[tokio::test(start_paused = true)]
async fn extension_support_required() {
    let edge = Edge::new(Server::builder().agent(echo().extension("urn:must", "", true)));
    let send = post("/message:send", message("hello").to_string());
    expect![[r#""#]].assert_eq(&both(&edge, send, "SendMessage", message("hello")).await);
}

#[tokio::test(start_paused = true)]
async fn extended_agent_card_not_configured() {
    let agent = echo().extended_card_for_anyone().card(|card| card.capabilities.extended_agent_card = Some(true));
    let edge = Edge::new(Server::builder().agent(agent));
    expect![[r#""#]].assert_eq(&both(&edge, get("/extendedAgentCard"), "GetExtendedAgentCard", json!({})).await);
}

#[tokio::test(start_paused = true)]
async fn invalid_params_names_every_field() {
    let edge = Edge::new(builder());
    let params = json!({
        "message": {"messageId": "", "role": "ROLE_UNSPECIFIED", "parts": []},
        "configuration": {"historyLength": -1, "taskPushNotificationConfig": {"url": "ftp://x"}},
    });
    let send = post("/message:send", params.to_string());
    expect![[r#""#]].assert_eq(&both(&edge, send, "SendMessage", params).await);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_says_when_to_come_back_and_not_why() {
    use crate::support::gated_store::GatedStore;
    let store = GatedStore::open(std::sync::Arc::new(switchboard_engine::system::SystemClock));
    let edge = Edge::new(builder().store(store.clone()));
    store.fail(true);
    let send = || post("/message:send", message("hello").to_string());
    let answer = edge.ask(send()).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    expect![[r#""#]].assert_eq(&both(&edge, send(), "SendMessage", message("hello")).await);
    assert_eq!(edge.get("/readyz").await.gist(), "503");
    store.fail(false);
    assert_eq!(edge.ask(send()).await.gist(), "200");
    assert_eq!(edge.get("/readyz").await.gist(), "200", "a commit that worked makes it ready again");
}
