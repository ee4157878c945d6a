//! How much of a conversation is shown, by each operation that shows a task.

use serde_json::Value;
use switchboard_core::call::{ListTasks, Request, SendMessage};
use switchboard_core::model::{TaskId, Update};
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{Client, reply_to, say, soon};
use crate::support::pictures::{next_frame, wire};
use crate::support::puppets::from_fn;
use crate::support::world::{World, registered};

const LENGTHS: [Option<u32>; 5] = [None, Some(0), Some(1), Some(2), Some(100)];

/// What is shown of the history `user: a, agent: which?, user: b`.
const SHOWN: [&str; 5] = ["a, which?, b", "nothing", "b", "which?, b", "a, which?, b"];

/// The texts of a task's history; `nothing` if the key is not there.
fn shown(task: &Value) -> String {
    let Some(history) = task.get("history") else { return "nothing".to_owned() };
    let texts = history.as_array().unwrap().iter().map(|message| message["parts"][0]["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join(", ")
}

/// A world, and a task that has asked and been answered.
async fn conversation() -> (World, TaskId) {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        if turn.number() == 1 {
            turn.ask("which?").await?;
        } else {
            turn.working("hm").await?;
        }
        Ok(())
    });
    let world = World::of(registered("asking", agent));
    let client = world.client().user("alice");
    let task = client.send(say("a")).await.unwrap();
    client.send(reply_to(&task.id, "b")).await.unwrap();
    (world, task.id.clone())
}

async fn task_shown(client: &Client, request: Request) -> String {
    let reply = wire(&soon(client.call(request)).await.unwrap());
    shown(reply.get("task").unwrap_or(&reply))
}

#[tokio::test(start_paused = true)]
async fn get_task_shows_the_last_messages_in_order() {
    let (world, id) = conversation().await;
    for (history_length, expected) in LENGTHS.into_iter().zip(SHOWN) {
        let get = Request::GetTask { id: id.clone(), history_length };
        assert_eq!(task_shown(&world.client().user("alice"), get).await, expected, "{history_length:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn list_tasks_shows_the_last_messages_in_order() {
    let (world, _) = conversation().await;
    for (history_length, expected) in LENGTHS.into_iter().zip(SHOWN) {
        let list = ListTasks { history_length, ..ListTasks::default() };
        let page = wire(&world.client().user("alice").call(Request::ListTasks(list)).await.unwrap());
        assert_eq!(shown(&page["tasks"][0]), expected, "{history_length:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_shows_the_last_messages_in_order() {
    let (world, id) = conversation().await;
    for (history_length, expected) in LENGTHS.into_iter().zip(SHOWN) {
        // A repeat, so that the conversation stays as it is.
        let send = SendMessage { history_length, ..reply_to(&id, "b") };
        let alice = world.client().user("alice");
        assert_eq!(task_shown(&alice, Request::SendMessage(send.clone().into())).await, expected, "{history_length:?}");
        let mut stream = alice.stream(send).await.unwrap();
        match &next_frame(&mut stream).await.unwrap().unwrap().update.update {
            Update::Task(view) => {
                assert_eq!(view.history().len(), expected.split(", ").filter(|w| *w != "nothing").count());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_answer_is_cut_as_well() {
    for pure in [true, false] {
        let traits = if pure { Traits::pure() } else { Traits::default() };
        let agent = from_fn(traits, |turn: Turn| async move { Ok(turn.answer("done").await?) });
        let world = World::of(registered("quick", agent));
        let send = SendMessage { history_length: Some(0), ..say("hello") };
        assert_eq!(task_shown(&world.client(), Request::SendMessage(send.into())).await, "nothing", "pure: {pure}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_is_not_what_is_kept() {
    let (world, id) = conversation().await;
    let alice = world.client().user("alice");
    task_shown(&alice, Request::GetTask { id: id.clone(), history_length: Some(0) }).await;
    assert_eq!(task_shown(&alice, Request::GetTask { id, history_length: None }).await, SHOWN[0]);
}
