//! Readers that do not keep up: they lose nothing, cost a bounded amount, and hold up no other reader.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use switchboard_core::call::UpdateStream;
use switchboard_core::model::{TaskId, TaskState, Update};
use switchboard_engine::ports::{Hint, HintSink, Hints};
use switchboard_engine::runs::{AgentSource, Traits};
use tokio::sync::Semaphore;

use crate::support::callers::{say, soon};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{next_frame, numbers};
use crate::support::puppets::{Acts, echo, from_fn, puppet};
use crate::support::world::{Setup, Stock, World, registered};

on_both_stores!(a_reader_that_falls_behind_the_shared_tail_reads_the_rest_from_the_store);

async fn a_reader_that_falls_behind_the_shared_tail_reads_the_rest_from_the_store(stock: Stock) {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::on(stock)
        .limits(|limits| {
            limits.tail_updates_max = 8;
            limits.log_page_commits = 5;
        })
        .agent(registered("puppet", agent))
        .start();
    let mut slow = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let id = act.turn.task().id.clone();
    let mut slower = world.client().subscribe(&id).await.unwrap();
    let mut writer = act.turn.artifact_writer();
    for number in 1..=100 {
        writer.text(format!("{number} ")).await.unwrap();
        // One reader keeps taking now and then, the other never does.
        if number % 30 == 0 {
            next_frame(&mut slow).await.unwrap().unwrap();
        }
    }
    act.returns();
    world.client().task_in(&id, TaskState::Completed).await;
    assert_eq!(text(&mut slower).await, (1..=100).map(|number| format!("{number} ")).collect::<String>());
    assert_eq!(numbers(slow).await, (4..=102).collect::<Vec<u64>>());
}

async fn text(stream: &mut UpdateStream) -> String {
    let mut text = String::new();
    while let Some(frame) = soon(stream.next()).await {
        if let Update::Artifact(update) = &frame.unwrap().update.update {
            text.push_str(&update.artifact.text());
        }
    }
    text
}

#[tokio::test(start_paused = true)]
async fn a_ring_that_is_full_of_bytes_overflows_to_the_store_too() {
    let (agent, acts) = puppet(Traits::default());
    let world = Setup::new().limits(|limits| limits.tail_bytes_max = 4_096).agent(registered("puppet", agent)).start();
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    let mut writer = act.turn.artifact_writer();
    for _ in 0..20 {
        writer.text("x".repeat(1_000)).await.unwrap();
    }
    act.returns();
    assert_eq!(text(&mut stream).await.len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_keeps_up_never_asks_the_store() {
    let (agent, acts) = puppet(Traits::default());
    let mut store = None;
    let stock = Stock::given(|clock| store.insert(GatedStore::open(clock)).clone());
    let store = store.unwrap();
    let world = Setup::on(stock).agent(registered("puppet", agent)).start();
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    let act = acts.next().await;
    next_frame(&mut stream).await.unwrap().unwrap();
    for _ in 0..1_000 {
        act.turn.working("on it").await.unwrap();
        next_frame(&mut stream).await.unwrap().unwrap();
    }
    act.returns();
    next_frame(&mut stream).await.unwrap().unwrap();
    assert!(next_frame(&mut stream).await.is_none());
    assert_eq!(store.log_reads(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_never_read_does_not_stop_the_run() {
    let agent = from_fn(Traits::default(), |turn| async move {
        let mut writer = turn.artifact_writer();
        for _ in 0..10_000 {
            writer.text("chunk").await?;
        }
        Ok(())
    });
    let world = World::of(registered("talkative", agent));
    let unread = world.client().stream(say("hello")).await.unwrap();
    let task = world.client().list(Default::default()).await.unwrap().tasks[0].task.clone();
    let done = world.client().task_in(&task.id, TaskState::Completed).await;
    assert_eq!(done.artifacts[0].parts.len(), 10_000);
    // And a reader that comes back finds everything.
    assert_eq!(numbers(unread).await.len(), 10_002);
}

/// An agent with three steps, which a test lets it make.
fn in_steps() -> (AgentSource, Arc<Semaphore>) {
    let steps = Arc::new(Semaphore::new(0));
    let given = steps.clone();
    let agent = from_fn(Traits::default(), move |turn| {
        let steps = given.clone();
        async move {
            for step in ["one", "two", "three"] {
                steps.acquire().await.unwrap().forget();
                turn.working(step).await?;
            }
            Ok(())
        }
    });
    (agent, steps)
}

/// A stream of that agent whose first frame was read, and the id of its task.
async fn begun_in_steps() -> (World, Arc<Semaphore>, TaskId, UpdateStream) {
    let (agent, steps) = in_steps();
    let world = World::of(registered("stepwise", agent));
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    let first = next_frame(&mut stream).await.unwrap().unwrap();
    let Update::Task(view) = &first.update.update else { panic!("the task comes first") };
    (world, steps, view.task.id.clone(), stream)
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_at_once_when_its_stream_has_a_frame_and_asks_for_no_more() {
    let (world, steps, id, stream) = begun_in_steps().await;
    let began = tokio::time::Instant::now();
    steps.add_permits(3);
    world.client().task_in(&id, TaskState::Completed).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(numbers(stream).await, [2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_when_its_stream_waited_and_is_not_asked_again() {
    let (world, steps, id, mut stream) = begun_in_steps().await;
    // The reader waits, and then turns to something else for good.
    assert!(futures_util::poll!(stream.next()).is_pending());
    let began = tokio::time::Instant::now();
    steps.add_permits(3);
    world.client().task_in(&id, TaskState::Completed).await;
    assert!(began.elapsed() < Duration::from_secs(15), "two sweeps at most: {:?}", began.elapsed());
    assert_eq!(numbers(stream).await, [2, 3, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_leaves_its_run_at_work() {
    let (world, steps, id, mut stream) = begun_in_steps().await;
    assert!(futures_util::poll!(stream.next()).is_pending());
    drop(stream);
    steps.add_permits(3);
    world.client().task_in(&id, TaskState::Completed).await;
}

/// Two processes on one store, which tell each other by these hints.
fn two_worlds(bus: &Arc<Bus>) -> (World, Acts, World) {
    let stock = Stock::memory();
    let (agent, acts) = puppet(Traits::default());
    let hints = || Arc::new(Ear { bus: bus.clone(), number: bus.ears.lock().unwrap().len() });
    let one = Setup::on(stock.clone()).hints(hints()).agent(registered("puppet", agent)).start();
    let other = Setup::on(stock).hints(hints()).agent(registered("puppet", echo())).start();
    (one, acts, other)
}

/// Tells all processes at once, or none.
#[derive(Default)]
struct Bus {
    is_silent: bool,
    ears: Mutex<Vec<Arc<dyn HintSink>>>,
}

struct Ear {
    bus: Arc<Bus>,
    number: usize,
}

impl Hints for Ear {
    fn notify(&self, hint: Hint<'_>) {
        if !self.bus.is_silent {
            self.bus.ears.lock().unwrap().iter().for_each(|ear| ear.hint(hint));
        }
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.bus.ears.lock().unwrap().insert(self.number, sink);
    }
}

/// How long a stream takes that is read in another process than its run.
async fn read_elsewhere(bus: &Arc<Bus>) -> Duration {
    let (one, acts, other) = two_worlds(bus);
    let task = one.client().start("hello").await;
    let act = acts.next().await;
    let stream = other.client().after(1).subscribe(&task.id).await.unwrap();
    let began = tokio::time::Instant::now();
    act.turn.answer("from the other side").await.unwrap();
    act.returns();
    assert_eq!(numbers(stream).await, [2, 3]);
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_reader_in_another_process_is_woken_by_a_hint_and_reads_the_log() {
    let took = read_elsewhere(&Arc::default()).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_hints_are_lost_is_only_late() {
    let took = read_elsewhere(&Arc::new(Bus { is_silent: true, ..Bus::default() })).await;
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(21), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn followers_in_the_process_of_the_run_need_no_hint_and_no_read() {
    let mut gate = None;
    let stock = Stock::given(|clock| gate.insert(GatedStore::open(clock)).clone());
    let (agent, acts) = puppet(Traits::default());
    let silent = Arc::new(Bus { is_silent: true, ..Bus::default() });
    let world =
        Setup::on(stock).hints(Arc::new(Ear { bus: silent, number: 0 })).agent(registered("puppet", agent)).start();
    let mut stream = world.client().stream(say("hello")).await.unwrap();
    next_frame(&mut stream).await.unwrap().unwrap();
    let act = acts.next().await;
    let began = tokio::time::Instant::now();
    act.turn.answer("at once").await.unwrap();
    act.returns();
    assert_eq!(numbers(stream).await, [2, 3]);
    assert!(began.elapsed() < Duration::from_millis(100), "{:?}", began.elapsed());
    assert_eq!(gate.unwrap().log_reads(), 0);
}
