//! What the upstream does arrives at the gateway's caller as it was, under ids of the gateway.

use switchboard::call::ListTasks;
use switchboard::client::Client;
use switchboard::model::Update;
use switchboard::{AgentBuilder, Json, Limits, Part, Replies, Server, TaskState};
use switchboard_hub::relay::{Relay, Resend};

use super::{Upstream, gateway, message, outcome, quick, rest};
use crate::support::callers::soon;

#[tokio::test]
async fn every_update_of_the_upstream_is_passed_on_once_and_in_order() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut stream = soon(agent.stream_text("steps 3")).await.unwrap();
    let mut shown = Vec::new();
    while let Some(frame) = soon(stream.next()).await {
        shown.push(super::shown(&frame.unwrap().update.update));
        // The upstream takes the next step when the one before has come through.
        upstream.permits.add_permits(usize::from(shown.len() >= 2));
    }
    let expected = ["task submitted", "working starting", "out=1;", "out+2;", "out+3; last", "completed finished"];
    assert_eq!(shown, expected);
    let ours = stream.task().unwrap().clone();
    let theirs = upstream.client().await.tasks(ListTasks::default()).await.unwrap().tasks;
    assert_eq!(theirs.len(), 1);
    assert!(theirs[0].task.id != ours.id && theirs[0].task.context_id != ours.context_id, "ids are the gateway's own");
    let said = ours.status.message.as_ref().unwrap();
    assert_eq!((said.task_id.as_ref(), said.context_id.as_ref()), (Some(&ours.id), Some(&ours.context_id)));
    assert_eq!(ours.artifacts[0].name(), Some("Out"));
}

/// Once the upstream has begun a task, the gateway does not wait for a direct answer, however long it might.
#[tokio::test]
async fn a_task_of_which_the_upstream_says_nothing_more_is_shown_at_once() {
    let upstream = Upstream::start_with(|agent| agent.traits(|traits| traits.with_replies(Replies::Task))).await;
    let relay = Relay::new(&upstream.url, Client::builder(), quick()).unwrap();
    let limits = Limits { birth_wait_ms: 3_600_000, ..Limits::default() };
    let server = Server::builder().engine_limits(limits).agent(AgentBuilder::new("Relay", relay)).build().unwrap();
    let agent = server.local("relay").unwrap();
    let mut stream = soon(agent.stream_text("silence")).await.unwrap();
    let first = soon(stream.next()).await.unwrap().unwrap();
    assert_eq!(super::shown(&first.update.update), "task submitted");
    soon(agent.cancel(&stream.task().unwrap().id)).await.unwrap();
}

#[tokio::test]
async fn each_state_of_the_upstream_arrives_as_such() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    assert_eq!(outcome(&agent, "fail").await, (TaskState::Failed, "broken".to_owned()));
    assert_eq!(outcome(&agent, "reject").await, (TaskState::Rejected, "not this".to_owned()));
    assert_eq!(outcome(&agent, "ask").await, (TaskState::InputRequired, "which?".to_owned()));
    assert_eq!(outcome(&agent, "auth").await, (TaskState::AuthRequired, "log in".to_owned()));
    assert_eq!(outcome(&agent, "hello").await, (TaskState::Completed, String::new()));
    let direct = soon(agent.send_text("reply")).await.unwrap().into_message().expect("no task");
    assert_eq!((direct.text().as_str(), direct.task_id.clone()), ("directly", None));
}

#[tokio::test]
async fn an_authorization_that_comes_later_is_waited_for() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let paused = soon(agent.send_text("auth")).await.unwrap().into_task().unwrap();
    let mut stream = soon(agent.subscribe(&paused.id)).await.unwrap();
    upstream.permits.add_permits(1);
    assert_eq!(rest(&mut stream).await, ["task auth-required", "working", "artifact-1-1=in last", "completed"]);
}

#[tokio::test]
async fn the_answer_to_a_question_goes_on_with_the_same_task_of_the_upstream() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let asked = soon(agent.send_text("ask me")).await.unwrap().into_task().unwrap();
    let done = soon(agent.reply_text(&asked.id, "the red one")).await.unwrap().into_task().unwrap();
    assert_eq!((done.state(), done.artifacts[0].text().as_str()), (TaskState::Completed, "the red one"));
    let history: Vec<String> = done.history.iter().map(|message| message.text()).collect();
    assert_eq!(history, ["ask me", "which?", "the red one"]);
    let seen = upstream.seen();
    assert!(seen[1].task_id.is_some() && seen[0].context_id == seen[1].context_id, "{seen:?}");
    let theirs = upstream.client().await.tasks(ListTasks::default()).await.unwrap().tasks;
    assert_eq!(theirs.len(), 1);
}

#[tokio::test]
async fn one_context_of_two_callers_is_two_at_the_upstream_and_stays_the_same_for_each() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    for caller in ["ada", "bob", "ada"] {
        let mut message = message(&format!("m-{caller}-{}", upstream.seen().len()), "hello");
        message.context_id = Some("shared".into());
        soon(agent.clone().as_caller("", caller).send(message)).await.unwrap();
    }
    let contexts: Vec<_> = upstream.seen().into_iter().map(|message| message.context_id.unwrap()).collect();
    assert_eq!(contexts[0], contexts[2]);
    assert!(contexts[0] != contexts[1] && contexts[0].as_str() != "shared");
}

#[tokio::test]
async fn files_and_data_pass_unchanged_and_credentials_do_not_pass() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let mut sent = message("m-1", "hello");
    let file = Part::raw(vec![0, 159, 146, 150]).with_filename("a.bin").with_media_type("application/octet-stream");
    let data = Part::json(Json::from_trusted(r#"{"n":[1,2]}"#));
    sent.parts.extend([file, data]);
    sent.metadata = Some(Json::from_trusted(r#"{"accessToken":"secret","colour":"red"}"#));
    soon(agent.send(sent.clone())).await.unwrap();
    let seen = upstream.seen();
    assert_eq!(seen[0].parts, sent.parts);
    assert_eq!(seen[0].metadata.as_ref().map(Json::as_str), Some(r#"{"colour":"red"}"#));
    assert_ne!(seen[0].message_id, sent.message_id);
}

#[tokio::test]
async fn a_cancel_reaches_the_upstream_at_work_and_the_upstream_that_waits_for_an_answer() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let theirs = upstream.client().await;
    for text in ["wait", "ask"] {
        let mut stream = soon(agent.stream_text(text)).await.unwrap();
        for expected in ["task submitted", if text == "ask" { "input-required which?" } else { "working waiting" }] {
            let frame = soon(stream.next()).await.unwrap().unwrap();
            assert_eq!(super::shown(&frame.update.update), expected);
        }
        let id = stream.task().unwrap().id.clone();
        let canceled = soon(agent.cancel(&id)).await.unwrap();
        assert_eq!(canceled.state(), TaskState::Canceled);
        let tasks = theirs.tasks(ListTasks::default()).await.unwrap().tasks;
        assert!(tasks.iter().all(|view| view.task.state() == TaskState::Canceled), "{text}");
    }
}

#[tokio::test]
async fn tasks_that_a_message_refers_to_are_those_of_the_upstream_and_others_are_refused() {
    let upstream = Upstream::start().await;
    let (_gateway, agent, _) = gateway(&upstream.url, quick());
    let first = soon(agent.send_text("hello")).await.unwrap().into_task().unwrap();
    let theirs = upstream.client().await.tasks(ListTasks::default()).await.unwrap().tasks[0].task.id.clone();
    let refer = |id: &str, to: &switchboard::TaskId| {
        let mut sent = message(id, "more of it");
        sent.reference_task_ids = vec![to.clone()];
        sent
    };
    soon(agent.send(refer("m-2", &first.id))).await.unwrap();
    assert_eq!(upstream.seen()[1].reference_task_ids, [theirs]);
    let refused = soon(agent.send(refer("m-3", &"unknown".into()))).await.unwrap().into_task().unwrap();
    let reason = refused.status.message.as_ref().unwrap().text();
    assert_eq!(refused.state(), TaskState::Rejected);
    assert!(reason.starts_with("message.referenceTaskIds: ") && reason.contains("\"unknown\""), "{reason}");
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn what_is_too_large_for_one_write_is_passed_on_in_pieces() {
    let upstream = Upstream::start().await;
    let relay = Relay::new(&upstream.url, Client::builder(), quick()).unwrap();
    let limits = Limits { reply_bytes_max: 64 << 10, ..Limits::default() };
    let server = Server::builder().engine_limits(limits).agent(AgentBuilder::new("Relay", relay)).build().unwrap();
    let agent = server.local("relay").unwrap();
    let text = "0123456789".repeat(30_000);
    let mut stream = soon(agent.stream_text(&text)).await.unwrap();
    let mut written = String::new();
    let mut writes = 0;
    while let Some(frame) = soon(stream.next()).await {
        if let Update::Artifact(update) = &frame.unwrap().update.update {
            assert_eq!((update.append, update.artifact.artifact_id.as_str()), (writes > 0, "artifact-1-1"));
            written.push_str(&update.artifact.text());
            writes += 1;
        }
    }
    assert!(written == text && writes > 5, "{} bytes in {writes} writes", written.len());
}

#[tokio::test]
async fn without_a_stream_to_be_had_the_upstream_is_asked_until_it_is_done() {
    let upstream = Upstream::start().await;
    let mut options = quick();
    options.streams_max = 0;
    let (_gateway, agent, handle) = gateway(&upstream.url, options);
    upstream.permits.add_permits(2);
    let task = soon(agent.send_text("steps 2")).await.unwrap().into_task().unwrap();
    assert_eq!((task.state(), task.artifacts[0].text().as_str()), (TaskState::Completed, "1;2;"));
    assert_eq!((handle.in_flight(), handle.streams_open()), (0, 0));
}

#[tokio::test]
async fn an_upstream_without_streams_is_asked_until_it_is_done() {
    let upstream = Upstream::start_with(|agent| agent.streaming(false)).await;
    let mut options = quick();
    options.resend = Resend::Always;
    let (_gateway, agent, _) = gateway(&upstream.url, options);
    let mut stream = soon(agent.stream_text("steps 2")).await.unwrap();
    let mut shown = Vec::new();
    while let Some(frame) = soon(stream.next()).await {
        shown.push(super::shown(&frame.unwrap().update.update));
        // The next step is taken when the one before was seen.
        if shown.last().is_some_and(|last| last.starts_with("working") || last.starts_with("out")) {
            upstream.permits.add_permits(1);
        }
    }
    assert_eq!(shown, ["task submitted", "working starting", "out=1;", "out+2;", "completed finished"]);
}
