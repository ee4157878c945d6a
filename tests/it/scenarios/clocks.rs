//! A wall clock that is set: back by a day, ahead by a month. What waits keeps its length, and nothing goes because it only
//! seems to be old.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::SendMessage;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::TaskState;
use switchboard_engine::ports::outbox::OutboxState;
use switchboard_engine::push::OutboxFilter;
use switchboard_engine::runs::{Backoff, Recovery, Traits};

use crate::support::callers::{hook, say};
use crate::support::hooks::{Answer, Hooks};
use crate::support::puppets::{echo, puppet};
use crate::support::world::{Setup, Stock, World, registered};

const DAY_S: i64 = 86_400;

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn with_hook(text: &str) -> SendMessage {
    SendMessage { push_config: Some(hook("", "c")), ..say(text) }
}

fn world_with(hooks: &Arc<Hooks>) -> World {
    Setup::new().webhook(hooks.clone()).agent(registered("echo", echo())).start()
}

async fn dead_letters(world: &World) -> usize {
    let filter = OutboxFilter { state: Some(OutboxState::Dead), endpoint: None };
    world.engine.outbox().list(&filter, None, 100).await.unwrap().entries.len()
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_waits_does_not_sleep_for_the_day_the_clock_was_set_back_by() {
    // Enough failures that its circuit opens, and then answers again.
    let hooks = Hooks::answering([Answer::Status(500); 7]);
    let world = world_with(&hooks);
    let task = world.client().send(with_hook("hello")).await.unwrap();
    hooks.calls(7).await;
    world.stock().clock.jump(-DAY_S);
    pass(300).await;
    assert_eq!(hooks.taken_of(&task.id), [1, 2, 3]);
    // And one that begins to wait after that.
    hooks.always("hooks.example", Answer::Status(500));
    let task = world.client().send(with_hook("again")).await.unwrap();
    pass(1).await;
    world.stock().clock.jump(-DAY_S);
    hooks.always("hooks.example", Answer::Status(200));
    pass(300).await;
    assert_eq!(hooks.taken_of(&task.id), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_before_an_attempt_does_not_sleep_for_the_day_the_clock_was_set_back_by() {
    let backoff = Backoff { min: Duration::from_secs(10), max: Duration::from_secs(10) };
    let recovery = Recovery::Retry { attempts_max: Some(9), backoff: Some(backoff) };
    let world_on = |stock: Stock| {
        let (agent, acts) = puppet(Traits::default().with_recovery(recovery.clone()));
        (Setup::on(stock).agent(registered("puppet", agent)).start(), acts)
    };
    let (world, acts) = world_on(Stock::memory());
    let task = world.client().start("hello").await;
    drop(acts.next().await);
    let (world, acts) = world_on(world.crash().await);
    drop(acts.next().await);
    // The third attempt comes after a pause, in the middle of which the clock is set back.
    let (world, acts) = world_on(world.crash().await);
    pass(1).await;
    assert!(acts.is_empty().await);
    world.stock().clock.jump(-DAY_S);
    pass(20).await;
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 3);
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_given_back_does_not_sleep_for_the_day_the_clock_was_set_back_by() {
    let world_on = |stock: Stock| {
        let (agent, acts) = puppet(Traits::default());
        (Setup::on(stock).agent(registered("puppet", agent)).start(), acts)
    };
    let (world, acts) = world_on(Stock::memory());
    world.client().start("hello").await;
    let _cut_off = acts.next().await;
    world.engine.shutdown(Duration::ZERO).await;
    let stock = world.leave();
    stock.clock.jump(-DAY_S);
    let (_world, acts) = world_on(stock);
    pass(10).await;
    assert_eq!(acts.next().await.turn.attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_ahead_by_a_month_removes_nothing_for_a_day() {
    let world = Setup::new().agent(registered("echo", echo())).start();
    let client = world.client().keyed("k");
    let task = client.send(say("hello")).await.unwrap();
    pass(120).await;
    assert_eq!(world.engine.notices(), [] as [String; 0]);
    world.stock().clock.jump(31 * DAY_S);
    pass(86_000).await;
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
    let [notice] = &world.engine.notices()[..] else { panic!("{:?}", world.engine.notices()) };
    assert!(notice.starts_with("The wall clock jumped ahead by 744 h"), "{notice}");
    assert!(notice.contains("nothing is removed or given up on because of its age until 2026-02-02T"), "{notice}");
    // Set right again in time, nothing has happened.
    world.stock().clock.jump(-31 * DAY_S);
    pass(2 * 86_400).await;
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
    assert_eq!(world.engine.notices(), [] as [String; 0]);
    // If no process does, it is the time.
    world.stock().clock.jump(31 * DAY_S);
    pass(86_400 + 120).await;
    assert!(matches!(world.client().task(&task.id).await, Err(ProtocolError::TaskNotFound { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_clock_set_ahead_by_25_hours_makes_no_dead_letters() {
    let hooks = Hooks::new();
    hooks.always("hooks.example", Answer::Status(503));
    let world = Setup::new()
        .limits(|limits| limits.delivery_failures_max = 1_000)
        .webhook(hooks.clone())
        .agent(registered("echo", echo()))
        .start();
    for _ in 0..10 {
        world.client().send(with_hook("hello")).await.unwrap();
    }
    // Long enough for the circuit to open.
    pass(120).await;
    world.stock().clock.jump(25 * 3_600);
    pass(600).await;
    assert_eq!(dead_letters(&world).await, 0);
    // An endpoint that really is down for so long is given up on, once the clock can be trusted again.
    pass(3 * 86_400).await;
    assert!(dead_letters(&world).await >= 9, "all but the one that is on its way to find out");
}

#[tokio::test(start_paused = true)]
async fn what_is_old_is_removed_soon_after_a_start() {
    let world = Setup::new().agent(registered("echo", echo())).start();
    let task = world.client().send(say("hello")).await.unwrap();
    let stock = world.crash().await;
    // No process ran for a month, by the monotonic clock, too.
    pass(40 * 86_400).await;
    let world = Setup::on(stock).agent(registered("echo", echo())).start();
    pass(5).await;
    assert!(matches!(world.client().task(&task.id).await, Err(ProtocolError::TaskNotFound { .. })));
}
