//! Going down in order: streams end cleanly, blocked callers get the task as it is, runs get their grace, and what is cut
//! off is taken up by the next process.

use std::time::Duration;

use switchboard_core::model::{Json, TaskState};
use switchboard_engine::Readiness;
use switchboard_engine::runs::{Recovery, Replies, Traits};

use crate::support::callers::{say, soon};
use crate::support::pictures::{film, film_so_far, next_frame, picture};
use crate::support::puppets::{Acts, puppet};
use crate::support::world::{Setup, Stock, World, registered};

fn world_on(stock: Stock) -> (World, Acts) {
    let (agent, acts) = puppet(Traits::default());
    (Setup::on(stock).agent(registered("puppet", agent)).start(), acts)
}

#[tokio::test(start_paused = true)]
async fn streams_end_cleanly_and_resume_later() {
    let (world, acts) = world_on(Stock::memory());
    let mut sent = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    let mut followed = world.client().subscribe(&id).await.unwrap();
    act.turn.working("one").await.unwrap();
    next_frame(&mut sent).await.unwrap().unwrap();
    world.engine.begin_drain();
    assert_eq!(world.engine.readiness(), Readiness::Draining);
    assert_eq!(film(sent).await, "2 working \"one\"\n", "what was there is shown, then the stream ends");
    assert_eq!(film_so_far(&mut followed).await, "1 task submitted said [hello] made []\n2 working \"one\"\nclosed\n");
    act.turn.working("two").await.unwrap();
    act.returns();
    soon(world.engine.shutdown(Duration::from_secs(5))).await;
    let resumed = world.client().after(2).subscribe(&id).await.unwrap();
    assert_eq!(film(resumed).await, "3 working \"two\"\n4 completed\n");
}

#[tokio::test(start_paused = true)]
async fn a_stream_opened_while_going_down_shows_the_task_and_ends() {
    let (world, acts) = world_on(Stock::memory());
    let task = world.client().start("hello").await;
    let _act = acts.next().await;
    world.engine.begin_drain();
    let mut stream = world.client().subscribe(&task.id).await.unwrap();
    assert_eq!(film_so_far(&mut stream).await, "1 task submitted said [hello] made []\nclosed\n");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_caller_gets_the_task_as_it_is() {
    let (world, acts) = world_on(Stock::memory());
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    act.turn.working("busy").await.unwrap();
    world.engine.begin_drain();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "working \"busy\"\nuser: hello\n");
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_might_have_got_a_direct_reply_gets_a_task() {
    let (agent, acts) = puppet(Traits::default().with_replies(Replies::Either));
    let world = World::of(registered("puppet", agent));
    let sending = world.client().sending(say("hello"));
    let _act = acts.next().await;
    world.engine.begin_drain();
    let task = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&task), "submitted\nuser: hello\n");
    assert_eq!(world.client().task(&task.id).await.unwrap(), task);
}

#[tokio::test(start_paused = true)]
async fn runs_have_the_grace_period_to_finish() {
    let (world, acts) = world_on(Stock::memory());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    let engine = world.engine.clone();
    let began = world.now();
    let stopping = tokio::spawn(async move { engine.shutdown(Duration::from_secs(30)).await });
    tokio::time::sleep(Duration::from_secs(10)).await;
    act.turn.text_artifact("just in time").await.unwrap();
    act.returns();
    soon(stopping).await.unwrap();
    assert_eq!(world.now().ms_since(began), 10_000, "nobody waits longer than need be");
    let task = world.client().task(&task.id).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: just in time\n");
}

#[tokio::test(start_paused = true)]
async fn the_run_of_a_caller_that_waits_has_the_grace_period_too() {
    let (world, acts) = world_on(Stock::memory());
    let sending = world.client().sending(say("hello"));
    let act = acts.next().await;
    let (engine, began) = (world.engine.clone(), world.now());
    let stopping = tokio::spawn(async move { engine.shutdown(Duration::from_secs(30)).await });
    let told = soon(sending).await.unwrap().unwrap();
    assert_eq!(picture(&told), "submitted\nuser: hello\n", "the caller is told at once");
    tokio::time::sleep(Duration::from_secs(10)).await;
    act.turn.answer("just in time").await.unwrap();
    act.returns();
    soon(stopping).await.unwrap();
    assert_eq!(world.now().ms_since(began), 10_000);
    let task = world.client().task(&told.id).await.unwrap();
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: just in time\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cut_off_is_taken_up_by_the_next_process_at_once() {
    let (world, acts) = world_on(Stock::memory());
    let task = world.client().start("hello").await;
    let _act = acts.next().await;
    let began = world.now();
    soon(world.engine.shutdown(Duration::from_secs(5))).await;
    assert_eq!(world.now().ms_since(began), 5_000);
    assert_eq!(world.engine.runs_alive(), 0);
    // Not a crash: the leases were given back, so nothing has to be declared void.
    let stock = world.leave();
    let (world, acts) = world_on(stock);
    let act = acts.next().await;
    assert_eq!((act.turn.attempt(), act.turn.was_interrupted()), (1, true));
    assert!(world.now().ms_since(began) < 6_000, "no lease had to run out first");
    act.returns();
    world.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn orderly_stops_are_no_attempts_however_many_there_are() {
    let (mut world, mut acts) = world_on(Stock::memory());
    let task = world.client().start("hello").await;
    let act = acts.next().await;
    assert!(!act.turn.was_interrupted());
    act.turn.checkpoint(&Json::from_trusted("\"page 7\"")).await.unwrap();
    for _ in 0..10 {
        world.engine.shutdown(Duration::ZERO).await;
        (world, acts) = world_on(world.leave());
        let act = acts.next().await;
        assert_eq!((act.turn.attempt(), act.turn.was_interrupted()), (1, true));
        assert_eq!(act.turn.last_checkpoint().map(Json::as_str), Some("\"page 7\""));
    }
    // A crash is one, whatever came before.
    (world, acts) = world_on(world.crash().await);
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 2);
    let mut writer = act.turn.artifact_writer();
    writer.text("one ").await.unwrap();
    world.engine.shutdown(Duration::ZERO).await;
    (world, acts) = world_on(world.leave());
    let act = acts.next().await;
    assert_eq!(act.turn.attempt(), 2);
    let mut writer = act.turn.artifact_writer();
    for text in ["one ", "two"] {
        writer.text(text).await.unwrap();
    }
    act.returns();
    let task = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(picture(&task), "completed\nuser: hello\nartifact-1-1: one two\n");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_may_not_be_started_twice_fails_when_it_is_cut_off() {
    let traits = || Traits::default().with_recovery(Recovery::Fail { reason: "Not twice".to_owned() });
    let start = |stock| {
        let (agent, acts) = puppet(traits());
        (Setup::on(stock).limits(|limits| limits.runs_max = 1).agent(registered("puppet", agent)).start(), acts)
    };
    let (world, acts) = start(Stock::memory());
    let begun = world.client().start("begun").await;
    let _act = acts.next().await;
    let waiting = world.client().start("waiting").await;
    world.engine.shutdown(Duration::ZERO).await;
    let task = world.client().task(&begun.id).await.unwrap();
    assert_eq!(picture(&task), "failed \"Not twice\"\nuser: begun\n");
    // The other had not begun, so it is not started twice but once.
    let (world, acts) = start(world.leave());
    let act = acts.next().await;
    assert_eq!((act.turn.text().as_str(), act.turn.attempt()), ("waiting", 1));
    act.returns();
    world.client().task_in(&waiting.id, TaskState::Completed).await;
}
