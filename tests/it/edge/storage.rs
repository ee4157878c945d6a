//! A message that there is no room for is refused in every dialect and binding, with the name of the limit and without a time to try
//! again.

use serde_json::json;
use switchboard::{Limits, Server};

use super::grpc_calls::say;
use crate::support::edge::{Edge, echo, message, old_message, post, rpc_body, unversioned};
use crate::support::grpc::Served;

const REASON: &str =
    "all tasks would have more than 65536 bytes stored (storage_bytes_max); old tasks that have ended make room";

fn full() -> Limits {
    Limits { storage_bytes_max: 65_536, ..Limits::default() }
}

#[tokio::test]
async fn every_dialect_says_that_there_is_no_room_and_no_time_to_try_again() {
    let edge = Edge::new(Server::builder().agent(echo()).engine_limits(full()));
    let text = "x".repeat(70_000);
    let old = json!({"message": {"messageId": "m-1", "role": "ROLE_USER", "content": [{"text": text}]}});
    let requests = [
        ("1.0 over JSON-RPC", post("/", rpc_body("SendMessage", message(&text)))),
        ("1.0 over HTTP+JSON", post("/message:send", message(&text).to_string())),
        ("1.0 as a stream", post("/message:stream", message(&text).to_string())),
        ("0.3 over JSON-RPC", unversioned(post("/", rpc_body("message/send", old_message(&text))))),
        ("0.3 over HTTP+JSON", unversioned(post("/v1/message:send", old.to_string()))),
    ];
    let count = requests.len() as u64;
    for (name, request) in requests {
        let refused = edge.ask(request).await;
        assert_eq!(refused.gist(), "429 RESOURCE_EXHAUSTED", "{name}: {}", refused.text());
        assert_eq!(refused.header("retry-after"), "", "{name}");
        let text = refused.text();
        assert!(text.contains(REASON), "{name}: {text}");
        assert!(!text.contains("retryDelay") && !text.contains("retryAfterS"), "{name}: {text}");
    }
    let (stored, refused) = ("switchboard_stored_bytes", "switchboard_storage_refusals_total");
    assert_eq!(edge.metric(&format!("{refused}{{limit=\"storage_bytes_max\"}}")).await, count);
    assert_eq!(edge.metric(&format!("{refused}{{limit=\"storage_owner_bytes_max\"}}")).await, 0);
    assert_eq!(edge.metric(stored).await, 0, "nothing was stored");
    edge.task("small").await;
    let after = edge.metric(stored).await;
    assert!((500..5_000).contains(&after), "{after}");
}

#[tokio::test]
async fn grpc_says_the_same() {
    let served = Served::start(Server::builder().agent(echo()).engine_limits(full())).await;
    let refused = served.client().await.refusal("SendMessage", &say(&"x".repeat(70_000))).await;
    assert_eq!(refused.gist(), "8 RESOURCE_EXHAUSTED");
    assert!(refused.message.contains(REASON), "{}", refused.message);
}

#[tokio::test]
async fn without_the_limit_the_same_message_is_taken() {
    let edge = Edge::usual();
    assert_eq!(edge.rpc("SendMessage", message(&"x".repeat(70_000))).await.status, 200);
}

#[tokio::test]
async fn systems_from_before_a2a_read_the_reason() {
    let edge = Edge::new(Server::builder().agent(echo()).engine_limits(full()));
    let text = "x".repeat(70_000);
    let send = json!({"message": {"role": "user", "parts": [{"type": "text", "text": text}]}});
    let refused = edge.post("/dialects/agent-native", rpc_body("message/send", send)).await;
    assert!(refused.text().contains("storage_bytes_max"), "{} {}", refused.status, refused.text());
}
