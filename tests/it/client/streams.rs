//! Streams whose connection breaks: behind a proxy that cuts it at every place, and from servers that number their events and such
//! that do not.

use switchboard::client::RetryPolicy;
use switchboard::model::Update;
use switchboard::{CallErrorKind, ProtocolBinding, Server, TaskState};

use super::{agent, quick, quick_retries};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::grpc::Served;
use crate::support::proxy::Proxy;
use crate::support::scripted::{Asked, Script, Scripted, answer, events, json};

#[tokio::test]
async fn a_stream_that_is_cut_anywhere_goes_on_and_says_everything_once() {
    for binding in ProtocolBinding::ALL {
        for version in ["1.0", "0.3"] {
            let proxy = Proxy::bind().await;
            let url = proxy.url();
            let served =
                Served::start(Server::builder().agent(echo()).public_url(&url).interfaces(ProtocolBinding::ALL)).await;
            // The first connection has the card; the others are cut in the head, in an event, or between two. A frame of gRPC
            // may hold all events, so that some connections must be long enough for it.
            proxy.start(served.address, |number| match number {
                0 => None,
                number => Some(300 + number * 1_900 % 9_000),
            });
            let client = quick().bindings([binding]).versions([version]);
            let mut retry = quick_retries().repeating_sends(true);
            retry.attempts_max = 10;
            let client = client.retry(retry).build().unwrap();
            let agent = client.agent(&url).await.unwrap();
            let mut stream = soon(agent.stream_text("chunks 40")).await.unwrap();
            let mut seqs = Vec::new();
            while let Some(frame) = soon(stream.next()).await {
                seqs.push(frame.unwrap().seq.unwrap());
            }
            assert_eq!(seqs, (1..=42).collect::<Vec<u64>>(), "{binding} {version}");
            let expected: String = (1..=40).map(|number| format!("{number} ")).collect();
            assert_eq!(stream.task().unwrap().artifacts[0].text(), expected, "{binding} {version}");
        }
    }
}

const CARD: &str = r#"{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC","capabilities":{"streaming":true}}"#;

fn event(result: &str) -> String {
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\r\n\r\n")
}

fn task(state: &str, text: &str) -> String {
    format!(
        r#"{{"kind":"task","id":"t","contextId":"c","status":{{"state":"{state}"}},"artifacts":[{{"artifactId":"a","parts":[{{"kind":"text","text":"{text}"}}]}}]}}"#
    )
}

fn method(asked: &Asked) -> &str {
    let known = ["message/send", "message/stream", "tasks/resubscribe", "tasks/get"];
    known.into_iter().find(|method| asked.body.contains(&format!("\"{method}\""))).unwrap_or("card")
}

async fn methods(server: &Scripted) -> Vec<String> {
    server.asked().iter().map(|asked| method(asked).to_owned()).collect()
}

#[tokio::test]
async fn without_numbers_a_snapshot_follows_and_what_is_known_is_left_out() {
    let server = Scripted::start(|count, asked| match (method(asked), count) {
        ("card", _) => json(CARD),
        ("message/stream", _) => Script::Cut(events(&event(&task("working", "one")))),
        // Nothing new, and broken again; then the end.
        ("tasks/resubscribe", 2) => Script::Cut(events(&event(&task("working", "one")))),
        _ => Script::Cut(events(&event(&task("completed", "two")))),
    })
    .await;
    let agent = agent(&server.url).await;
    let mut stream = agent.stream_text("go").await.unwrap();
    let mut texts = Vec::new();
    while let Some(frame) = soon(stream.next()).await {
        match &frame.unwrap().update.update {
            Update::Task(view) => texts.push(view.task.artifacts[0].text()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(texts, ["one", "two"]);
    assert_eq!(stream.task().unwrap().state(), TaskState::Completed);
    assert_eq!(methods(&server).await, ["card", "message/stream", "tasks/resubscribe", "tasks/resubscribe"]);
}

#[tokio::test]
async fn a_stream_that_is_cut_while_nothing_happens_is_resumed_as_often_as_needed() {
    let server = Scripted::start(|count, asked| match (method(asked), count) {
        ("card", _) => json(CARD),
        (_, 20) => Script::Cut(events(&event(&task("completed", "one")))),
        _ => Script::Cut(events(&event(&task("working", "one")))),
    })
    .await;
    let mut stream = agent(&server.url).await.stream_text("go").await.unwrap();
    let mut frames = 0;
    while let Some(frame) = soon(stream.next()).await {
        frame.unwrap();
        frames += 1;
    }
    assert_eq!((frames, stream.task().unwrap().state()), (2, TaskState::Completed));
}

#[tokio::test]
async fn an_agent_that_cannot_be_subscribed_to_is_asked_for_the_task() {
    let server = Scripted::start(|count, asked| match (method(asked), count) {
        ("card", _) => json(CARD),
        ("message/stream", _) => Script::Cut(events(&event(&task("working", "one")))),
        ("tasks/resubscribe", _) => {
            json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"This operation is not supported"}}"#)
        }
        (_, count) => {
            let state = if count < 5 { "working" } else { "completed" };
            json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, task(state, "one")))
        }
    })
    .await;
    let agent = agent(&server.url).await;
    let sent = soon(agent.send_and_wait(message())).await.unwrap();
    assert_eq!(sent.text(), "one");
    let expected = ["card", "message/stream", "tasks/resubscribe", "tasks/get", "tasks/resubscribe", "tasks/get"];
    assert_eq!(methods(&server).await, expected);
}

#[tokio::test]
async fn a_wait_is_not_over_at_a_snapshot_that_shows_the_question_before() {
    let status = r#"{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"completed"},"final":true}"#;
    let server = Scripted::start(move |_, asked| match method(asked) {
        "card" => json(CARD),
        _ => Script::Cut(events(&(event(&task("input-required", "asked")) + &event(status)))),
    })
    .await;
    let answer = soon(agent(&server.url).await.send_and_wait(message())).await.unwrap();
    assert_eq!(answer.into_task().unwrap().state(), TaskState::Completed);
}

/// A reply to the question of the task.
fn reply() -> switchboard::Message {
    switchboard::Message { task_id: Some("t".into()), ..message() }
}

/// Events of a stream that breaks off: more was announced.
fn broken(body: &str) -> Script {
    let head = "content-type: text/event-stream\r\ncontent-length: 99999";
    let whole = String::from_utf8(events(body)).unwrap().replace("content-type: text/event-stream", head);
    Script::Cut(whole.into_bytes())
}

fn result(result: &str) -> Script {
    json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))
}

#[tokio::test]
async fn a_question_that_a_reply_may_answer_is_not_its_result_when_the_connection_breaks() {
    // The task has not moved at the first look, and is then found ended or at work.
    for (later, expected) in [
        ("completed", vec!["card", "message/stream", "tasks/get", "tasks/get"]),
        ("working", vec!["card", "message/stream", "tasks/get", "tasks/get", "tasks/resubscribe"]),
    ] {
        let server = Scripted::start(move |count, asked| match (method(asked), count) {
            ("card", _) => json(CARD),
            ("message/stream", _) => broken(&event(&task("input-required", "asked"))),
            ("tasks/get", 2) => result(&task("input-required", "asked")),
            ("tasks/get", _) => result(&task(later, "answered")),
            _ => Script::Cut(events(&event(&task("completed", "answered")))),
        })
        .await;
        let answer = soon(agent(&server.url).await.send_and_wait(reply())).await.unwrap();
        assert_eq!((answer.text(), answer.into_task().unwrap().state()), ("answered".to_owned(), TaskState::Completed));
        assert_eq!(methods(&server).await, expected);
    }
}

#[tokio::test]
async fn a_question_that_stays_is_an_early_end_unless_the_agent_itself_ended_the_stream() {
    for is_broken in [true, false] {
        let server = Scripted::start(move |_, asked| match method(asked) {
            "card" => json(CARD),
            "message/stream" if is_broken => broken(&event(&task("input-required", "asked"))),
            "message/stream" => Script::Cut(events(&event(&task("input-required", "asked")))),
            _ => result(&task("input-required", "asked")),
        })
        .await;
        let outcome = soon(agent(&server.url).await.send_and_wait(reply())).await;
        let looks = methods(&server).await.iter().filter(|method| *method == "tasks/get").count();
        match outcome {
            // The wait goes on by asking, and finds the same question.
            Ok(sent) => {
                assert_eq!(sent.into_task().unwrap().state(), TaskState::InputRequired);
                assert!(!is_broken && looks == 1, "{looks}");
            }
            Err(error) => {
                assert_eq!(error.kind(), CallErrorKind::StreamEndedEarly, "{error}");
                assert_eq!(error.task_id().unwrap().as_str(), "t");
                assert!(is_broken && looks > 1, "{looks}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_too_soon_is_never_taken_for_a_whole_one() {
    let server = Scripted::start(|_, asked| match method(asked) {
        "card" => json(CARD),
        "message/stream" => Script::Cut(events(&event(&task("working", "one")))),
        _ => answer(503, "", ""),
    })
    .await;
    let agent = agent(&server.url).await;
    let mut stream = agent.stream_text("go").await.unwrap();
    stream.next().await.unwrap().unwrap();
    let error = soon(stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::StreamEndedEarly, "{error}");
    assert_eq!(error.task_id().unwrap().as_str(), "t");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_message_whose_stream_breaks_before_anything_came_is_not_sent_again() {
    let server = Scripted::start(|_, asked| match method(asked) {
        "card" => json(CARD),
        _ => Script::Cut(events("")),
    })
    .await;
    let agent = agent(&server.url).await;
    let mut stream = agent.stream_text("go").await.unwrap();
    let error = soon(stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::OutcomeUnknown, "{error}");
    assert!(error.to_string().contains("outcome is not known"), "{error}");
    assert_eq!(methods(&server).await, ["card", "message/stream"]);
}

#[tokio::test]
async fn an_answer_in_place_of_a_stream_is_taken_as_it_is() {
    let server = Scripted::start(|_, asked| match (method(asked), asked.body.contains("refuse")) {
        ("card", _) => json(CARD),
        (_, true) => json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}"#),
        (_, false) => json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, task("completed", "whole"))),
    })
    .await;
    let agent = quick().retry(RetryPolicy::never()).build().unwrap().agent(&server.url).await.unwrap();
    let mut stream = agent.stream_text("go").await.unwrap();
    stream.next().await.unwrap().unwrap();
    assert!(stream.next().await.is_none());
    assert_eq!(stream.task().unwrap().artifacts[0].text(), "whole");
    let refused = agent.stream_text("refuse").await.unwrap_err();
    assert_eq!((refused.kind(), refused.wire_text()), (CallErrorKind::Refused, Some("broken")));
}

#[tokio::test]
async fn dropping_a_stream_cancels_nothing() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let agent = agent(&format!("http://{}", served.address)).await;
    let mut stream = agent.stream_text("wait").await.unwrap();
    stream.next().await.unwrap().unwrap();
    let id = stream.task().unwrap().id.clone();
    drop(stream);
    assert!(!agent.task(&id).await.unwrap().state().is_terminal());
    agent.cancel(&id).await.unwrap();
}

fn message() -> switchboard::Message {
    switchboard::Message::new(switchboard::Role::User, "", vec![switchboard::Part::text("go")])
}
