//! Two processes that share a store and tell each other by hints. Neither looks by itself while a test runs, so what one notices of the
//! other it was told.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::{TaskId, TaskState};
use switchboard_engine::memory::LocalHints;
use switchboard_engine::ports::{Hint, Hints, News};
use switchboard_engine::runs::{Traits, TurnError};
use tokio::time::Instant;

use crate::support::callers::soon;
use crate::support::gated_store::GatedStore;
use crate::support::pictures::{film, numbers};
use crate::support::puppets::{Acts, puppet};
use crate::support::world::{Setup, Stock, World, registered};

/// A process, and its agent.
type Neighbour = (World, Acts);

/// Two processes, and a way to say something to both.
fn neighbours(stock: &Stock) -> (Neighbour, Neighbour, LocalHints) {
    let hints = LocalHints::default();
    let start = || {
        let (agent, acts) = puppet(Traits::default());
        let setup = Setup::on(stock.clone()).agent(registered("puppet", agent)).hints(Arc::new(hints.for_another()));
        let never = |limits: &mut switchboard_engine::limits::Limits| {
            (limits.lease_ms, limits.sweep_ms, limits.follow_poll_ms) = (3_600_000, 1_800_000, 1_800_000);
        };
        (setup.limits(never).start(), acts)
    };
    (start(), start(), hints.for_another())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_at_another_process_reaches_the_run_at_once() {
    let ((first, acts), (second, _), _) = neighbours(&Stock::memory());
    let task = first.client().start("hello").await;
    let act = acts.next().await;
    let begun = Instant::now();
    let canceling = tokio::spawn({
        let (client, id) = (second.client(), task.id.clone());
        async move { client.cancel(&id).await }
    });
    soon(act.turn.cancelled()).await;
    act.returns();
    let canceled = soon(canceling).await.unwrap().unwrap();
    assert_eq!(canceled.state(), TaskState::Canceled);
    // Time is not real here: only waiting for something that nobody told of would take any.
    assert!(begun.elapsed().as_secs() < 1, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_a_process_that_stops_gives_back_goes_on_at_another_at_once() {
    let ((first, acts), (second, taken), _) = neighbours(&Stock::memory());
    let (mut ids, mut begun) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        ids.push(first.client().start("hello").await.id.clone());
        begun.push(acts.next().await);
    }
    let stopped = Instant::now();
    first.engine.shutdown(Duration::ZERO).await;
    for _ in &ids {
        let act = taken.next().await;
        act.turn.answer("done").await.unwrap();
        act.returns();
    }
    for id in &ids {
        second.client().task_in(id, TaskState::Completed).await;
    }
    assert!(stopped.elapsed().as_secs() < 1, "{:?}", stopped.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nobody_can_cancel_a_run_by_a_hint_alone() {
    let ((first, acts), (_second, _), hints) = neighbours(&Stock::memory());
    let task = first.client().start("hello").await;
    let act = acts.next().await;
    hints.notify(Hint { task: &task.id, news: News::CancelRequested });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!act.turn.is_cancelled());
    act.turn.answer("done").await.unwrap();
    act.returns();
    first.client().task_in(&task.id, TaskState::Completed).await;
}

#[tokio::test(start_paused = true)]
async fn however_many_follow_a_task_of_another_process_an_event_is_read_once() {
    let store = std::sync::OnceLock::new();
    let stock = Stock::given(|clock| store.get_or_init(|| GatedStore::open(clock)).clone());
    let store = store.get().unwrap();
    let ((first, acts), (second, _), _) = neighbours(&stock);
    let task = first.client().start("hello").await;
    let act = acts.next().await;
    let mut followers = Vec::new();
    for _ in 0..1_000 {
        let stream = second.client().after(0).subscribe(&task.id).await.unwrap();
        followers.push(tokio::spawn(film(stream)));
    }
    // All have come as far as the task has.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = store.log_reads();
    for number in 0..20 {
        act.turn.text_artifact(format!("piece {number}")).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let reads = store.log_reads() - before;
    assert!((1..=20).contains(&reads), "{reads} reads of 20 events for 1,000 followers");
    act.returns();
    let expected = film(first.client().after(0).subscribe(&task.id).await.unwrap()).await;
    for follower in followers {
        assert_eq!(soon(follower).await.unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_made_up_hint_ends_no_stream_and_hides_no_event() {
    let ((first, acts), (second, _), hints) = neighbours(&Stock::memory());
    let task = first.client().start("hello").await;
    let act = acts.next().await;
    let one = tokio::spawn(film(first.client().after(0).subscribe(&task.id).await.unwrap()));
    let other = tokio::spawn(film(second.client().after(0).subscribe(&task.id).await.unwrap()));
    for news in [News::Event(u64::MAX), News::Replied, News::CancelRequested, News::RunsReleased, News::Event(1_000)] {
        hints.notify(Hint { task: &task.id, news });
        hints.notify(Hint { task: &TaskId::from("unknown"), news });
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    act.turn.text_artifact("after them").await.unwrap();
    assert_eq!(act.turn.fail("no").await, Ok::<_, TurnError>(()));
    act.returns();
    let (one, other) = (soon(one).await.unwrap(), soon(other).await.unwrap());
    assert_eq!(one, other);
    assert!(one.contains("after them") && one.contains("failed"), "{one}");
    let all = first.client().after(0).subscribe(&task.id).await.unwrap();
    assert_eq!(numbers(all).await.len(), one.lines().count(), "{one}");
}
