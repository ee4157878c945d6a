//! Tasks with more in them than a reply may hold: every reader gets links and stays within bounds.

use std::sync::Arc;

use switchboard_core::call::{ListTasks, Reply, Request, SendMessage};
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Part, PartContent, Task, TaskState, Update};
use switchboard_engine::runs::{AgentError, AgentSource, Traits, Turn};

use crate::support::callers::{hook, say, soon};
use crate::support::hooks::Hooks;
use crate::support::on_both_stores;
use crate::support::pictures::next_frame;
use crate::support::puppets::{from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(every_reader_of_a_large_task_gets_a_link, a_write_that_no_reply_could_hold_is_the_agents_mistake);

const REPLY_BYTES_MAX: u64 = 256 << 10;

fn world(stock: Stock, agent: AgentSource) -> World {
    Setup::on(stock).limits(|limits| limits.reply_bytes_max = REPLY_BYTES_MAX).agent(registered("large", agent)).start()
}

/// Writes ten pieces of 100 KB and a note.
async fn write_much(turn: &Turn) -> Result<(), AgentError> {
    let mut writer = turn.artifact_writer().with_id("file").with_name("A file");
    for piece in 0..10 {
        writer.parts(vec![Part::raw(vec![piece; 100_000])]).await?;
    }
    turn.artifact_writer().with_id("note").finish(vec![Part::text("small")]).await?;
    Ok(())
}

fn check(task: &Arc<Task>) {
    let [file, note] = &task.artifacts[..] else { panic!("two artifacts, not {}", task.artifacts.len()) };
    assert_eq!((file.name(), file.parts.len()), (Some("A file"), 1));
    assert_eq!(file.parts[0].content, PartContent::Url(format!("tasks/{}/artifacts/file", task.id)));
    assert_eq!(note.text(), "small");
}

async fn every_reader_of_a_large_task_gets_a_link(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = world(stock, agent);
    let client = world.client();
    let sending = client.sending(say("go"));
    let act = acts.next().await;
    write_much(&act.turn).await.unwrap();
    let id = act.turn.task().id.clone();

    check(&client.task(&id).await.unwrap());
    let page = client.list(ListTasks { include_artifacts: true, ..ListTasks::default() }).await.unwrap();
    check(&page.tasks[0].task);
    let mut subscribed = client.subscribe(&id).await.unwrap();
    let snapshot = next_frame(&mut subscribed).await.unwrap().unwrap();
    let Update::Task(view) = &snapshot.update.update else { panic!("a snapshot comes first") };
    check(&view.task);
    // The single updates are there whole for those who follow, each within the limit.
    let mut resumed = client.after(0).subscribe(&id).await.unwrap();
    for _ in 0..12 {
        let frame = next_frame(&mut resumed).await.unwrap().unwrap();
        let mut encoded = Vec::new();
        v1_0::encode_update(&frame.update.update, &mut encoded);
        assert!((encoded.len() as u64) < REPLY_BYTES_MAX);
        if let Update::Artifact(update) = &frame.update.update {
            assert!(!matches!(update.artifact.parts[0].content, PartContent::Url(_)));
        }
    }
    act.returns();
    check(&soon(sending).await.unwrap().unwrap());
    let Reply::Task(view) = client.call(Request::GetTask { id, history_length: None }).await.unwrap() else {
        panic!("a task is answered")
    };
    let mut encoded = Vec::new();
    v1_0::encode_task(&view, &mut encoded);
    assert!((encoded.len() as u64) < REPLY_BYTES_MAX);
}

async fn a_write_that_no_reply_could_hold_is_the_agents_mistake(stock: Stock) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        turn.artifact_writer().finish(vec![Part::raw(vec![0; 300_000])]).await?;
        Ok(())
    });
    let world = world(stock, agent);
    let client = world.client();
    let refused = client.send(say("go")).await;
    assert!(matches!(refused, Err(ProtocolError::InvalidAgentResponse { .. })), "{refused:?}");
    let task =
        client.list(ListTasks { include_artifacts: true, ..ListTasks::default() }).await.unwrap().tasks.remove(0).task;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.artifacts, []);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_gets_each_piece_within_the_limit() {
    let hooks = Hooks::new();
    let agent = from_fn(Traits::default(), |turn: Turn| async move { write_much(&turn).await });
    let setup = Setup::new().limits(|limits| limits.reply_bytes_max = REPLY_BYTES_MAX).webhook(hooks.clone());
    let world = setup.agent(registered("large", agent)).start();
    let send = SendMessage { push_config: Some(hook("", "c")), ..say("go") };
    world.client().send(send).await.unwrap();
    let calls = hooks.calls(13).await;
    assert!(calls.iter().all(|call| (call.body.len() as u64) < REPLY_BYTES_MAX));
}
