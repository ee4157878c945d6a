//! Upstreams that are broken or mean harm: every task ends, within limits, in the documented state.

use std::time::Duration;

use switchboard::call::{ListTasks, SendMessage};
use switchboard::{IDEMPOTENT_SENDS, ProtocolError, TaskState};
use switchboard_hub::relay::Resend;

use super::restarted::{gateway_on, store};
use super::{gateway, outcome, quick};
use crate::support::callers::soon;
use crate::support::scripted::{Asked, Script, Scripted, answer, events, json};

const CARD: &str = r#"{"name":"Bad","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC",
    "capabilities":{"streaming":true}}"#;

/// An upstream that has a card and answers calls by this script, which is told how many calls came before.
async fn calls(script: impl Fn(usize, &Asked) -> Script + Send + Sync + 'static) -> Scripted {
    let before = std::sync::atomic::AtomicUsize::new(0);
    Scripted::start(move |_, asked| match asked.line.starts_with("GET") {
        true => json(CARD),
        false => script(before.fetch_add(1, std::sync::atomic::Ordering::Relaxed), asked),
    })
    .await
}

fn event(id: Option<u64>, result: &str) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n\n")
}

fn status(task: &str, state: &str) -> String {
    let is_final = matches!(state, "completed" | "failed");
    format!(
        r#"{{"kind":"status-update","taskId":"{task}","contextId":"c","status":{{"state":"{state}"}},"final":{is_final}}}"#
    )
}

fn chunk(task: &str, text: &str, append: bool) -> String {
    format!(
        r#"{{"kind":"artifact-update","taskId":"{task}","contextId":"c","append":{append},"artifact":{{"artifactId":"a","parts":[{{"kind":"text","text":"{text}"}}]}}}}"#
    )
}

fn snapshot(state: &str, text: &str) -> String {
    format!(
        r#"{{"kind":"task","id":"t","contextId":"c","status":{{"state":"{state}"}},"artifacts":[{{"artifactId":"a","parts":[{{"kind":"text","text":"{text}"}}]}}]}}"#
    )
}

fn result(result: &str) -> Script {
    json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#))
}

#[tokio::test]
async fn garbage_an_endless_answer_and_a_redirect_fail_the_task() {
    let scripts: [fn() -> Script; 4] = [
        || answer(200, "content-type: application/json", "<html>"),
        || Script::Endless(events("data: "), vec![b'a'; 65_536]),
        || Script::Endless(b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\n\r\n".to_vec(), vec![b' '; 65_536]),
        || Script::Cut(b"HTTP/1.1 307 X\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n".to_vec()),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let upstream = calls(move |_, _| script()).await;
        let mut options = quick();
        options.answer_bytes_max = 1 << 20;
        let (_gateway, agent, _) = gateway(&upstream.url, options);
        let (state, text) = outcome(&agent, "go").await;
        assert_eq!(state, TaskState::Failed, "{number}: {text}");
        assert!(!text.contains("10.0.0.1"), "{text}");
    }
}

#[tokio::test]
async fn an_update_of_another_task_fails_the_task() {
    let upstream = calls(|_, _| {
        Script::Cut(events(
            &[
                event(None, &status("t", "working")),
                event(None, &chunk("t", "ab", false)),
                event(None, &status("other", "completed")),
            ]
            .concat(),
        ))
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let task = soon(agent.send_text("go")).await.unwrap().into_task().unwrap();
    let said = task.status.message.as_ref().unwrap().text();
    assert_eq!(
        (task.state(), said.as_str()),
        (TaskState::Failed, "The agent behind this one answered about another task")
    );
    assert_eq!(task.artifacts[0].text(), "ab", "what came before it, in the same packet, is shown");
}

#[tokio::test]
async fn an_upstream_that_ends_twice_has_ended_once() {
    let upstream = calls(|_, _| {
        Script::Cut(events(&[event(None, &status("t", "completed")), event(None, &status("t", "failed"))].concat()))
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    assert_eq!(outcome(&agent, "go").await.0, TaskState::Completed);
}

/// A stream that breaks in the middle is gone on with by a snapshot, and only what is new in it is passed on.
#[tokio::test]
async fn a_broken_stream_is_bridged_by_a_snapshot() {
    let upstream = calls(|_, asked| match asked.body.as_str() {
        body if body.contains("message/stream") => {
            Script::Cut(events(&[event(None, &status("t", "working")), event(None, &chunk("t", "ab", false))].concat()))
        }
        body if body.contains("tasks/resubscribe") => Script::Cut(events(
            &[
                event(None, &snapshot("working", "abcd")),
                event(None, &chunk("t", "ef", true)),
                event(None, &status("t", "completed")),
            ]
            .concat(),
        )),
        _ => answer(500, "", ""),
    })
    .await;
    let (_gateway, agent, handle) = gateway(&upstream.url, quick());
    let mut stream = soon(agent.stream_text("go")).await.unwrap();
    let shown = super::rest(&mut stream).await;
    assert_eq!(shown, ["task submitted", "working", "a=ab", "a+cd", "a+ef", "completed"]);
    assert_eq!(handle.counters().bridged(), 1);
}

/// Events of a stream that goes on without saying what was missed cannot be trusted: the task itself is asked for.
#[tokio::test]
async fn a_stream_that_goes_on_with_a_gap_is_not_used() {
    let upstream = calls(|_, asked| match asked.body.as_str() {
        body if body.contains("message/stream") => Script::Cut(events(&event(None, &chunk("t", "ab", false)))),
        body if body.contains("tasks/resubscribe") => Script::Stall(events(&event(None, &chunk("t", "ef", true)))),
        _ => result(&snapshot("completed", "abcdef")),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut stream = soon(agent.stream_text("go")).await.unwrap();
    assert_eq!(super::rest(&mut stream).await, ["task submitted", "a=ab", "a+cdef", "completed"]);
}

#[tokio::test]
async fn an_upstream_that_has_lost_the_task_fails_it_with_the_reason() {
    let upstream = calls(|_, asked| match asked.body.contains("message/stream") {
        true => Script::Cut(events(&event(None, &status("t", "working")))),
        false => json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}"#),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let (state, text) = outcome(&agent, "go").await;
    assert_eq!(state, TaskState::Failed);
    assert!(text.starts_with("The agent behind this one does not know the task any more"), "{text}");
}

#[tokio::test]
async fn a_message_whose_outcome_is_not_known_is_sent_again_only_if_that_is_asked_for() {
    let cut = || {
        calls(|call, _| match call {
            0 => Script::Cut(Vec::new()),
            _ => result(&snapshot("completed", "done")),
        })
    };
    let upstream = cut().await;
    let (_gateway, agent, handle) = gateway(&upstream.url, quick());
    let (state, text) = outcome(&agent, "go").await;
    assert_eq!(state, TaskState::Failed);
    assert!(text.starts_with("The outcome is not known"), "{text}");
    assert_eq!((sends(&upstream).len(), handle.counters().outcomes_unknown()), (1, 1));

    let upstream = cut().await;
    let mut options = quick();
    options.resend = Resend::Always;
    let (_gateway, agent, _) = gateway(&upstream.url, options);
    assert_eq!(outcome(&agent, "go").await.0, TaskState::Completed);
    let sends = sends(&upstream);
    assert_eq!(sends.len(), 2);
    assert!(sends[0].header("idempotency-key").is_some());
    assert_eq!(sends[0].header("idempotency-key"), sends[1].header("idempotency-key"));
    assert_eq!(message_id(&sends[0]), message_id(&sends[1]));
}

#[tokio::test]
async fn a_message_that_surely_did_not_arrive_is_tried_so_often_and_then_fails_its_task() {
    let upstream = calls(|_, _| answer(503, "", "")).await;
    let (_gateway, agent, handle) = gateway(&upstream.url, quick());
    let (state, text) = outcome(&agent, "go").await;
    assert_eq!(state, TaskState::Failed);
    assert!(text.starts_with("The agent behind this one could not be reached"), "{text}");
    assert_eq!((sends(&upstream).len(), handle.counters().retries()), (3, 2));
    // The breaker opens with the next failures, and then nothing is sent.
    outcome(&agent, "go").await;
    assert!(handle.is_down());
    let before = sends(&upstream).len();
    let refused = soon(agent.send_text("go")).await.unwrap_err();
    let Some(ProtocolError::Unavailable { reason, retry_after_s }) = refused.protocol_error() else {
        panic!("{refused}")
    };
    assert_eq!((reason.as_str(), *retry_after_s), ("the agent behind this one cannot be reached", 1));
    assert_eq!((sends(&upstream).len(), handle.counters().refused()), (before, 1));
    assert_eq!(agent.tasks(ListTasks::default()).await.unwrap().tasks.len(), 2, "of what was refused nothing is kept");
}

#[tokio::test]
async fn an_upstream_that_never_ends_can_be_canceled() {
    let upstream = calls(|_, asked| match asked.body.as_str() {
        body if body.contains("message/stream") => Script::Stall(events(&event(None, &status("t", "working")))),
        body if body.contains("tasks/cancel") => result(&snapshot("canceled", "so far")),
        _ => answer(500, "", ""),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut stream = soon(agent.stream_text("go")).await.unwrap();
    for expected in ["task submitted", "working"] {
        assert_eq!(super::shown(&soon(stream.next()).await.unwrap().unwrap().update.update), expected);
    }
    let id = stream.task().unwrap().id.clone();
    let canceled = tokio::time::timeout(Duration::from_secs(30), agent.cancel(&id)).await.unwrap().unwrap();
    assert_eq!((canceled.state(), canceled.artifacts[0].text().as_str()), (TaskState::Canceled, "so far"));
}

/// The upstream goes away between the cancellation and what came of it.
#[tokio::test]
async fn a_cancel_is_asked_about_again_when_the_upstream_breaks_off() {
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let upstream = calls(move |_, asked| match asked.body.as_str() {
        body if body.contains("message/stream") => Script::Stall(events(&event(None, &status("t", "working")))),
        body if body.contains("tasks/cancel") => result(&snapshot("working", "so")),
        body if body.contains("tasks/get") => match looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Script::Cut(Vec::new()),
            _ => result(&snapshot("canceled", "so far")),
        },
        _ => answer(500, "", ""),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut stream = soon(agent.stream_text("go")).await.unwrap();
    while stream.task().is_none_or(|task| task.state() != TaskState::Working) {
        soon(stream.next()).await.unwrap().unwrap();
    }
    let id = stream.task().unwrap().id.clone();
    let canceled = tokio::time::timeout(Duration::from_secs(30), agent.cancel(&id)).await.unwrap().unwrap();
    assert_eq!((canceled.state(), canceled.artifacts[0].text().as_str()), (TaskState::Canceled, "so far"));
}

/// A task that waits for an answer is canceled at a gateway that has just been started, and cannot read the card of the upstream at once.
#[tokio::test]
async fn a_cancel_after_a_restart_reaches_an_upstream_that_is_away_for_a_moment() {
    let cards = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Scripted::start(move |_, asked| match asked.body.as_str() {
        "" => match cards.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Script::Cut(Vec::new()),
            _ => json(CARD),
        },
        body if body.contains("message/stream") => Script::Cut(events(&event(None, &status("t", "input-required")))),
        body if body.contains("tasks/cancel") => result(&snapshot("canceled", "")),
        _ => answer(500, "", ""),
    })
    .await;
    let store = store();
    let (first, agent) = gateway_on(&store, &upstream.url);
    let task = soon(agent.send_text("go")).await.unwrap().into_task().unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    first.shutdown(Duration::ZERO).await;
    let (_second, agent) = gateway_on(&store, &upstream.url);
    assert_eq!(soon(agent.cancel(&task.id)).await.unwrap().state(), TaskState::Canceled);
    let cancels = upstream.asked().into_iter().filter(|asked| asked.body.contains("tasks/cancel"));
    assert_eq!(cancels.count(), 1, "{:?}", upstream.lines());
}

/// The message is on its way, and its task at the upstream is not known: it is asked for by sending the message again.
#[tokio::test]
async fn a_cancel_before_the_upstream_has_answered_reaches_it_all_the_same() {
    let card = CARD
        .replace(r#""streaming":true"#, &format!(r#""streaming":true,"extensions":[{{"uri":"{IDEMPOTENT_SENDS}"}}]"#));
    let sent = std::sync::atomic::AtomicUsize::new(0);
    let upstream = Scripted::start(move |_, asked| match asked.body.as_str() {
        "" => json(&card),
        body if body.contains("message/stream") => match sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Script::Stall(Vec::new()),
            _ => Script::Stall(events(&event(None, &status("t", "working")))),
        },
        body if body.contains("tasks/cancel") => result(&snapshot("canceled", "so far")),
        _ => answer(500, "", ""),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut send = SendMessage::new(super::message("m-1", "go"));
    send.return_immediately = true;
    let task = soon(agent.send_with(send)).await.unwrap().into_task().unwrap();
    // The message has left.
    while sends(&upstream).is_empty() {
        tokio::task::yield_now().await;
    }
    let canceled = tokio::time::timeout(Duration::from_secs(30), agent.cancel(&task.id)).await.unwrap().unwrap();
    assert_eq!((canceled.state(), canceled.artifacts[0].text().as_str()), (TaskState::Canceled, "so far"));
    let cancels = upstream.asked().into_iter().filter(|asked| asked.body.contains("tasks/cancel"));
    assert!(cancels.count() == 1 && sends(&upstream).len() == 2);
}

#[tokio::test]
async fn an_upstream_that_refuses_the_context_is_sent_the_message_without_one() {
    let upstream = calls(|call, _| match call {
        0 => json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown contextId"}}"#),
        _ => Script::Cut(events(
            &[event(None, &status("t", "working")), event(None, &status("t", "completed"))].concat(),
        )),
    })
    .await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    assert_eq!(outcome(&agent, "go").await.0, TaskState::Completed);
    let contexts: Vec<bool> = sends(&upstream).iter().map(|asked| asked.body.contains("contextId")).collect();
    assert_eq!(contexts, [true, false]);
    let ids: Vec<String> = sends(&upstream).iter().map(message_id).collect();
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn an_upstream_that_stays_away_while_it_is_at_work_fails_the_task() {
    let upstream = calls(|_, asked| match asked.body.contains("message/stream") {
        true => Script::Cut(events(&event(None, &status("t", "working")))),
        false => answer(503, "", ""),
    })
    .await;
    let mut options = quick();
    options.lost_max = Duration::ZERO;
    let (_gateway, agent, _) = gateway(&upstream.url, options);
    let (state, text) = outcome(&agent, "go").await;
    assert_eq!(state, TaskState::Failed);
    assert!(text.starts_with("The agent behind this one could not be reached for 0 s"), "{text}");
}

/// The messages that were sent.
fn sends(upstream: &Scripted) -> Vec<Asked> {
    upstream.asked().into_iter().filter(|asked| asked.body.contains("message/")).collect()
}

fn message_id(asked: &Asked) -> String {
    let body: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
    body["params"]["message"]["messageId"].as_str().unwrap().to_owned()
}
