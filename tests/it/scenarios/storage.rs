//! Limits of stored bytes: a message beyond one is refused, a run that writes beyond one ends its task and says why, and room comes
//! back with tasks that are removed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use switchboard_core::call::SendMessage;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Part, Task, TaskState, content_bytes};
use switchboard_engine::limits::Limits;
use switchboard_engine::ports::store::OverStorage;
use switchboard_engine::runs::{AgentError, Effects, RunEnd, Traits, Turn, TurnError};

use crate::support::callers::{Client, at_once, hook, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::words;
use crate::support::puppets::{Acts, echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    an_owner_at_its_limit_is_refused_and_others_are_not,
    a_restart_keeps_the_sums,
    a_running_task_ends_with_the_reason,
    an_end_that_is_too_large_becomes_a_failure_that_fits,
    an_agent_without_effects_is_refused_with_its_message,
    a_task_at_its_limit_takes_no_message_and_no_webhook_and_can_be_canceled,
);

const LIMIT: u64 = 100_000;

fn large(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// A message of its own id with a text of so many bytes.
fn say_large(id: &str, bytes: usize) -> SendMessage {
    let mut send = say(id);
    send.message.parts = vec![Part::text(large(bytes))];
    send
}

/// The refusal of a message, which names no time to try again.
fn assert_refused(answer: Result<impl std::fmt::Debug, ProtocolError>, over: OverStorage) {
    let reason = over.reason();
    assert!(reason.contains(over.setting()));
    match answer {
        Err(error) => assert_eq!(error, ProtocolError::ResourceExhausted { reason, retry_after_s: 0 }),
        Ok(taken) => panic!("it was taken: {taken:?}"),
    }
}

fn said(task: &Task) -> String {
    task.status.message.as_ref().map(|message| words(message)).unwrap_or_default()
}

fn echoing(stock: Stock) -> World {
    let limits = |limits: &mut Limits| limits.storage_owner_bytes_max = LIMIT;
    Setup::on(stock).limits(limits).agent(registered("echo", echo())).agent(registered("other", echo())).start()
}

async fn an_owner_at_its_limit_is_refused_and_others_are_not(stock: Stock) {
    let world = echoing(stock);
    let ann = world.client().user_of("acme", "ann");
    let ended = ann.send(say_large("one", 30_000)).await.unwrap();
    assert_eq!(ended.state(), TaskState::Completed);
    // The message fits, and the echo does not.
    let half = ann.send(say_large("two", 20_000)).await.unwrap();
    assert_eq!((half.state(), said(&half)), (TaskState::Failed, OverStorage::Owner(LIMIT).reason()));
    for agent in ["echo", "other"] {
        let ann = world.client_of(agent).user_of("acme", "ann");
        assert_refused(ann.send(say_large("three", 20_000)).await, OverStorage::Owner(LIMIT));
        for (tenant, principal) in [("acme", "bob"), ("globex", "ann")] {
            let other = world.client_of(agent).user_of(tenant, principal);
            assert_eq!(other.send(say_large("four", 20_000)).await.unwrap().state(), TaskState::Completed);
        }
    }
    assert_eq!(ann.task(&ended.id).await.unwrap().id, ended.id, "what is stored can be read");
    let counts = &world.engine.counters().storage_refusals;
    let refused = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert_eq!(refused, [0, 3, 0]);
}

async fn a_restart_keeps_the_sums(stock: Stock) {
    let world = echoing(stock);
    let ended = world.client().send(say_large("one", 40_000)).await.unwrap();
    assert_eq!(ended.state(), TaskState::Completed);
    let stored = world.engine.store_stats().stored_bytes.unwrap();
    let world = echoing(world.crash().await);
    assert_eq!(world.engine.store_stats().stored_bytes, Some(stored));
    assert_refused(world.client().send(say_large("two", 20_000)).await, OverStorage::Owner(LIMIT));
}

fn playing(stock: Stock, traits: Traits) -> (World, Acts) {
    let (agent, acts) = puppet(traits);
    let limits = |limits: &mut Limits| limits.storage_task_bytes_max = LIMIT;
    (Setup::on(stock).limits(limits).agent(registered("puppet", agent)).start(), acts)
}

async fn a_running_task_ends_with_the_reason(stock: Stock) {
    let (world, acts) = playing(stock, Traits::default());
    let mut updates = world.client().stream(say("go")).await.unwrap();
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    let refused = loop {
        if let Err(error) = writer.text(large(10_000)).await {
            break error;
        }
    };
    assert_eq!(refused, TurnError::Stopped);
    assert!(act.turn.is_cancelled(), "it is told to stop");
    assert_eq!(act.turn.working("still here").await, Err(TurnError::Stopped), "nothing more is written");
    let id = act.turn.task().id.clone();
    act.ends(Err(AgentError::from(refused)));
    let task = world.client().task_in(&id, TaskState::Failed).await;
    assert_eq!(said(&task), OverStorage::Task(LIMIT).reason());
    let kept = content_bytes(&task.artifacts[0].parts);
    assert!((50_000..LIMIT).contains(&kept), "{kept} bytes were stored");
    // The stream shows the chunks and ends by itself.
    let mut count = 0;
    soon(async {
        while let Some(update) = updates.next().await {
            update.unwrap();
            count += 1;
        }
    })
    .await;
    assert!(count > kept / 10_000, "{count}");
    let agents = world.engine.agents();
    soon(async {
        while agents[0].source.runs().ended(RunEnd::StorageFull) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn an_end_that_is_too_large_becomes_a_failure_that_fits(stock: Stock) {
    let (world, acts) = playing(stock, Traits::default());
    let task = world.client().start("go").await;
    let act = acts.next().await;
    act.ends(Err(AgentError::told(large(200_000))));
    let task = world.client().task_in(&task.id, TaskState::Failed).await;
    assert_eq!(said(&task), OverStorage::Task(LIMIT).reason());
}

async fn an_agent_without_effects_is_refused_with_its_message(stock: Stock) {
    let agent = from_fn(Traits::default().with_effects(Effects::Never), |turn: Turn| async move {
        Ok(turn.answer(large(60_000)).await?)
    });
    let limits = |limits: &mut Limits| limits.storage_owner_bytes_max = LIMIT;
    let world = Setup::on(stock).limits(limits).agent(registered("pure", agent)).start();
    assert_eq!(world.client().send(say("one")).await.unwrap().state(), TaskState::Completed);
    let stored = world.engine.store_stats().stored_bytes;
    assert_refused(world.client().send(say("two")).await, OverStorage::Owner(LIMIT));
    assert_refused(world.client().stream(say("three")).await.map(drop), OverStorage::Owner(LIMIT));
    assert_eq!(world.engine.store_stats().stored_bytes, stored, "nothing was stored");
}

async fn a_task_at_its_limit_takes_no_message_and_no_webhook_and_can_be_canceled(stock: Stock) {
    let (world, acts) = playing(stock, Traits::default());
    let client: Client = world.client();
    let task = client.start("go").await;
    let act = acts.next().await;
    act.turn.text_artifact(large(94_000)).await.unwrap();
    let mut more = reply_to(&task.id, "more");
    more.message.parts = vec![Part::text(large(20_000))];
    assert_refused(client.send(at_once(more)).await, OverStorage::Task(LIMIT));
    assert_refused(client.register(hook(task.id.as_str(), "p1")).await, OverStorage::Task(LIMIT));
    let canceled = tokio::spawn({
        let (client, id) = (client.clone(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    assert_eq!(canceled.await.unwrap().unwrap().state(), TaskState::Canceled);
}

/// Time passes only in memory: the clock of the other store stands still in these tests.
#[tokio::test(start_paused = true)]
async fn tasks_that_are_removed_make_room() {
    let limits = |limits: &mut Limits| {
        limits.storage_owner_bytes_max = LIMIT;
        limits.resume_window_s = 0;
        limits.retention_tasks_s = 3600;
    };
    let world = Setup::new().limits(limits).agent(registered("echo", echo())).start();
    world.client().send(say_large("one", 40_000)).await.unwrap();
    assert_refused(world.client().send(say_large("two", 30_000)).await, OverStorage::Owner(LIMIT));
    tokio::time::sleep(Duration::from_secs(3700)).await;
    assert_eq!(world.client().send(say_large("three", 30_000)).await.unwrap().state(), TaskState::Completed);
}
