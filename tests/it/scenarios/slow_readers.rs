//! Readers that do not keep up: they lose nothing, cost a bounded amount, and hold nobody up.

use std::time::Duration;

use futures_util::StreamExt;
use switchboard_core::call::UpdateStream;
use switchboard_core::model::{TaskState, Update};
use switchboard_engine::runs::Traits;

use crate::support::callers::{say, soon};
use crate::support::gated_store::GatedStore;
use crate::support::on_both_stores;
use crate::support::pictures::{next_frame, numbers};
use crate::support::puppets::{from_fn, puppet};
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
    // And whoever comes back to it finds everything.
    assert_eq!(numbers(unread).await.len(), 10_002);
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_hints_are_lost_is_only_late() {
    use std::sync::Arc;
    use switchboard_engine::Engine;
    use switchboard_engine::memory::{CountingIds, MemoryStore};
    use switchboard_engine::ports::{Hint, HintSink, Hints};
    use switchboard_engine::system::SystemClock;

    use crate::support::callers::Client;

    /// Nobody is ever told anything.
    struct Deaf;
    impl Hints for Deaf {
        fn notify(&self, _: Hint<'_>) {}
        fn listen(&self, _: Arc<dyn HintSink>) {}
    }
    let (agent, acts) = puppet(Traits::default());
    let engine = Engine::builder(Arc::new(MemoryStore::new(Arc::new(SystemClock), 100)))
        .hints(Arc::new(Deaf))
        .ids(Arc::new(CountingIds::default()))
        .agent(registered("puppet", agent))
        .build();
    engine.start();
    let client = Client::new(engine.endpoint("puppet").unwrap(), switchboard_core::call::Caller::anonymous());
    let mut stream = client.stream(say("hello")).await.unwrap();
    next_frame(&mut stream).await.unwrap().unwrap();
    let act = acts.next().await;
    act.turn.text_artifact("unannounced").await.unwrap();
    act.returns();
    let began = tokio::time::Instant::now();
    assert_eq!(numbers(stream).await, [2, 3]);
    assert!(began.elapsed() < Duration::from_secs(21), "{:?}", began.elapsed());
}
