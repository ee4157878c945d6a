//! How long a run may take. Time that a task is paused is not the agent's.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::call::SendMessage;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, TaskState};
use switchboard_engine::runs::{Traits, Turn, TurnError};

use crate::support::callers::{reply_to, say, soon};
use crate::support::pictures::picture;
use crate::support::puppets::{from_fn, puppet};
use crate::support::world::{Setup, World, registered};

fn ten_seconds() -> Traits {
    Traits::default().with_run_max(Duration::from_secs(10))
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_fails_its_task_and_is_cut_off() {
    let (agent, acts) = puppet(ten_seconds());
    let world = World::of(registered("puppet", agent));
    let began = world.now();
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    assert_eq!(act.turn.deadline(), began.plus_ms(10_000));
    act.turn.text_artifact("half of it").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(world.now().ms_since(began), 10_000);
    expect![[r#"
        failed "Task timed out"
        user: hello
        artifact-1-1: half of it
    "#]]
    .assert_eq(&picture(&task));
    assert_eq!(act.turn.working("still here").await, Err(TurnError::Stopped));
    assert_eq!(world.engine.agents()[0].source.runs().timed_out(), 1);
    assert_eq!(world.engine.runs_alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_default_is_five_minutes() {
    let (agent, acts) = puppet(Traits::default());
    let world = World::of(registered("puppet", agent));
    let began = world.now();
    let task = world.client().start("hello").await;
    let _act = acts.next().await;
    pass(299).await;
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Submitted);
    world.client().task_in(&task.id, TaskState::Failed).await;
    assert!((300_000..301_000).contains(&world.now().ms_since(began)));
}

#[tokio::test(start_paused = true)]
async fn a_pure_agent_has_the_same_time() {
    let traits = Traits::pure().with_run_max(Duration::from_secs(10));
    let agent = from_fn(traits, |_: Turn| std::future::pending());
    let world = World::of(registered("stuck", agent));
    let began = world.now();
    let task = soon(world.client().send(say("hello"))).await.unwrap();
    assert_eq!(picture(&task), "failed \"Task timed out\"\nuser: hello\n");
    assert_eq!(world.now().ms_since(began), 10_000);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_answer_is_not_the_agents_time() {
    let (agent, acts) = puppet(ten_seconds());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    act.returns();
    let task = soon(sending).await.unwrap().unwrap();
    pass(3_000).await;
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::InputRequired);
    let sending = world.client().sending(reply_to(&task.id, "the red one"));
    let act = acts.next().await;
    pass(9).await;
    act.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_authorization_is_not_the_agents_time() {
    let (agent, acts) = puppet(ten_seconds());
    let world = World::of(registered("puppet", agent));
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    pass(2).await;
    act.turn.require_auth("sign in").await.unwrap();
    // Just short of its time when it goes on, and the pause was shorter than the time it has.
    pass(7).await;
    act.turn.working("thank you").await.unwrap();
    pass(7).await;
    act.turn.require_auth("sign in again").await.unwrap();
    pass(3_000).await;
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::AuthRequired);
    act.turn.working("thank you").await.unwrap();
    assert_eq!(world.client().task(&task.id).await.unwrap().state(), TaskState::Working);
    // Nine seconds of work so far; one is left.
    let resumed = world.now();
    world.client().task_in(&task.id, TaskState::Failed).await;
    assert!((1_000..1_100).contains(&world.now().ms_since(resumed)), "{}", world.now().ms_since(resumed));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_come_back_from_its_question_is_let_go() {
    let (agent, acts) = puppet(ten_seconds());
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.ask("which?").await.unwrap();
    let task = soon(sending).await.unwrap().unwrap();
    pass(60).await;
    assert_eq!(world.engine.runs_alive(), 0, "nobody waits for it");
    assert_eq!(world.client().task(&task.id).await.unwrap(), task, "the question stands");
}

#[tokio::test(start_paused = true)]
async fn each_turn_has_the_whole_time() {
    let (agent, acts) = puppet(ten_seconds());
    let world = Setup::new().agent(registered("puppet", agent)).start();
    let task = world.client().start("first").await;
    let first = acts.next().await;
    let sending = world.client().sending(reply_to(&task.id, "second"));
    pass(8).await;
    first.returns();
    let second = acts.next().await;
    pass(8).await;
    second.returns();
    assert_eq!(soon(sending).await.unwrap().unwrap().state(), TaskState::Completed);
}

/// A send that asks for its own time limit.
fn asking(seconds: &str) -> SendMessage {
    let metadata = Json::from_trusted(format!(r#"{{"other":1,"switchboard.runTimeoutSeconds":{seconds}}}"#));
    SendMessage { metadata: Some(metadata), ..say("hello") }
}

#[tokio::test(start_paused = true)]
async fn a_call_may_ask_for_less_time_and_up_to_the_limit_for_more() {
    let (agent, acts) = puppet(ten_seconds().with_run_max_per_call(Duration::from_secs(60)));
    let world = World::of(registered("puppet", agent));
    for seconds in [3, 60] {
        let began = world.now();
        let sending = world.client().sending(asking(&seconds.to_string()));
        let act = acts.next().await;
        assert_eq!(act.turn.run_max(), Duration::from_secs(seconds));
        assert_eq!(act.turn.deadline(), began.plus_ms(seconds as i64 * 1000));
        let task = soon(sending).await.unwrap().unwrap();
        assert_eq!(picture(&task), "failed \"Task timed out\"\nuser: hello\n");
        assert_eq!(world.now().ms_since(began), seconds as i64 * 1000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_asks_for_what_it_cannot_have_is_told_what_it_can() {
    let world = World::of(registered("puppet", puppet(ten_seconds()).0));
    for (asked, got) in [("11", "11"), ("0", "0"), ("-5", "-5"), ("1.5", "1.5"), ("\"9\"", "\"9\""), ("null", "null")] {
        let error = world.client().send(asking(asked)).await.unwrap_err();
        let field = "metadata[\"switchboard.runTimeoutSeconds\"]";
        let expected = format!("expected a whole number of seconds from 1 to 10, got {got}");
        assert_eq!(error, ProtocolError::invalid(field, expected));
    }
    let before = world.commits();
    assert_eq!(before, 0, "nothing was accepted");
}

#[tokio::test(start_paused = true)]
async fn a_pure_agent_is_held_to_what_the_call_asked_for() {
    let traits = Traits::pure().with_run_max(Duration::from_secs(10));
    let agent = from_fn(traits, |_: Turn| std::future::pending());
    let world = World::of(registered("stuck", agent));
    let began = world.now();
    let task = soon(world.client().send(asking("4"))).await.unwrap();
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(world.now().ms_since(began), 4_000);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_by_itself_when_its_time_is_up_is_given_a_moment() {
    let (agent, acts) = puppet(ten_seconds().with_wind_down(Duration::from_secs(2)));
    let world = World::of(registered("puppet", agent));
    let began = world.now();
    for (at, expected) in [(11, "failed \"I was too slow\""), (13, "failed \"Task timed out\"")] {
        let sending = world.client().sending(say("hello"));
        let act = acts.next().await;
        assert_eq!(act.turn.run_max(), Duration::from_secs(10));
        pass(at).await;
        let _ = act.turn.fail("I was too slow").await;
        act.returns();
        let task = soon(sending).await.unwrap().unwrap();
        assert_eq!(picture(&task), format!("{expected}\nuser: hello\n"));
    }
    assert!(world.now().ms_since(began) <= 24_000);
}
