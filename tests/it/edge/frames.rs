//! What clients can take in one piece: lines of a stream without the line ends of Unicode, and no frame or gRPC message above
//! the limit. What does not fit is a link, and the link leads to exactly what was left out.

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard::{Agent, AgentBuilder, AgentError, Limits, Part, Server, Turn};
use switchboard_core::dialect::v1_0::proto::generated as wire;
use wire::part::Content;

use crate::support::edge::{Edge, echo, events, get, message, old_message, post, rpc_body, unversioned, with};
use crate::support::grpc::{V1_0, grpc_request};

const FRAME_BYTES_MAX: usize = 64 << 10;
const LARGE: usize = 100_000;

fn large(mark: char) -> String {
    std::iter::repeat_n(mark, LARGE).collect()
}

struct Bulky;

impl Agent for Bulky {
    /// Writes an artifact in three pieces, of which the second is large, and one that is large as a whole.
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let mut writer = turn.artifact_writer().with_id("pieces");
        writer.text("one ").await?;
        writer.text(large('2')).await?;
        writer.text(" three").await?;
        let picture = Part::raw(vec![7; LARGE]).with_media_type("image/png").with_filename("p.png");
        turn.artifact_writer().with_id("whole").finish(vec![Part::text("a caption"), picture]).await?;
        Ok(())
    }
}

fn edge() -> Edge {
    let limits = Limits { frame_bytes_max: FRAME_BYTES_MAX as u64, ..Limits::default() };
    let server = Server::builder().agent(AgentBuilder::new("Bulky", Bulky)).engine_limits(limits);
    Edge::new(server.allow_unauthenticated(true).public_url("https://agents.example"))
}

/// The lines of a stream that hold events, none of which is too long.
fn lines(stream: &str) -> Vec<Value> {
    for line in stream.lines() {
        assert!(line.len() <= FRAME_BYTES_MAX, "a line of {} bytes: {:.200}", line.len(), line);
    }
    events(stream)
}

async fn fetched(edge: &Edge, part: &Value, address: &str) -> Bytes {
    let url = part[address].as_str().unwrap_or_else(|| panic!("no link in {part}"));
    let answer = edge.get(url.strip_prefix("https://agents.example").unwrap()).await;
    assert_eq!(answer.status, 200, "{url}: {}", answer.text());
    answer.body
}

#[tokio::test(start_paused = true)]
async fn an_update_too_large_for_a_frame_is_a_link_to_what_it_wrote() {
    let edge = edge();
    for request in [post("/message:stream", message("go").to_string()), {
        post("/", rpc_body("SendStreamingMessage", message("go")))
    }] {
        let told = lines(&edge.ask(request).await.text());
        let told: Vec<Value> = told.iter().map(|event| event.get("result").unwrap_or(event).clone()).collect();
        assert_eq!(told[0]["task"]["status"]["state"], "TASK_STATE_SUBMITTED", "the first event is the task");
        let written: Vec<&Value> =
            told[1..5].iter().map(|event| &event["artifactUpdate"]["artifact"]["parts"]).collect();
        assert_eq!(*written[0], json!([{"text": "one "}]));
        assert_eq!(written[1][0]["mediaType"], "text/plain; charset=utf-8");
        assert_eq!(fetched(&edge, &written[1][0], "url").await, large('2'), "this chunk and no other");
        assert_eq!(told[2]["artifactUpdate"]["append"], true);
        assert_eq!(*written[2], json!([{"text": " three"}]));
        assert_eq!(written[3][0], json!({"text": "a caption"}));
        assert_eq!((&written[3][1]["filename"], &written[3][1]["mediaType"]), (&json!("p.png"), &json!("image/png")));
        assert_eq!(fetched(&edge, &written[3][1], "url").await, vec![7; LARGE]);
        assert_eq!(told.len(), 6, "one event, one frame");
    }
    let reply = edge.post("/message:send", message("go").to_string()).await.json();
    assert_eq!(reply["task"]["artifacts"][0]["parts"][1]["text"], large('2'), "a plain reply has room for it");
}

#[tokio::test(start_paused = true)]
async fn streams_of_other_dialects_fit_as_well() {
    let edge = edge();
    let told = lines(&edge.ask(unversioned(post("/", rpc_body("message/stream", old_message("go"))))).await.text());
    let part = &told[2]["result"]["artifact"]["parts"][0];
    assert_eq!(fetched(&edge, &part["file"], "uri").await, large('2'), "{part}");
    let typed = json!({"message": {"role": "user", "parts": [{"type": "text", "text": "go"}]}});
    let request = unversioned(post("/_agent-native/a2a", rpc_body("message/stream", typed)));
    let told = lines(&edge.ask(request).await.text());
    assert_eq!(told.last().unwrap()["result"]["status"]["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_and_a_resumed_stream_fit_a_frame() {
    let edge = edge();
    let id = edge.task("go").await;
    let resumed = edge.ask(with(get(&format!("/tasks/{id}:subscribe")), "last-event-id", "1")).await.text();
    let told = lines(&resumed);
    let link = &told[1]["artifactUpdate"]["artifact"]["parts"][0];
    assert_eq!(fetched(&edge, link, "url").await, large('2'));
}

#[tokio::test(start_paused = true)]
async fn a_message_too_large_for_a_frame_is_left_out_of_the_first_one() {
    let edge = edge();
    let told = lines(&edge.post("/message:stream", message(&large('m')).to_string()).await.text());
    assert_eq!(told[0]["task"]["history"], Value::Null);
    let id = told[0]["task"]["id"].as_str().unwrap();
    let whole = edge.get(&format!("/tasks/{id}")).await.json();
    assert_eq!(whole["history"][0]["parts"][0]["text"], large('m'), "it is in the task all the same");
}

#[tokio::test(start_paused = true)]
async fn grpc_replies_and_streams_fit_a_message() {
    let edge = edge();
    let id = edge.task("go").await;
    edge.task("go").await;
    let part = wire::Part { content: Some(Content::Text("go".to_owned())), ..Default::default() };
    let said = wire::Message { message_id: "m-1".to_owned(), role: 1, parts: vec![part], ..Default::default() };
    let send = wire::SendMessageRequest { message: Some(said), ..Default::default() };
    let list = wire::ListTasksRequest { include_artifacts: Some(true), ..Default::default() };
    let read = wire::GetTaskRequest { id, ..Default::default() };
    for request in [
        grpc_request(&format!("{V1_0}/GetTask"), &read),
        grpc_request(&format!("{V1_0}/ListTasks"), &list),
        grpc_request(&format!("{V1_0}/SendMessage"), &send),
        grpc_request(&format!("{V1_0}/SendStreamingMessage"), &send),
    ] {
        let name = request.uri().to_string();
        let answer = edge.ask(request).await;
        let mut rest = &answer.body[..];
        let mut messages = 0;
        while let [_, a, b, c, d, after @ ..] = rest {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            assert!(length <= FRAME_BYTES_MAX, "{name}: a message of {length} bytes");
            rest = &after[length..];
            messages += 1;
        }
        assert!(messages > 0 && rest.is_empty(), "{name}");
        assert!(answer.body.windows(22).any(|window| window == b"https://agents.example"), "{name}: no link");
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_to_an_update_is_the_owners_alone_and_says_what_is_wrong() {
    let edge = edge();
    let id = edge.task("go").await;
    let at = |query: &str| format!("/agents/bulky/tasks/{id}/artifacts/pieces?{query}");
    assert_eq!(edge.get(&at("update=3")).await.body, large('2'));
    let ranged = edge.ask(with(get(&at("update=3")), "range", "bytes=0-9")).await;
    assert_eq!((ranged.status.as_u16(), ranged.text().as_str()), (206, "2222222222"));
    assert_eq!(ranged.header("content-range"), format!("bytes 0-9/{LARGE}"));
    for query in ["update=1", "update=6", "update=0", "update=99", "update=3&part=1"] {
        assert_eq!(edge.get(&at(query)).await.gist(), "404 TASK_NOT_FOUND", "{query}");
    }
    assert_eq!(edge.get(&at("update=x")).await.gist(), "400 INVALID_PARAMS");
    let whole = format!("/agents/bulky/tasks/{id}/artifacts/whole?update=3");
    assert_eq!(edge.get(&whole).await.gist(), "404 TASK_NOT_FOUND", "the update of another artifact");
}

#[tokio::test(start_paused = true)]
async fn by_default_no_line_is_longer_than_4_mib() {
    let agent = AgentBuilder::from_fn("Bulky", |turn: Turn| async move {
        let mut writer = turn.artifact_writer();
        writer.text("\u{2028}".repeat(800_000)).await?;
        writer.text("x".repeat((4 << 20) - 1)).await?;
        writer.text("y".repeat(3 << 20)).await?;
        Ok(())
    });
    let edge = Edge::new(Server::builder().agent(agent));
    let told = edge.post("/message:stream", message("go").to_string()).await.text();
    assert!(told.lines().all(|line| line.len() < 4 << 20));
    let shown: Vec<bool> = events(&told)[1..4]
        .iter()
        .map(|event| event["artifactUpdate"]["artifact"]["parts"][0]["url"].is_string())
        .collect();
    assert_eq!(shown, [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn the_line_ends_of_unicode_are_escaped_in_streams() {
    let agent = echo().streaming(true);
    let edge = Edge::new(Server::builder().agent(agent));
    let text = "a\u{85}b\u{2028}c\u{2029}d “é”";
    let is_clean = |stream: &str| !stream.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    let call = rpc_body("SendStreamingMessage", message(text)).replace("\"id\":1", "\"id\":\"\u{2028}\"");
    for request in [
        post("/message:stream", message(text).to_string()),
        post("/", call),
        unversioned(post("/", rpc_body("message/stream", old_message(text)))),
        unversioned(post("/v1/message:stream", {
            json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}]}}).to_string()
        })),
        unversioned(post("/_agent-native/a2a", {
            rpc_body("message/stream", json!({"message": {"role": "user", "parts": [{"type": "text", "text": text}]}}))
        })),
    ] {
        let name = request.uri().to_string();
        let stream = edge.ask(request).await.text();
        assert!(is_clean(&stream), "{name}: {stream}");
        assert!(events(&stream).iter().any(|event| event.to_string().contains(text)), "{name}: {stream}");
    }
    let failing = edge.ask(unversioned(post("/_agent-native/a2a", {
        rpc_body(
            "message/stream",
            json!({"message": {"role": "user", "parts": [{"type": "text", "text": format!("fail {text}")}]}}),
        )
    })));
    assert!(is_clean(&failing.await.text()), "an error in a stream");
    let refused = unversioned(post("/", rpc_body("tasks/resubscribe", json!({"id": text}))));
    assert!(is_clean(&edge.ask(with(refused, "accept", "text/event-stream")).await.text()), "a refused stream");
}
