//! Refusals as they go over the wire: one of each kind, whole, on both bindings.

use expect_test::expect;
use serde_json::{Value, json};
use switchboard::{Server, ServerBuilder};

use crate::support::edge::{Edge, echo, get, message, post, redacted, rpc_body};

/// The same refusal over HTTP+JSON and over JSON-RPC.
async fn both(
    edge: &Edge,
    rest: http::Request<http_body_util::Full<bytes::Bytes>>,
    method: &str,
    params: Value,
) -> String {
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
    expect![[r#"
        404 {"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t-9"}}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t-9"}}]}}
    "#]].assert_eq(&both(&edge, get("/tasks/t-9"), "GetTask", json!({"id": "t-9"})).await);
}

#[tokio::test(start_paused = true)]
async fn task_not_cancelable() {
    let edge = Edge::new(builder());
    let id = edge.task("hello").await;
    let cancel = post(&format!("/tasks/{id}:cancel"), "");
    expect![[r#"
        400 {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"Task cannot be canceled: it is completed","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org","metadata":{"taskId":"<id 1>","state":"TASK_STATE_COMPLETED"}}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Task cannot be canceled: it is completed","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_CANCELABLE","domain":"a2a-protocol.org","metadata":{"taskId":"<id 1>","state":"TASK_STATE_COMPLETED"}}]}}
    "#]].assert_eq(&both(&edge, cancel, "CancelTask", json!({"id": id})).await);
}

#[tokio::test(start_paused = true)]
async fn push_notification_not_supported() {
    let edge = Edge::new(Server::builder().agent(echo().push_notifications(false)));
    let list = get("/tasks/t/pushNotificationConfigs");
    expect![[r#"
        400 {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"Push notifications are not supported by this agent","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PUSH_NOTIFICATION_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"Push notifications are not supported by this agent","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PUSH_NOTIFICATION_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&both(&edge, list, "ListTaskPushNotificationConfigs", json!({"taskId": "t"})).await);
}

#[tokio::test(start_paused = true)]
async fn unsupported_operation() {
    let edge = Edge::new(Server::builder().agent(echo().streaming(false)));
    let stream = post("/message:stream", message("hello").to_string());
    expect![[r#"
        400 {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"This agent does not stream; use SendMessage and GetTask","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"This agent does not stream; use SendMessage and GetTask","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&both(&edge, stream, "SendStreamingMessage", message("hello")).await);
}

#[tokio::test(start_paused = true)]
async fn content_type_not_supported() {
    let edge = Edge::new(builder());
    let mut params = message("hello");
    params["message"]["parts"][0]["mediaType"] = "text/html".into();
    let send = post("/message:send", params.to_string());
    expect![[r#"
        400 {"error":{"code":400,"status":"INVALID_ARGUMENT","message":"message.parts[0].mediaType: this agent does not read text/html (it reads text/plain)","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"message.parts[0].mediaType: this agent does not read text/html (it reads text/plain)","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&both(&edge, send, "SendMessage", params).await);
}

#[tokio::test(start_paused = true)]
async fn extension_support_required() {
    let edge = Edge::new(Server::builder().agent(echo().extension("urn:must", "", true)));
    let send = post("/message:send", message("hello").to_string());
    expect![[r#"
        400 {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"This agent requires the extension urn:must: send header A2A-Extensions: urn:must","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"EXTENSION_SUPPORT_REQUIRED","domain":"a2a-protocol.org","metadata":{"extension":"urn:must"}}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32008,"message":"This agent requires the extension urn:must: send header A2A-Extensions: urn:must","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"EXTENSION_SUPPORT_REQUIRED","domain":"a2a-protocol.org","metadata":{"extension":"urn:must"}}]}}
    "#]].assert_eq(&both(&edge, send, "SendMessage", message("hello")).await);
}

#[tokio::test(start_paused = true)]
async fn extended_agent_card_not_configured() {
    let agent = echo().extended_card_for_anyone().card(|card| card.capabilities.extended_agent_card = Some(true));
    let edge = Edge::new(Server::builder().agent(agent));
    expect![[r#"
        400 {"error":{"code":400,"status":"FAILED_PRECONDITION","message":"No extended agent card is configured","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"EXTENDED_AGENT_CARD_NOT_CONFIGURED","domain":"a2a-protocol.org"}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32007,"message":"No extended agent card is configured","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"EXTENDED_AGENT_CARD_NOT_CONFIGURED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&both(&edge, get("/extendedAgentCard"), "GetExtendedAgentCard", json!({})).await);
}

#[tokio::test(start_paused = true)]
async fn invalid_params_names_every_field() {
    let edge = Edge::new(builder());
    let params = json!({
        "message": {"messageId": "", "role": "ROLE_UNSPECIFIED", "parts": []},
        "configuration": {"historyLength": -1, "taskPushNotificationConfig": {"url": "ftp://x"}},
    });
    let send = post("/message:send", params.to_string());
    expect![[r#"
        400 {"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Invalid parameters: message.role: ROLE_UNSPECIFIED is neither ROLE_USER nor ROLE_AGENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.role","description":"ROLE_UNSPECIFIED is neither ROLE_USER nor ROLE_AGENT"},{"field":"message.messageId","description":"is required and must not be empty"},{"field":"message.parts","description":"needs at least one part"},{"field":"configuration.taskPushNotificationConfig.url","description":"must be an absolute http or https URL"},{"field":"configuration.historyLength","description":"must not be negative"}]}]}}
        200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid parameters: message.role: ROLE_UNSPECIFIED is neither ROLE_USER nor ROLE_AGENT","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.role","description":"ROLE_UNSPECIFIED is neither ROLE_USER nor ROLE_AGENT"},{"field":"message.messageId","description":"is required and must not be empty"},{"field":"message.parts","description":"needs at least one part"},{"field":"configuration.taskPushNotificationConfig.url","description":"must be an absolute http or https URL"},{"field":"configuration.historyLength","description":"must not be negative"}]}]}}
    "#]].assert_eq(&both(&edge, send, "SendMessage", params).await);
}

#[tokio::test(start_paused = true)]
async fn an_unavailable_store_says_when_to_come_back_and_not_why() {
    use crate::support::gated_store::GatedStore;
    let store = GatedStore::open(std::sync::Arc::new(switchboard_engine::system::SystemClock));
    let edge = Edge::new(builder().store(store.clone())).ready().await;
    store.fail(true);
    let send = || post("/message:send", message("hello").to_string());
    let answer = edge.ask(send()).await;
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    expect![[r#"
        503 {"error":{"code":503,"status":"UNAVAILABLE","message":"Temporarily unavailable: the store does not answer (incident <id 1>)","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAVAILABLE","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}
        503 {"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"Temporarily unavailable: the store does not answer (incident <id 1>)","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNAVAILABLE","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}
    "#]].assert_eq(&both(&edge, send(), "SendMessage", message("hello")).await);
    assert_eq!(edge.get("/readyz").await.gist(), "503");
    store.fail(false);
    assert_eq!(edge.ask(send()).await.gist(), "200");
    assert_eq!(edge.get("/readyz").await.gist(), "200", "a commit that worked makes it ready again");
}
