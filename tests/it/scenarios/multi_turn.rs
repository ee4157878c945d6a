//! Conversations: which ids a message may carry, and what happens to the agent's question.

use expect_test::expect;
use switchboard_core::call::{ListTasks, SendMessage};
use switchboard_core::model::{ContextId, TaskId, TaskState};
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{Client, reply_to, say};
use crate::support::on_both_stores;
use crate::support::pictures::{picture, refusal};
use crate::support::puppets::{echo, from_fn};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(the_agents_question_moves_into_history, ids_of_a_conversation_are_checked);

fn asking() -> switchboard_engine::runs::AgentSource {
    from_fn(Traits::default(), |turn: Turn| async move {
        match turn.text().strip_prefix("ask ") {
            Some(question) => turn.ask(question).await?,
            None => turn.answer(turn.text()).await?,
        }
        Ok(())
    })
}

fn in_context(context: &str, send: SendMessage) -> SendMessage {
    let mut send = send;
    send.message.context_id = Some(context.into());
    send
}

async fn the_agents_question_moves_into_history(stock: Stock) {
    let world = Setup::on(stock).agent(registered("asking", asking())).start();
    let client = world.client();
    let task = client.send(say("ask which size?")).await.unwrap();
    expect![[r#"
        input-required "which size?"
        user: ask which size?
    "#]]
    .assert_eq(&picture(&task));
    let task = client.send(reply_to(&task.id, "ask and which colour?")).await.unwrap();
    expect![[r#"
        input-required "and which colour?"
        user: ask which size?
        agent: which size?
        user: ask and which colour?
    "#]]
    .assert_eq(&picture(&task));
    let task = client.send(reply_to(&task.id, "red")).await.unwrap();
    expect![[r#"
        completed
        user: ask which size?
        agent: which size?
        user: ask and which colour?
        agent: and which colour?
        user: red
        artifact-3-1: red
    "#]]
    .assert_eq(&picture(&task));
    assert_eq!(client.task(&task.id).await.unwrap(), task);
}

async fn ids_of_a_conversation_are_checked(stock: Stock) {
    let world = Setup::on(stock).agent(registered("asking", asking())).start();
    let client = world.client();

    // Neither id: both are made.
    let first = client.send(say("ask a")).await.unwrap();
    assert!(!first.id.is_empty() && !first.context_id.is_empty());
    let said = &first.history[0];
    assert_eq!((said.task_id.as_ref(), said.context_id.as_ref()), (Some(&first.id), Some(&first.context_id)));

    // A context alone: a new task in it, whether it was known or not.
    let second = client.send(in_context(first.context_id.as_str(), say("ask b"))).await.unwrap();
    assert_eq!(second.context_id, first.context_id);
    assert_ne!(second.id, first.id);
    let third = client.send(in_context("my own context", say("ask c"))).await.unwrap();
    assert_eq!(third.context_id, ContextId::from("my own context"));

    // A task alone: its context is inferred.
    let answered = client.send(reply_to(&first.id, "ask again")).await.unwrap();
    assert_eq!((&answered.id, &answered.context_id), (&first.id, &first.context_id));
    let said = answered.history.last().unwrap();
    assert_eq!((said.task_id.as_ref(), said.context_id.as_ref()), (Some(&first.id), Some(&first.context_id)));

    // Both, matching.
    let both = in_context(first.context_id.as_str(), reply_to(&first.id, "enough"));
    assert_eq!(client.send(both).await.unwrap().state(), TaskState::Completed);

    // Both, not matching: nothing happens to the task.
    let mixed = in_context("my own context", reply_to(&second.id, "hello"));
    expect![[r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"Invalid parameters: message.contextId: does not match the context of task TASK; leave it out to use the task's own","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.contextId","description":"does not match the context of task TASK; leave it out to use the task's own"}]}]}}"#]]
    .assert_eq(&refused(&client, mixed, &second.id).await);
    assert_eq!(client.task(&second.id).await.unwrap(), second);

    // A task that does not exist: clients cannot choose the ids of new tasks.
    let unknown = TaskId::from("mine");
    expect![[r#"{"error":{"code":404,"status":"NOT_FOUND","message":"Task not found","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"TASK"}}]}}"#]]
    .assert_eq(&refused(&client, reply_to(&unknown, "hello"), &unknown).await);

    // A task that has ended.
    expect![[r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"Task TASK is completed and takes no more messages","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}"#]]
    .assert_eq(&refused(&client, reply_to(&first.id, "one more"), &first.id).await);
    assert_eq!(client.list(ListTasks::default()).await.unwrap().total_size, 3);
}

/// The refusal of a send, with the task's id replaced; both kinds of send refuse alike.
async fn refused(client: &Client, send: SendMessage, id: &TaskId) -> String {
    let blocking = refusal(&client.send(send.clone()).await.unwrap_err());
    let streaming = refusal(&client.stream(send).await.err().unwrap());
    assert_eq!(blocking, streaming);
    blocking.replace(id.as_str(), "TASK")
}

#[tokio::test(start_paused = true)]
async fn every_terminal_task_refuses_messages() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        match turn.text().as_str() {
            "complete" => turn.complete("bye").await?,
            "fail" => turn.fail("broken").await?,
            "reject" => turn.reject("never").await?,
            _ => turn.cancelled().await,
        }
        Ok(())
    });
    let world = World::of(registered("ending", agent));
    let client = world.client();
    for (text, state) in [
        ("complete", TaskState::Completed),
        ("fail", TaskState::Failed),
        ("reject", TaskState::Rejected),
        ("cancel", TaskState::Canceled),
    ] {
        let task = client.start(text).await;
        if state == TaskState::Canceled {
            client.cancel(&task.id).await.unwrap();
        }
        client.task_in(&task.id, state).await;
        let error = client.send(reply_to(&task.id, "more")).await.unwrap_err();
        assert_eq!(error.to_string(), format!("Task {} is {} and takes no more messages", task.id, state.word()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_authorization_takes_messages() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        if turn.number() == 1 {
            turn.require_auth("sign in first").await?;
        } else {
            turn.answer(turn.text()).await?;
        }
        Ok(())
    });
    let world = World::of(registered("guarded", agent));
    let task = world.client().send(say("open the door")).await.unwrap();
    expect![[r#"
        auth-required "sign in first"
        user: open the door
    "#]]
    .assert_eq(&picture(&task));
    let task = world.client().send(reply_to(&task.id, "I have")).await.unwrap();
    expect![[r#"
        completed
        user: open the door
        agent: sign in first
        user: I have
        artifact-2-1: I have
    "#]]
    .assert_eq(&picture(&task));
}

#[tokio::test(start_paused = true)]
async fn a_follow_up_to_an_ended_task_is_a_new_task_in_its_context() {
    let world = World::of(registered("echo", echo()));
    let client = world.client();
    let ended = client.send(say("first")).await.unwrap();
    let next = client.send(in_context(ended.context_id.as_str(), say("second"))).await.unwrap();
    assert_ne!(next.id, ended.id);
    let both = ListTasks { context_id: Some(ended.context_id.clone()), ..ListTasks::default() };
    assert_eq!(client.listed(both).await, ["second", "first"]);
}
