//! A foreign task is a missing task, for every caller and in every operation, down to the byte.

use switchboard_core::call::{ListTasks, Request};
use switchboard_core::model::{TaskId, TaskState};
use switchboard_engine::runs::{Traits, Turn};

use crate::support::callers::{Client, hook, reply_to, say};
use crate::support::on_both_stores;
use crate::support::pictures::refusal;
use crate::support::puppets::from_fn;
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_foreign_task_is_a_missing_task_in_every_operation);

/// Every operation that names a task.
fn operations(id: &TaskId) -> Vec<Request> {
    let task_id = id.clone();
    let config = || "c".into();
    vec![
        Request::SendMessage(reply_to(id, "hello").into()),
        Request::SendStreamingMessage(reply_to(id, "hello").into()),
        Request::GetTask { id: id.clone(), history_length: None },
        Request::CancelTask { id: id.clone(), metadata: None },
        Request::SubscribeToTask { id: id.clone() },
        Request::CreatePushConfig(hook(id.as_str(), "c").into()),
        Request::GetPushConfig { task_id: task_id.clone(), id: config() },
        Request::ListPushConfigs { task_id: task_id.clone(), page_size: None, page_token: None },
        Request::DeletePushConfig { task_id, id: config() },
    ]
}

fn agents(stock: Stock) -> World {
    let ask = || {
        from_fn(Traits::default(), |turn: Turn| async move {
            if turn.text() == "ask" {
                turn.ask("which?").await?;
            }
            Ok(())
        })
    };
    Setup::on(stock).agent(registered("one", ask())).agent(registered("other", ask())).start()
}

/// All callers that are not alice of acme calling agent one.
fn strangers(world: &World) -> Vec<(&'static str, Client)> {
    vec![
        ("another principal", world.client().user_of("acme", "bob")),
        ("another tenant", world.client().user_of("globex", "alice")),
        ("no tenant", world.client().user_of("", "alice")),
        ("another agent", world.client_of("other").user_of("acme", "alice")),
        ("nobody", world.client()),
        ("tenant and principal swapped", world.client().user_of("alice", "acme")),
    ]
}

async fn a_foreign_task_is_a_missing_task_in_every_operation(stock: Stock) {
    let world = agents(stock);
    let alice = world.client().user_of("acme", "alice");
    let paused = alice.send(say("ask")).await.unwrap();
    let ended = alice.send(say("done")).await.unwrap();
    for task in [&paused, &ended] {
        alice.register(hook(task.id.as_str(), "c")).await.unwrap();
        let missing = TaskId::from("00000000-0000-4000-8000-ffffffffffff");
        for (who, stranger) in strangers(&world) {
            for (foreign, unknown) in operations(&task.id).into_iter().zip(operations(&missing)) {
                let operation = foreign.operation();
                for (resuming, client) in [("", stranger.clone()), (" resuming", stranger.after(0))] {
                    if !resuming.is_empty() && operation != "SubscribeToTask" {
                        continue;
                    }
                    let what = format!("{operation}{resuming} by {who} on a {} task", task.state().word());
                    let foreign =
                        client.call(foreign.clone()).await.err().unwrap_or_else(|| panic!("{what} went through"));
                    let unknown = client.call(unknown.clone()).await.err().unwrap();
                    let expected = refusal(&unknown).replace(missing.as_str(), task.id.as_str());
                    assert_eq!(refusal(&foreign), expected, "{what}");
                }
            }
            assert_eq!(stranger.list(ListTasks::default()).await.unwrap().total_size, 0, "{who}");
        }
        assert_eq!(alice.task(&task.id).await.unwrap(), *task, "nothing happened to it");
        assert_eq!(alice.configs(&task.id).await.unwrap().configs, [hook(task.id.as_str(), "c")]);
    }
    assert_eq!(alice.list(ListTasks::default()).await.unwrap().total_size, 2);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_context_is_not_a_way_to_a_task() {
    let world = agents(Stock::memory());
    let (alice, bob) = (world.client().user("alice"), world.client().user("bob"));
    let task = alice.send(say("ask")).await.unwrap();
    let in_context = ListTasks { context_id: Some(task.context_id.clone()), ..ListTasks::default() };
    assert_eq!(bob.list(in_context.clone()).await.unwrap().total_size, 0);
    // Bob may use the same name for a context of his own; the two never meet.
    let mut send = say("done");
    send.message.context_id = Some(task.context_id.clone());
    let of_bob = bob.send(send).await.unwrap();
    assert_eq!(of_bob.context_id, task.context_id);
    assert_eq!(bob.list(in_context.clone()).await.unwrap().total_size, 1);
    assert_eq!(alice.list(in_context).await.unwrap().tasks[0].task.id, task.id);
}

#[tokio::test(start_paused = true)]
async fn a_message_id_of_somebody_else_is_a_new_message() {
    let world = agents(Stock::memory());
    let mut ids = Vec::new();
    let alice = world.client().user_of("acme", "alice");
    for (_, client) in [("alice", alice)].into_iter().chain(strangers(&world)) {
        let task = client.send(say("done")).await.unwrap();
        assert_eq!(task.state(), TaskState::Completed);
        ids.push(task.id.clone());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_agent_is_told_whose_task_it_is() {
    let agent = from_fn(Traits::default(), |turn: Turn| async move {
        let owner = turn.owner();
        Ok(turn.answer(format!("{} of {}", owner.principal, owner.tenant)).await?)
    });
    let world = World::of(registered("polite", agent));
    let task = world.client().user_of("acme", "alice").send(say("who am I?")).await.unwrap();
    assert_eq!(task.artifacts[0].text(), "alice of acme");
}
