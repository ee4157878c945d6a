//! A receiver at its worst, by seed: errors, silence, late answers, connections that break before or after it has taken
//! an update, outages; the engine dies in between, and dead letters are redriven. Whatever happens, every update arrives
//! at least once and in order for its webhook.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::call::{BoxFuture, SendMessage};
use switchboard_core::model::{PushConfig, TaskState};
use switchboard_engine::ports::outbox::OutboxState;
use switchboard_engine::ports::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
use switchboard_engine::push::OutboxFilter;
use switchboard_engine::runs::{AgentSource, Traits};

use crate::sim::dice::Dice;
use crate::support::callers::{at_once, hook, say};
use crate::support::puppets::from_fn;
use crate::support::world::{Setup, Stock, World, registered};

const SEEDS: u64 = 12;
const SEEDS_LONG: u64 = 300;
const TASKS: usize = 30;
const ENDPOINTS: u64 = 4;
/// What an agent here says: the task, working, five chunks, completed.
const UPDATES: u64 = 8;

/// What is wrong with a receiver for the length of one call.
enum Mood {
    Fine,
    Status(u16),
    /// Takes it, and the connection breaks before its answer arrives.
    TakesAndBreaks,
    Breaks,
    /// Takes it, and answers after so many milliseconds, which may be too late.
    Slow(u64),
    Silent,
}

struct Receiver {
    dice: Mutex<Dice>,
    /// The last number each webhook has taken, by task and config.
    taken: Mutex<BTreeMap<String, u64>>,
    duplicates: Mutex<u64>,
}

impl Receiver {
    fn new(dice: Dice) -> Arc<Self> {
        Arc::new(Self { dice: Mutex::new(dice), taken: Mutex::default(), duplicates: Mutex::default() })
    }

    fn mood(&self, url: &str) -> Mood {
        let mut dice = self.dice.lock().unwrap();
        // One endpoint is always worse than the others.
        let bad = if url.contains("hooks-0") { 3 } else { 10 };
        if !dice.one_in(bad) && !dice.one_in(3) {
            return Mood::Fine;
        }
        match dice.below(6) {
            0 => Mood::Status(500 + u16::try_from(dice.below(5)).unwrap()),
            1 => Mood::Status([302, 404, 410, 429][usize::try_from(dice.below(4)).unwrap()]),
            2 => Mood::TakesAndBreaks,
            3 => Mood::Breaks,
            4 => Mood::Slow(dice.between(1, 25_000)),
            _ => Mood::Silent,
        }
    }

    /// Holds an arrival against what came before.
    fn take(&self, id: &str, seq: u64) {
        let webhook = id.strip_suffix(&format!(":{seq}")).expect("the id ends with the number");
        let mut taken = self.taken.lock().unwrap();
        let last = taken.entry(webhook.to_owned()).or_default();
        assert!(seq <= *last + 1, "{id} came after {last}");
        if seq == *last + 1 {
            *last = seq;
        } else {
            *self.duplicates.lock().unwrap() += 1;
        }
    }

    fn is_complete(&self, webhooks: usize) -> bool {
        let taken = self.taken.lock().unwrap();
        taken.len() == webhooks && taken.values().all(|last| *last == UPDATES)
    }
}

impl Webhook for Receiver {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        let header = |name: &str| call.headers.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        let (id, seq) = (header("a2a-delivery-id"), header("a2a-delivery-seq").parse().unwrap());
        let mood = self.mood(&call.url);
        Box::pin(async move {
            let broken = || Err(WebhookError::Failed("connection reset".to_owned()));
            match mood {
                Mood::Fine => {
                    self.take(&id, seq);
                    Ok(200.into())
                }
                Mood::Status(status) => Ok(status.into()),
                Mood::TakesAndBreaks => {
                    self.take(&id, seq);
                    broken()
                }
                Mood::Breaks => broken(),
                Mood::Slow(ms) => {
                    self.take(&id, seq);
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    Ok(200.into())
                }
                Mood::Silent => std::future::pending().await,
            }
        })
    }
}

fn talker() -> AgentSource {
    from_fn(Traits::default(), |turn| async move {
        turn.working("").await?;
        let mut writer = turn.artifact_writer();
        for number in 0..5 {
            writer.text(format!("{number} ")).await?;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok(())
    })
}

fn start(stock: Stock, receiver: &Arc<Receiver>) -> World {
    let setup = Setup::on(stock).limits(|limits| {
        limits.delivery_failures_max = 4;
        limits.deliveries_max = 16;
    });
    setup.webhook(receiver.clone()).agent(registered("talker", talker())).start()
}

#[test]
fn every_update_arrives_in_order_whatever_the_receiver_does() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let mut sums = [0; 3];
    for seed in 1..=if long { SEEDS_LONG } else { SEEDS } {
        println!("seed {seed}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let seen = runtime.block_on(run(seed));
        sums = std::array::from_fn(|index| sums[index] + seen[index]);
    }
    println!("{} duplicates, {} dead letters, {} rounds", sums[0], sums[1], sums[2]);
    assert!(sums[0] > 0 && sums[1] > 0, "nothing was doubled or given up on, so nothing was shown: {sums:?}");
}

/// One seed; says how many duplicates and dead letters it saw, and how often an operator had to come.
async fn run(seed: u64) -> [u64; 3] {
    let mut dice = Dice::new(seed);
    let receiver = Receiver::new(dice.fork());
    let mut world = start(Stock::memory(), &receiver);
    let mut tasks = Vec::new();
    for number in 0..TASKS {
        let url = format!("https://hooks-{}.example/in", dice.below(ENDPOINTS));
        let config = PushConfig { url, ..hook("", "c") };
        let send = SendMessage { push_config: Some(config), ..say(&format!("text {number}")) };
        tasks.push(world.client().send(at_once(send)).await.unwrap().id.clone());
        tokio::time::sleep(Duration::from_millis(dice.below(1_000))).await;
    }
    for task in &tasks {
        world.client().task_in(task, TaskState::Completed).await;
    }
    let (mut dead, mut rounds) = (0, 0);
    let filter = OutboxFilter { state: Some(OutboxState::Dead), endpoint: None };
    while !receiver.is_complete(TASKS) {
        rounds += 1;
        assert!(rounds < 500, "{:?}", receiver.taken.lock().unwrap());
        tokio::time::sleep(Duration::from_millis(dice.below(120_000))).await;
        if dice.one_in(3) {
            world = start(world.crash().await, &receiver);
        }
        let letters = world.engine.outbox().list(&filter, None, 100).await.unwrap().entries.len();
        let redriven = world.engine.outbox().redrive_dead(None, None).await.unwrap().changed;
        assert_eq!(redriven, letters);
        dead += letters as u64;
    }
    // A receiver that has everything gets no further posts.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let left = world.engine.outbox().list(&OutboxFilter::default(), None, 100).await.unwrap().entries;
    let left: Vec<_> = left.iter().filter(|entry| entry.state != OutboxState::Dead).collect();
    assert!(left.is_empty(), "{left:?}");
    let duplicates = *receiver.duplicates.lock().unwrap();
    [duplicates, dead, rounds]
}
