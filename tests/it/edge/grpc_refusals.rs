//! What gRPC refuses, with which code and which details, and every kind of bad input.

use bytes::Bytes;
use switchboard::{Server, ServerLimits};
use switchboard_core::dialect::v1_0::proto::generated as wire;

use super::grpc_calls::say;
use crate::support::edge::echo;
use crate::support::grpc::{Client, Served, V0_3, V1_0, framed};

async fn served() -> Served {
    Served::start(Server::builder().agent(echo())).await
}

fn get(id: &str) -> wire::GetTaskRequest {
    wire::GetTaskRequest { id: id.to_owned(), ..Default::default() }
}

async fn raw(client: &Client, path: &str, body: impl Into<Bytes>) -> String {
    let answer = client.raw(path, body.into()).await.whole().await;
    let refused = answer.ending().unwrap_err();
    format!("{}: {}", refused.gist(), refused.message)
}

#[tokio::test]
async fn each_refusal_has_its_code_and_its_reason() {
    let served = served().await;
    let client = served.client().await;
    let done: wire::SendMessageResponse = client.call("SendMessage", &say("hello")).await.unwrap();
    let Some(wire::send_message_response::Payload::Task(done)) = done.payload else { panic!("{done:?}") };
    assert_eq!(client.refusal("GetTask", &get("nothing")).await.gist(), "5 TASK_NOT_FOUND");
    let cancel = wire::CancelTaskRequest { id: done.id.clone(), ..Default::default() };
    assert_eq!(client.refusal("CancelTask", &cancel).await.gist(), "9 TASK_NOT_CANCELABLE");
    let subscribe = wire::SubscribeToTaskRequest { id: done.id.clone(), ..Default::default() };
    assert_eq!(client.refusal("SubscribeToTask", &subscribe).await.gist(), "9 UNSUPPORTED_OPERATION");
    let card = wire::GetExtendedAgentCardRequest::default();
    assert_eq!(client.refusal("GetExtendedAgentCard", &card).await.gist(), "9 UNSUPPORTED_OPERATION");
    let mut file = say("");
    file.message.as_mut().unwrap().parts[0].media_type = "application/x-unknown".to_owned();
    assert_eq!(client.refusal("SendMessage", &file).await.gist(), "3 CONTENT_TYPE_NOT_SUPPORTED");

    let wrong = client.refusal("SendMessage", &wire::SendMessageRequest::default()).await;
    assert_eq!(wrong.gist(), "3 INVALID_PARAMS");
    assert_eq!(wrong.fields, ["message"]);
    assert_eq!(wrong.message, "Invalid parameters: message: is required");
}

#[tokio::test]
async fn what_an_agent_does_not_offer_is_refused() {
    let agent = echo().streaming(false).push_notifications(false).extension("urn:example:geo", "Where", true);
    let served = Served::start(Server::builder().agent(agent)).await;
    let client = served.client().await;
    assert_eq!(client.refusal("SendMessage", &say("x")).await.gist(), "9 EXTENSION_SUPPORT_REQUIRED");
    let client = client.with("a2a-extensions", "urn:example:geo");
    assert_eq!(client.refusal("SendStreamingMessage", &say("x")).await.gist(), "9 UNSUPPORTED_OPERATION");
    let list = wire::ListTaskPushNotificationConfigsRequest { task_id: "t".to_owned(), ..Default::default() };
    let refused = client.refusal("ListTaskPushNotificationConfigs", &list).await;
    assert_eq!(refused.gist(), "9 PUSH_NOTIFICATION_NOT_SUPPORTED");
}

#[tokio::test]
async fn the_version_must_be_named_and_fit_the_service() {
    let served = served().await;
    let bare = served.client_of(V1_0).await;
    let refused = bare.refusal("GetTask", &get("t")).await;
    assert_eq!(refused.gist(), "9 VERSION_NOT_SUPPORTED");
    assert_eq!(
        refused.message,
        "This service is of A2A 1.0: send metadata a2a-version: 1.0 \
         (a call without it means 0.3, whose service is a2a.v1.A2AService)"
    );
    for (version, expected) in [
        ("1.0", "5 TASK_NOT_FOUND"),
        ("1.0.7", "5 TASK_NOT_FOUND"),
        ("0.3", "9 VERSION_NOT_SUPPORTED"),
        ("", "9 VERSION_NOT_SUPPORTED"),
        ("99.0", "9 VERSION_NOT_SUPPORTED"),
        ("nonsense", "9 VERSION_NOT_SUPPORTED"),
    ] {
        assert_eq!(bare.with("a2a-version", version).refusal("GetTask", &get("t")).await.gist(), expected, "{version}");
    }
    let old = served.client_of(V0_3).await;
    let named = switchboard_core::dialect::v0_3::proto::generated::GetTaskRequest {
        name: "tasks/t".to_owned(),
        ..Default::default()
    };
    for (version, expected) in [
        ("0.3", "5 TASK_NOT_FOUND"),
        ("0.2.5", "5 TASK_NOT_FOUND"),
        ("", "5 TASK_NOT_FOUND"),
        ("1.0", "12 METHOD_NOT_FOUND"),
    ] {
        assert_eq!(old.with("a2a-version", version).refusal("GetTask", &named).await.gist(), expected, "{version}");
    }
}

#[tokio::test]
async fn a_path_that_is_no_method_is_unimplemented() {
    let served = served().await;
    let client = served.client().await;
    for path in [
        "/lf.a2a.v1.A2AService/Nothing",
        "/lf.a2a.v1.A2AService/sendMessage",
        "/lf.a2a.v1.A2AService",
        "/lf.a2a.v2.A2AService/SendMessage",
        "/grpc.health.v1.Health/Check",
        "/",
        "/tasks",
    ] {
        let answer = raw(&client, path, framed(b"")).await;
        assert!(answer.starts_with("12 METHOD_NOT_FOUND: Method not found: "), "{path}: {answer}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused() {
    let served = served().await;
    let client = served.client().await;
    let path = "/lf.a2a.v1.A2AService/SendMessage";
    let garbage = raw(&client, path, framed(b"\xff\xff\xff\xff")).await;
    assert!(
        garbage.starts_with("3 INVALID_REQUEST: Invalid request: the message is not what its method takes: "),
        "{garbage}"
    );
    assert_eq!(raw(&client, path, "").await, "12: the call has no message; it takes exactly one");
    let two = [framed(b""), framed(b"")].concat();
    assert_eq!(raw(&client, path, two).await, "12: the call has more than one message; it takes exactly one");
    let half = framed(b"12345678").slice(..9);
    assert_eq!(
        raw(&client, path, half).await,
        "3 INVALID_REQUEST: Invalid request: the message ends after 4 of 8 bytes"
    );
    let mut marked = framed(b"").to_vec();
    marked[0] = 1;
    let why = "13: the message is marked as compressed, but no grpc-encoding was named";
    assert_eq!(raw(&client, path, marked.clone()).await, why);
    let zipped = client.with("grpc-encoding", "gzip");
    let answer = zipped.raw(path, marked.into()).await.whole().await;
    assert_eq!(answer.ending().unwrap_err().message, "grpc-encoding gzip is not served; send identity");
    assert_eq!(answer.ending().unwrap_err().code, 12);
    assert_eq!(answer.head["grpc-accept-encoding"], "identity");
}

#[tokio::test]
async fn a_message_may_be_as_large_as_a_body() {
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 4_096;
    let served = Served::start(Server::builder().agent(echo()).limits(limits)).await;
    let client = served.client().await;
    let with_bytes = |total: usize| {
        let around = prost::Message::encoded_len(&say("")) + 5;
        say(&"x".repeat(total - around))
    };
    let fits = with_bytes(4_096);
    assert!(prost::Message::encoded_len(&fits) <= 4_096);
    client.call::<wire::SendMessageResponse>("SendMessage", &fits).await.unwrap();
    let refused = client.refusal("SendMessage", &say(&"x".repeat(4_096))).await;
    assert_eq!(refused.gist(), "8 PAYLOAD_TOO_LARGE");
    assert_eq!(refused.message, "The message is larger than the limit of 4096 bytes");
}

#[tokio::test]
async fn the_gate_is_the_same_as_for_the_other_bindings() {
    let served = served().await;
    let client = served.client().await;
    let elsewhere = client.at("evil.example");
    assert_eq!(elsewhere.refusal("GetTask", &get("t")).await.gist(), "7 PERMISSION_DENIED");
    let page = client.with("origin", "https://evil.example");
    assert_eq!(page.refusal("GetTask", &get("t")).await.gist(), "7 PERMISSION_DENIED");
    assert_eq!(client.at("localhost").refusal("GetTask", &get("t")).await.gist(), "5 TASK_NOT_FOUND");
}

#[tokio::test]
async fn a_timeout_that_is_none_is_refused() {
    let served = served().await;
    let client = served.client().await;
    for timeout in ["", "5", "S", "-1S", "123456789S", "1x", "é"] {
        let refused = client.with("grpc-timeout", timeout).refusal("GetTask", &get("t")).await;
        assert_eq!(refused.gist(), "3 INVALID_REQUEST", "{timeout}");
    }
    assert_eq!(client.with("grpc-timeout", "99999999H").refusal("GetTask", &get("t")).await.gist(), "5 TASK_NOT_FOUND");
}
