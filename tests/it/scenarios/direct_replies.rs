//! Agents that may answer with a message and no task: when a task is made of it all the same, and that no caller sees
//! one before.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::{ListTasks, Reply, Request, SendMessage};
use switchboard_core::model::{Part, TaskId, TaskState};
use switchboard_engine::runs::{Effects, Replies, Traits, Turn};

use crate::support::callers::{Client, at_once, hook, say, soon, still_waits};
use crate::support::on_both_stores;
use crate::support::pictures::{film, picture, refusal, wire};
use crate::support::puppets::{from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_direct_reply_leaves_no_task, a_first_status_makes_it_a_task);

fn either() -> Traits {
    Traits::default().with_replies(Replies::Either)
}

async fn a_direct_reply_leaves_no_task(stock: Stock) {
    let (agent, acts) = puppet(either());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let client = world.client();
    let sending = tokio::spawn({
        let client = client.clone();
        async move { client.call(Request::SendMessage(say("hello").into())).await }
    });
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    nobody_sees(&client, &id).await;
    act.turn.reply(vec![Part::text("hello yourself")]).await.unwrap();
    act.returns();
    match soon(sending).await.unwrap().unwrap() {
        Reply::SentMessage(message) => {
            assert_eq!(message.text(), "hello yourself");
            assert_eq!(message.task_id, None, "there is no task to name");
            assert!(message.context_id.is_some(), "the conversation has a name");
        }
        other => panic!("{}", wire(&other)),
    }
    nobody_sees(&client, &id).await;
}

/// Get, List, Subscribe and the rest answer as if there were nothing.
async fn nobody_sees(client: &Client, id: &TaskId) {
    assert_eq!(client.list(ListTasks::default()).await.unwrap().total_size, 0);
    let missing = TaskId::from("no-such-task");
    for ask in [
        |id: TaskId| Request::GetTask { id, history_length: None },
        |id: TaskId| Request::SubscribeToTask { id },
        |id: TaskId| Request::CancelTask { id, metadata: None },
        |id: TaskId| Request::CreatePushConfig(hook(id.as_str(), "c").into()),
        |id: TaskId| Request::ListPushConfigs { task_id: id, page_size: None, page_token: None },
    ] {
        let unborn = refusal(&client.call(ask(id.clone())).await.err().unwrap());
        let unknown = refusal(&client.call(ask(missing.clone())).await.err().unwrap());
        assert_eq!(unborn.replace(id.as_str(), "no-such-task"), unknown);
    }
}

async fn a_first_status_makes_it_a_task(stock: Stock) {
    let (agent, acts) = puppet(either());
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.working("this needs work").await.unwrap();
    let id = act.turn.task().id.clone();
    assert_eq!(world.client().task(&id).await.unwrap().state(), TaskState::Working);
    assert!(act.turn.reply(vec![Part::text("too late")]).await.is_err(), "a task is never taken back");
    act.returns();
    expect![[r#"
        completed
        user: hello
    "#]]
    .assert_eq(&picture(&soon(sending).await.unwrap().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn waiting_too_long_makes_it_a_task() {
    let (agent, acts) = puppet(either());
    let world = Setup::new().limits(|limits| limits.birth_wait_ms = 700).agent(registered("puppet", agent)).start();
    let mut sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    tokio::time::advance(Duration::from_millis(650)).await;
    assert!(still_waits(&mut sending).await);
    assert_eq!(world.client().list(ListTasks::default()).await.unwrap().total_size, 0);
    tokio::time::advance(Duration::from_millis(100)).await;
    assert!(still_waits(&mut sending).await, "the caller wants the finished task");
    let id = act.turn.task().id.clone();
    assert_eq!(world.client().task(&id).await.unwrap().state(), TaskState::Submitted);
    act.turn.text_artifact("slowly").await.unwrap();
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_once_or_a_webhook_makes_it_a_task_from_the_start() {
    let (agent, acts) = puppet(either());
    let world = World::of(registered("puppet", agent));
    let task = world.client().send(at_once(say("now"))).await.unwrap();
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
    acts.next().await.returns();

    let send = SendMessage { push_config: Some(hook("", "c")), ..say("tell my webhook") };
    let sending = world.client().sending(send);
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    assert_eq!(world.client().task(&id).await.unwrap().state(), TaskState::Submitted);
    assert_eq!(world.client().configs(&id).await.unwrap().configs.len(), 1);
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_direct_reply_is_that_one_message() {
    for effects in [Effects::Never, Effects::Possible] {
        for replies in [Replies::Message, Replies::Either] {
            let traits = Traits::default().with_effects(effects).with_replies(replies);
            let agent = from_fn(traits, |turn: Turn| async move { Ok(turn.reply(vec![Part::text("yes")]).await?) });
            let world = World::of(registered("brief", agent));
            let stream = world.client().stream(say("will you?")).await.unwrap();
            assert_eq!(film(stream).await, "- message yes\n", "{effects:?} {replies:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_what_became_a_task_begins_with_the_task_and_misses_nothing() {
    let (agent, acts) = puppet(either());
    let world = World::of(registered("puppet", agent));
    let client = world.client();
    let opening = tokio::spawn(async move { client.stream(say("hello")).await });
    let act = acts.next().await;
    act.turn.working("one").await.unwrap();
    act.turn.working("two").await.unwrap();
    let stream = soon(opening).await.unwrap().unwrap();
    act.returns();
    expect![[r#"
        1 task submitted said [hello] made []
        2 working "one"
        3 working "two"
        4 completed
    "#]]
    .assert_eq(&film(stream).await);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_answers_with_tasks_cannot_reply_directly() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    let refused = act.turn.reply(vec![Part::text("yes")]).await.unwrap_err();
    assert_eq!(refused.to_string(), "The agent answered wrongly: a direct reply after the task was opened");
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_may_reply_and_says_nothing_completes_a_task() {
    let agent = from_fn(either(), |_: Turn| async { Ok(()) });
    let world = World::of(registered("silent", agent));
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\n");
}
