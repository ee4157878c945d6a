//! How often due deliveries are looked for: rarely while there are none, and never so rarely that a webhook comes late.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::SendMessage;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock;
use tokio::time::{Instant, sleep};

use crate::support::callers::{hook, say};
use crate::support::gated_store::GatedStore;
use crate::support::hooks::{Answer, Hooks};
use crate::support::puppets::echo;
use crate::support::world::{Setup, Stock, World, registered};

const MINUTE: Duration = Duration::from_secs(60);

fn with_hook(text: &str) -> SendMessage {
    SendMessage { push_config: Some(hook("", "c")), ..say(text) }
}

/// A store that counts looks, under a clock that is so far behind that of the engine, and what a world on it stands on.
fn counting(behind_ms: i64) -> (Arc<GatedStore>, Stock) {
    let mut made = None;
    let stock = Stock::given(|clock| {
        let store = GatedStore::open(Arc::new(Behind { clock, by_ms: behind_ms }));
        made = Some(store.clone());
        store
    });
    (made.unwrap(), stock)
}

struct Behind {
    clock: Arc<dyn Clock>,
    by_ms: i64,
}

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        self.clock.now().plus_ms(-self.by_ms)
    }
}

fn world(stock: &Stock, hooks: &Arc<Hooks>) -> World {
    Setup::on(stock.clone()).webhook(hooks.clone()).agent(registered("echo", echo())).start()
}

/// How often it is looked in a minute.
async fn looks_in_a_minute(store: &GatedStore) -> u64 {
    let before = store.delivery_looks();
    sleep(MINUTE).await;
    store.delivery_looks() - before
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_looks_a_few_times_in_a_minute_and_posts_at_once() {
    let (store, stock) = counting(0);
    let hooks = Hooks::new();
    let world = world(&stock, &hooks);
    let looks = looks_in_a_minute(&store).await;
    assert!((5..=7).contains(&looks), "{looks}");
    let sent = Instant::now();
    world.client().send(with_hook("hello")).await.unwrap();
    hooks.calls(3).await;
    assert!(sent.elapsed() < Duration::from_millis(100), "{:?}", sent.elapsed());
    sleep(MINUTE).await;
    let looks = looks_in_a_minute(&store).await;
    assert!((5..=7).contains(&looks), "{looks} after everything was delivered");
}

#[tokio::test(start_paused = true)]
async fn while_a_delivery_waits_it_is_looked_for_more_often() {
    let (store, stock) = counting(0);
    let hooks = Hooks::answering([Answer::Busy(503, 200_000)]);
    let world = world(&stock, &hooks);
    world.client().send(with_hook("hello")).await.unwrap();
    hooks.calls(1).await;
    let looks = looks_in_a_minute(&store).await;
    assert!((29..=40).contains(&looks), "{looks}");
}

#[tokio::test(start_paused = true)]
async fn what_a_process_left_behind_is_found_within_a_third_of_a_lease() {
    let (_, stock) = counting(0);
    let (of_first, of_second) = (Hooks::new(), Hooks::new());
    // Its loops stand still, as those of a process that dies right after its commit.
    let first = Setup::on(stock.clone()).webhook(of_first.clone()).agent(registered("echo", echo())).start_frozen();
    let _second = world(&stock, &of_second);
    sleep(MINUTE).await;
    let sent = Instant::now();
    first.client().send(with_hook("hello")).await.unwrap();
    of_second.calls(3).await;
    assert!(sent.elapsed() <= Duration::from_secs(10), "{:?}", sent.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_of_the_stores_makes_nobody_ask_without_end() {
    let (store, stock) = counting(60_000);
    let hooks = Hooks::answering([Answer::Busy(503, 60_000)]);
    let first = world(&stock, &hooks);
    let task = first.client().send(with_hook("hello")).await.unwrap();
    hooks.calls(1).await;
    sleep(Duration::from_secs(1)).await;
    first.crash().await;
    // The next process learns from the store when the delivery is due. By its own clock that is over.
    let looks = store.delivery_looks();
    let second = world(&stock, &hooks);
    let calls = hooks.calls(4).await;
    assert_eq!(calls[1].header("a2a-delivery-id"), Some(&*format!("{}:c:1", task.id)));
    assert!((60_000..=65_000).contains(&(calls[1].at_ms - calls[0].at_ms)), "{calls:?}");
    let looks = store.delivery_looks() - looks;
    assert!(looks < 60, "{looks}");
    drop(second);
}
