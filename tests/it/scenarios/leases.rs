//! Who owns a run: two processes on one store, processes that stand still and come back, clocks that jump.

use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::runs::{RunEnd, Traits, TurnError};

use crate::support::callers::{reply_to, say, soon};
use crate::support::gated_store::GatedStore;
use crate::support::pictures::{film, picture};
use crate::support::puppets::{Acts, echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

/// Longer than a lease of 30 seconds and a sweep of 5.
const LEASE_AND_A_SWEEP: Duration = Duration::from_secs(36);

fn setup_on(stock: Stock) -> (Setup, Acts) {
    let (agent, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(100_000)));
    (Setup::on(stock).agent(registered("puppet", agent)), acts)
}

/// A process on a store, and another beside it.
fn two_worlds() -> ((World, Acts), (World, Acts)) {
    let stock = Stock::memory();
    let (one, one_acts) = setup_on(stock.clone());
    let (other, other_acts) = setup_on(stock);
    // The first one stands still from the beginning: it answers, but renews nothing.
    ((one.start_frozen(), one_acts), (other.start(), other_acts))
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stands_still_loses_its_run_and_nothing_it_writes_later_counts() {
    let ((frozen, acts), (alive, alive_acts)) = two_worlds();
    let task = frozen.client().start("hello").await;
    let stuck = acts.next().await;
    stuck.turn.text_artifact("before the freeze").await.unwrap();
    tokio::time::sleep(LEASE_AND_A_SWEEP).await;
    let act = alive_acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.text().as_str()), (2, "hello"));
    assert_ne!(act.turn.fencing_token(), stuck.turn.fencing_token());
    // The frozen one comes back and does not know yet.
    assert_eq!(stuck.turn.text_artifact("from the grave").await, Err(TurnError::Stopped));
    assert_eq!(stuck.turn.complete("done").await, Err(TurnError::Stopped));
    frozen.thaw();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(frozen.engine.runs_alive(), 0, "it has been told that its lease is lost");
    act.turn.text_artifact("alive").await.unwrap();
    act.returns();
    let task = alive.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: alive\n");
    assert_eq!(frozen.client().task(&task.id).await.unwrap(), task);
    let story = film(alive.client().after(0).subscribe(&task.id).await.unwrap()).await;
    assert_eq!(story.matches("completed").count(), 1, "{story}");
    assert!(acts.is_empty().await && alive_acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_at_the_moment_it_is_taken_over_ends_once() {
    let ((frozen, acts), (alive, alive_acts)) = two_worlds();
    let task = frozen.client().start("hello").await;
    let stuck = acts.next().await;
    tokio::time::sleep(LEASE_AND_A_SWEEP).await;
    let act = alive_acts.next().await;
    // Both come back at once.
    stuck.returns();
    act.returns();
    let task = alive.client().task_in(&task.id, TaskState::Completed).await;
    let story = film(alive.client().after(0).subscribe(&task.id).await.unwrap()).await;
    assert_eq!(story, "1 task submitted said [hello] made []\n2 completed\n");
    assert_eq!(frozen.engine.runs_alive() + alive.engine.runs_alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_unclaimed_is_taken_again_by_its_holder() {
    // There is no other process: a laptop that slept.
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start_frozen();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    tokio::time::sleep(LEASE_AND_A_SWEEP * 3).await;
    world.thaw();
    tokio::time::sleep(LEASE_AND_A_SWEEP).await;
    act.turn.text_artifact("slept well").await.unwrap();
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: slept well\n");
    assert!(acts.is_empty().await, "and it was executed once");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_taken_over_before_it_is_known_here_is_executed_once() {
    // The process stands still between the commit that accepts a message and the start of its run.
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let gate = gate.unwrap();
    let (setup, acts) = setup_on(stock);
    let world = setup.start();
    gate.hold();
    let sending = world.client().sending(say("hello"));
    tokio::time::sleep(LEASE_AND_A_SWEEP).await;
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 2, "its lease ran out, and nobody was at work on it");
    gate.release();
    act.turn.text_artifact("once").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: once\n");
    assert!(acts.is_empty().await, "the run that came late did not begin");
    assert_eq!(world.engine.runs_alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_takes_no_run_from_its_process() {
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    for seconds in [3_600, -7_200, 30 * 86_400, -86_400] {
        world.stock().clock.jump(seconds);
        tokio::time::sleep(LEASE_AND_A_SWEEP).await;
        act.turn.working("still here").await.unwrap();
    }
    assert!(acts.is_empty().await);
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_lease_for_as_long_as_it_works() {
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start();
    let (_beside, beside_acts) = setup_on(world.stock().clone());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    tokio::time::sleep(Duration::from_secs(9_000)).await;
    act.turn.text_artifact("slowly").await.unwrap();
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
    assert!(acts.is_empty().await && beside_acts.is_empty().await, "nobody else was given the turn");
}

#[tokio::test(start_paused = true)]
async fn a_process_leaves_runs_of_agents_it_does_not_serve_to_those_who_do() {
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start();
    let task = world.client().start("hello").await;
    drop(acts.next().await);
    let stock = world.crash().await;
    let beside = Setup::on(stock.clone()).agent(registered("echo", echo())).start();
    let commits = beside.commits();
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(beside.commits(), commits, "it is neither claimed nor put off");
    let (setup, acts) = setup_on(stock);
    let began = beside.now();
    let world = setup.start();
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), world.now().ms_since(began)), (2, 0), "it had not to wait for anybody");
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn a_canceled_run_that_nobody_serves_is_ended_all_the_same() {
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start();
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (world.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    canceling.abort();
    let _ = canceling.await;
    drop(act);
    let stock = world.crash().await;
    let beside = Setup::on(stock.clone()).agent(registered("echo", echo())).start();
    // Those who serve the agent, and can clear away after it, have a minute to do so.
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(beside.engine.counters().unserved_runs.ended(RunEnd::Canceled), 0);
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(beside.engine.counters().unserved_runs.ended(RunEnd::Canceled), 1);
    let (setup, _acts) = setup_on(stock);
    let task = setup.start().client().task(&task.id).await.unwrap();
    assert_eq!(picture(&task), "canceled\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_a_run_in_another_process() {
    let stock = Stock::memory();
    let ((one, acts), (other, other_acts)) = (setup_on(stock.clone()), setup_on(stock));
    let (one, other) = (one.start(), other.start());
    let task = one.client().start("hello").await;
    let act = acts.next().await;
    let canceling = tokio::spawn({
        let (client, id) = (other.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    assert_eq!(soon(canceling).await.unwrap().unwrap().state(), TaskState::Canceled);
    assert!(other_acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_run_may_tidy_up_after_its_last_word() {
    let (setup, acts) = setup_on(Stock::memory());
    let world = setup.start();
    let client = world.client();
    let sending = client.sending(say("hello"));
    let asking = acts.next().await;
    asking.turn.ask("which?").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    // Many sweeps later it is still at it.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.engine.runs_alive(), 1);
    assert_eq!(client.task(&task.id).await.unwrap(), task);
    // The answer comes meanwhile, and its turn does not wait for the tidying.
    let sending = client.sending(reply_to(&task.id, "the red one"));
    let answering = acts.next().await;
    asking.returns();
    answering.turn.complete("red it is").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "completed \"red it is\"\nuser: hello\nagent: which?\nuser: the red one\n");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.engine.runs_alive(), 1, "this one tidies up as well");
    answering.returns();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.engine.runs_alive(), 0);
    assert_eq!(client.task(&task.id).await.unwrap(), task);
}
