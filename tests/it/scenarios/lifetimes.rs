//! How long tasks may wait and take. Off by default: a task waits for its place, and a pause for its human, as long as it
//! must.

use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::limits::Limits;
use switchboard_engine::runs::{RunEnd, Traits, Turn};

use crate::support::callers::{reply_to, say};
use crate::support::limit::within;
use crate::support::on_both_stores;
use crate::support::pictures::picture;
use crate::support::puppets::{Acts, echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_paused_task_waits_for_weeks_and_through_restarts);

const DAY_S: i64 = 86_400;

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn world_on(stock: Stock, change: impl FnOnce(&mut Limits)) -> (World, Acts) {
    let (agent, acts) = puppet(Traits::default().with_run_max(Duration::from_secs(100_000)));
    (Setup::on(stock).limits(change).agent(registered("puppet", agent)).start(), acts)
}

/// Waits until every run of the first agent has ended. A caller is answered as soon as the task pauses, while its run has still
/// to end; killed in between, it would be run again, which is right but not what is told here.
async fn runs_end(world: &World) {
    let agents = world.engine.agents();
    let runs = agents[0].source.runs();
    let all_ended = async {
        while RunEnd::ALL.into_iter().map(|how| runs.ended(how)).sum::<u64>() < runs.started() {
            tokio::task::yield_now().await;
        }
    };
    within(Duration::from_secs(60), "every run ends", all_ended).await;
}

async fn a_paused_task_waits_for_weeks_and_through_restarts(stock: Stock) {
    let agent = || {
        from_fn(Traits::default(), |turn: Turn| async move {
            match turn.text().as_str() {
                "order" => turn.ask("which?").await?,
                "the red one" => turn.require_auth("who are you?").await?,
                _ => turn.complete("yours").await?,
            }
            Ok(())
        })
    };
    // The limits that do not count for a paused task are on.
    let start = |stock| {
        let limits = |limits: &mut Limits| (limits.queued_s_max, limits.processing_s_max) = (Some(180), Some(1_800));
        Setup::on(stock).limits(limits).agent(registered("shop", agent())).start()
    };
    let mut world = start(stock);
    let mut task = world.client().send(say("order")).await.unwrap();
    runs_end(&world).await;
    for (answer, expected) in [("the red one", TaskState::AuthRequired), ("it is me", TaskState::Completed)] {
        for _ in 0..3 {
            world.stock().clock.jump(45 * DAY_S);
            world = start(world.crash().await);
            assert_eq!(world.client().task(&task.id).await.unwrap(), task);
        }
        // A clock that was set back is no reason either.
        world.stock().clock.jump(-400 * DAY_S);
        world = start(world.crash().await);
        task = world.client().send(reply_to(&task.id, answer)).await.unwrap();
        assert_eq!(task.state(), expected);
        runs_end(&world).await;
    }
    assert_eq!(
        picture(&task),
        "completed \"yours\"\nuser: order\nagent: which?\nuser: the red one\nagent: who are you?\nuser: it is me\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_not_started_in_time_fails() {
    let (world, acts) = world_on(Stock::memory(), |limits| (limits.runs_max, limits.queued_s_max) = (1, Some(180)));
    let first = world.client().start("first").await;
    let act = acts.next().await;
    pass(60).await;
    let second = world.client().start("second").await;
    pass(179).await;
    assert_eq!(world.client().task(&second.id).await.unwrap().state(), TaskState::Submitted);
    let second = world.client().task_in(&second.id, TaskState::Failed).await;
    assert_eq!(picture(&second), "failed \"Task timed out: it was not started within 180 s\"\nuser: second\n");
    let agents = world.engine.agents();
    let runs = agents[0].source.runs();
    assert_eq!((runs.ended(RunEnd::NotStarted), runs.timed_out(), runs.started()), (1, 1, 1));
    assert_eq!(world.client().task(&first.id).await.unwrap().state(), TaskState::Submitted, "that one was started");
    act.returns();
    world.client().task_in(&first.id, TaskState::Completed).await;
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_task_waits_for_its_place() {
    let (world, acts) = world_on(Stock::memory(), |limits| limits.runs_max = 1);
    world.client().start("first").await;
    let act = acts.next().await;
    let second = world.client().start("second").await;
    pass(90_000).await;
    act.returns();
    acts.next().await.returns();
    world.client().task_in(&second.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_with_all_its_attempts_fails_and_is_not_run_again() {
    let limits = |limits: &mut Limits| (limits.processing_s_max, limits.attempts_max) = (Some(1_800), 100);
    let (mut world, mut acts) = world_on(Stock::memory(), limits);
    let began = world.now();
    let task = world.client().start("hello").await;
    for _ in 0..2 {
        let act = acts.next().await;
        pass(500).await;
        drop(act);
        (world, acts) = world_on(world.crash().await, limits);
    }
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 3);
    assert_eq!(act.turn.deadline(), began.plus_ms(1_800_000), "what is left of it");
    // Time for which a run waited for the user does not count as the agent's.
    act.turn.require_auth("sign in").await.unwrap();
    pass(10_000).await;
    act.turn.working("thank you").await.unwrap();
    pass(700).await;
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Working);
    let task = world.client().task_in(&task.id, TaskState::Failed).await;
    assert_eq!(picture(&task), "failed \"Task timed out\"\nuser: hello\nagent: sign in\n");
    let spent = world.now().ms_since(began) / 1000;
    assert!((11_795..=11_815).contains(&spent), "{spent}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_time_was_over_while_the_server_was_down_is_failed_at_start() {
    let limits = |limits: &mut Limits| limits.processing_s_max = Some(1_800);
    let (world, acts) = world_on(Stock::memory(), limits);
    let task = world.client().start("hello").await;
    drop(acts.next().await);
    let stock = world.crash().await;
    pass(2_000).await;
    let (world, acts) = world_on(stock, limits);
    let task = world.client().task_in(&task.id, TaskState::Failed).await;
    assert_eq!(picture(&task), "failed \"Task timed out\"\nuser: hello\n");
    assert!(acts.is_empty().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_of_an_agent_that_is_never_served_again_fails_in_the_end() {
    let (world, acts) = world_on(Stock::memory(), |_| {});
    let task = world.client().start("hello").await;
    drop(acts.next().await);
    let world = Setup::on(world.crash().await).agent(registered("echo", echo())).start();
    pass(6 * 86_400).await;
    let looks = world.commits();
    assert!(looks < 200, "{looks} commits: looking again and again costs little");
    pass(86_400 + 7_200).await;
    assert_eq!(world.engine.counters().unserved_runs.ended(RunEnd::Unserved), 1);
    let (world, acts) = world_on(world.crash().await, |_| {});
    let task = world.client().task(&task.id).await.unwrap();
    assert_eq!(picture(&task), "failed \"The agent puppet is not served here any more\"\nuser: hello\n");
    assert!(acts.is_empty().await);
}
