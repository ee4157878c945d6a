//! Server-sent events as bytes: framing on both bindings, signs of life, and streams that break.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use http_body_util::BodyExt;
use serde_json::json;
use switchboard::{AgentBuilder, Limits, Part, Replies, Server, Turn};
use switchboard_engine::system::SystemClock;

use crate::support::callers::soon;
use crate::support::edge::{Edge, get, message, post, redacted, rpc_body};
use crate::support::gated_store::GatedStore;

#[tokio::test(start_paused = true)]
async fn a_stream_over_http_json() {
    let edge = Edge::usual();
    let answer = edge.post("/message:stream", message("chunks 2").to_string()).await;
    assert_eq!(answer.status, 200);
    let headers = ["content-type", "cache-control", "x-accel-buffering"].map(|name| answer.header(name));
    assert_eq!(headers, ["text/event-stream", "no-cache", "no"]);
    expect![[r#"
        id: 1
        data: {"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_SUBMITTED","timestamp":"<time>"},"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","parts":[{"text":"chunks 2"}]}]}}

        id: 2
        data: {"artifactUpdate":{"taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"text":"1 "}]}}}

        id: 3
        data: {"artifactUpdate":{"taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"text":"2 "}]},"append":true}}

        id: 4
        data: {"statusUpdate":{"taskId":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"}}}

    "#]].assert_eq(&redacted(&answer.text()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_over_json_rpc_carries_the_requests_id_in_each_event() {
    let edge = Edge::usual();
    let mut call = rpc_body("SendStreamingMessage", message("hello"));
    call = call.replace(r#""id":1"#, r#""id":"my \"id\"""#);
    let answer = edge.post("/", call).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"));
    expect![[r#"
        id: 1
        data: {"jsonrpc":"2.0","id":"my \"id\"","result":{"task":{"id":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_SUBMITTED","timestamp":"<time>"},"history":[{"messageId":"m-1","contextId":"<id 2>","taskId":"<id 1>","role":"ROLE_USER","parts":[{"text":"hello"}]}]}}}

        id: 2
        data: {"jsonrpc":"2.0","id":"my \"id\"","result":{"artifactUpdate":{"taskId":"<id 1>","contextId":"<id 2>","artifact":{"artifactId":"artifact-1-1","parts":[{"text":"hello"}]},"lastChunk":true}}}

        id: 3
        data: {"jsonrpc":"2.0","id":"my \"id\"","result":{"statusUpdate":{"taskId":"<id 1>","contextId":"<id 2>","status":{"state":"TASK_STATE_COMPLETED","timestamp":"<time>"}}}}

    "#]].assert_eq(&redacted(&answer.text()));
}

#[tokio::test(start_paused = true)]
async fn a_direct_reply_is_one_event_without_a_number() {
    let brief =
        AgentBuilder::from_fn("Brief", |turn: Turn| async move { Ok(turn.reply(vec![Part::text("yes")]).await?) });
    let edge = Edge::new(Server::builder().agent(brief.traits(|traits| traits.with_replies(Replies::Message))));
    let answer = edge.post("/message:stream", message("will you?").to_string()).await;
    expect![[r#"
        data: {"message":{"messageId":"<id 1>","contextId":"<id 2>","role":"ROLE_AGENT","parts":[{"text":"yes"}]}}

    "#]]
    .assert_eq(&redacted(&answer.text()));
    let sent = edge.post("/message:send", message("will you?").to_string()).await;
    expect![[r#"
        200 application/a2a+json
        {"message":{"messageId":"<id 1>","contextId":"<id 2>","role":"ROLE_AGENT","parts":[{"text":"yes"}]}}
    "#]]
    .assert_eq(&sent.picture());
}

#[tokio::test(start_paused = true)]
async fn text_never_breaks_the_framing() {
    let edge = Edge::usual();
    let text = "one\ntwo\r\nthree\u{2028}four\n\ndata: {}\n\n";
    let answer = edge.post("/message:stream", message(text).to_string()).await;
    let events: Vec<serde_json::Value> = answer
        .text()
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.split_once("data: ").unwrap().1).unwrap())
        .collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[1]["artifactUpdate"]["artifact"]["parts"][0]["text"], text);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_streamed_is_refused_as_anything_else_is() {
    let edge = Edge::usual();
    let id = edge.task("hello").await;
    for verb in [get, |path: &str| post(path, "")] {
        let answer = edge.ask(verb(&format!("/tasks/{id}:subscribe"))).await;
        assert_eq!(answer.gist(), "400 UNSUPPORTED_OPERATION");
        assert_eq!(edge.ask(verb("/tasks/none:subscribe")).await.gist(), "404 TASK_NOT_FOUND");
    }
    let answer = edge.rpc("SubscribeToTask", json!({"id": id})).await;
    assert_eq!(
        (answer.gist().as_str(), answer.header("content-type")),
        ("200 UNSUPPORTED_OPERATION", "application/json")
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_stream_says_that_it_is_still_there() {
    let edge = Edge::usual();
    let mut body = edge.open(post("/message:stream", message("wait").to_string())).await.into_body();
    let began = tokio::time::Instant::now();
    let mut next = async || {
        let frame = soon(body.frame()).await.unwrap().unwrap().into_data().unwrap();
        (began.elapsed().as_secs(), String::from_utf8(frame.to_vec()).unwrap())
    };
    let (at, events) = next().await;
    assert_eq!(at, 0);
    assert!(events.starts_with("id: 1\ndata: {\"task\":"), "{events}");
    while !matches!(next().await.1.as_str(), ": keep-alive\n\n") {}
    assert_eq!(began.elapsed().as_secs(), 15);
    assert_eq!(next().await, (30, ": keep-alive\n\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_says_why_in_the_way_its_clients_read() {
    let store = GatedStore::open(Arc::new(SystemClock));
    let limits = Limits { tail_updates_max: 1, ..Limits::default() };
    let agent = AgentBuilder::from_fn("Late", |turn: Turn| async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut writer = turn.artifact_writer();
        for _ in 0..50 {
            writer.text("word ").await?;
        }
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent).store(store.clone()).engine_limits(limits));
    for (request, expected) in [
        (post("/message:stream", message("hello").to_string()), "event: error\ndata: {\"error\":{\"code\":503,"),
        (
            post("/", rpc_body("SendStreamingMessage", message("hello"))),
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32050,",
        ),
    ] {
        store.fail_reads(false);
        let mut body = edge.open(request).await.into_body();
        soon(body.frame()).await.unwrap().unwrap();
        // The reader falls behind, and the store does not answer when it asks for the rest.
        tokio::time::sleep(Duration::from_secs(1)).await;
        store.fail_reads(true);
        let rest = String::from_utf8(soon(body.collect()).await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(rest.contains(expected), "{rest}");
        assert!(!rest.contains("disk"), "the cause is for the log: {rest}");
        assert!(rest.ends_with("}\n\n"), "and it ends there: {rest}");
    }
}
