//! Runs of an agent that takes only so many at once: one that waits for its place has not begun, so no death interrupts it.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_core::model::{TaskId, TaskState};
use switchboard_engine::runs::{Backoff, Effects, Recovery, Traits};

use crate::support::callers::{at_once, reply_to, say, soon};
use crate::support::on_both_stores;
use crate::support::pictures::picture;
use crate::support::puppets::{Acts, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(
    a_run_that_waits_is_not_interrupted_however_often_its_process_dies,
    a_run_that_waits_does_not_fail_where_one_that_began_does,
    a_run_that_waits_is_given_back_as_it_was,
    the_next_message_of_a_task_waits_for_its_place_like_any_other,
);

fn retried() -> Recovery {
    Recovery::Retry { attempts_max: Some(3), backoff: Some(Backoff { min: Duration::ZERO, max: Duration::ZERO }) }
}

fn not_twice() -> Recovery {
    Recovery::Fail { reason: "not twice".to_owned() }
}

/// One run at a time, whatever else is asked of it.
fn world_on(stock: Stock, recovery: Recovery) -> (World, Acts) {
    let (agent, acts) = puppet(Traits::default().with_runs_max(1).with_recovery(recovery));
    (Setup::on(stock).agent(registered("puppet", agent)).start(), acts)
}

async fn start(world: &World, texts: &[&str]) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for text in texts {
        ids.push(world.client().start(text).await.id.clone());
    }
    ids
}

async fn a_run_that_waits_is_not_interrupted_however_often_its_process_dies(stock: Stock) {
    let (mut world, mut acts) = world_on(stock, retried());
    let ids = start(&world, &["a", "b", "c", "d"]).await;
    // Each process gets one run to begin, and dies. In the end some were tried three times, others never.
    let mut tried: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..5 {
        let act = acts.next().await;
        let before = tried.entry(act.turn.text()).or_default();
        *before += 1;
        assert_eq!(act.turn.attempt(), *before, "{}: only a run that had begun was interrupted", act.turn.text());
        drop(act);
        assert!(acts.is_empty().await, "one at a time");
        (world, acts) = world_on(world.crash().await, retried());
    }
    let worn_out = tried.values().filter(|tried| **tried == 3).count();
    for _ in 0..4 - worn_out {
        let act = acts.next().await;
        assert_eq!(act.turn.attempt(), tried.get(&act.turn.text()).copied().unwrap_or(0) + 1);
        act.turn.text_artifact("done").await.unwrap();
        act.returns();
    }
    for (id, text) in ids.iter().zip(["a", "b", "c", "d"]) {
        let (state, said) = match tried.get(text) {
            Some(3) => (TaskState::Failed, "failed \"The agent was interrupted 3 times and is not tried again\""),
            Some(_) | None => (TaskState::Completed, "completed"),
        };
        let task = world.client().task_in(id, state).await;
        assert!(picture(&task).starts_with(said), "{text}: {}", picture(&task));
    }
}

async fn a_run_that_waits_does_not_fail_where_one_that_began_does(stock: Stock) {
    let (mut world, mut acts) = world_on(stock, not_twice());
    let ids = start(&world, &["a", "b", "c"]).await;
    for _ in 0..2 {
        assert_eq!(acts.next().await.turn.attempt(), 1);
        (world, acts) = world_on(world.crash().await, not_twice());
    }
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 1, "it waited through two deaths");
    let last = act.turn.text();
    act.returns();
    for (id, text) in ids.iter().zip(["a", "b", "c"]) {
        let state = if text == last { TaskState::Completed } else { TaskState::Failed };
        world.client().task_in(id, state).await;
    }
    assert!(acts.is_empty().await);
}

async fn a_run_that_waits_is_given_back_as_it_was(stock: Stock) {
    let (world, acts) = world_on(stock, not_twice());
    let ids = start(&world, &["a", "b"]).await;
    let cut_off = acts.next().await;
    world.engine.shutdown(Duration::ZERO).await;
    drop(cut_off);
    let (world, acts) = world_on(world.leave(), not_twice());
    let task = world.client().task_in(&ids[0], TaskState::Failed).await;
    assert!(picture(&task).starts_with("failed \"not twice\""), "it had begun");
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.text().as_str()), (1, "b"));
    act.returns();
    world.client().task_in(&ids[1], TaskState::Completed).await;
}

async fn the_next_message_of_a_task_waits_for_its_place_like_any_other(stock: Stock) {
    let (world, acts) = world_on(stock, not_twice());
    let first = world.client().start("a1").await;
    let act = acts.next().await;
    world.client().send(at_once(reply_to(&first.id, "a2"))).await.unwrap();
    let second = world.client().start("b").await;
    act.returns();
    // The other task was there first. The second message of the first one has not begun when the process dies.
    let act = acts.next().await;
    assert_eq!(act.turn.text(), "b");
    act.returns();
    world.client().task_in(&second.id, TaskState::Completed).await;
    let act = acts.next().await;
    assert_eq!((act.turn.text().as_str(), act.turn.attempt(), act.turn.number()), ("a2", 1, 2));
    act.returns();
    world.client().task_in(&first.id, TaskState::Completed).await;
}

/// Waiting is not working: the time of a run begins with the run.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_place_takes_nothing_off_the_time_of_a_run() {
    let (agent, acts) = puppet(Traits::default().with_runs_max(1).with_run_max(Duration::from_secs(60)));
    let world = World::of(registered("puppet", agent));
    world.client().start("a").await;
    let first = acts.next().await;
    let second = world.client().start("b").await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    first.returns();
    let act = acts.next().await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    act.returns();
    world.client().task_in(&second.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_can_be_canceled_and_waits_no_longer_than_a_task_may() {
    let (agent, acts) = puppet(Traits::default().with_runs_max(1));
    let setup = Setup::new().limits(|limits| limits.queued_s_max = Some(30));
    let world = setup.agent(registered("puppet", agent)).start();
    world.client().start("a").await;
    let _busy = acts.next().await;
    let (canceled, late) = (world.client().start("b").await, world.client().start("c").await);
    assert_eq!(soon(world.client().cancel(&canceled.id)).await.unwrap().state(), TaskState::Canceled);
    let late = world.client().task_in(&late.id, TaskState::Failed).await;
    assert!(picture(&late).starts_with("failed \"Task timed out: it was not started within 30 s\""));
    assert!(acts.is_empty().await);
}

/// An agent without effects is asked before its message is stored; it has its place by then, too.
#[tokio::test(start_paused = true)]
async fn an_agent_without_effects_keeps_to_its_limit() {
    let (agent, acts) = puppet(Traits::pure().with_runs_max(1));
    let world = World::of(registered("puppet", agent));
    let first = world.client().sending(say("a"));
    let act = acts.next().await;
    let second = world.client().sending(say("b"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(acts.is_empty().await, "one at a time");
    act.returns();
    assert_eq!(soon(first).await.unwrap().unwrap().state(), TaskState::Completed);
    acts.next().await.returns();
    assert_eq!(soon(second).await.unwrap().unwrap().state(), TaskState::Completed);
}

/// A run whose place is free costs no commit more than one of an agent without a limit.
#[tokio::test(start_paused = true)]
async fn a_free_place_costs_nothing() {
    let mut commits = Vec::new();
    for traits in [Traits::default(), Traits::default().with_runs_max(1)] {
        assert_eq!(traits.effects, Effects::Possible);
        let (agent, acts) = puppet(traits);
        let world = World::of(registered("puppet", agent));
        let sending = world.client().sending(say("a"));
        acts.next().await.returns();
        soon(sending).await.unwrap().unwrap();
        commits.push((world.commits(), world.engine.store_stats().rows_written));
    }
    assert_eq!(commits[0], commits[1]);
}
