//! Clients that follow a task by its stream, and come back to it where it broke. Some leave by themselves now and then,
//! and some have company: a second reader of the same task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::super::client::{Events, Next, Trouble};
use super::super::dice::Dice;
use super::super::ledger::{Entry, digest};
use super::super::wish::{Whom, Wish, is_terminal};
use super::{Order, PAUSE, Unanswered, World, send};

pub(super) async fn follower(world: Arc<World>, mut dice: Dice) {
    while !world.is_closing() {
        let chunks = u32::try_from(dice.between(3, 60)).unwrap_or(60);
        let order = world.order(Wish::Chunks { chunks }, dice.one_in(6)).await;
        if dice.one_in(2) {
            with_company(&world, &order, dice.fork()).await;
        } else {
            by_stream(&world, &order, dice.fork()).await;
        }
        sleep(Duration::from_millis(dice.between(5, 60))).await;
    }
}

pub(super) async fn commander(world: Arc<World>, mut dice: Dice) {
    while !world.is_closing() {
        let (lines, pause_ms) = (dice.between(2, 12), dice.between(0, 60));
        let lines = u32::try_from(lines).unwrap_or(12);
        let pause_ms = u32::try_from(pause_ms).unwrap_or(60);
        let wish = Wish::Lines { salt: dice.roll(), lines, pause_ms, fragile: dice.one_in(3) };
        let order = world.order(wish, dice.one_in(3)).await;
        if dice.one_in(3) {
            if let Some(task) = send::submit(&world, &order, false).await {
                send::told(&world, &task).await;
            }
        } else {
            by_stream(&world, &order, dice.fork()).await;
        }
        sleep(Duration::from_millis(dice.between(5, 60))).await;
    }
}

/// Sends without waiting, then reads the task twice at once.
async fn with_company(world: &World, order: &Order, mut dice: Dice) {
    let Some(task) = send::submit(world, order, true).await else { return };
    let Some(id) = task["id"].as_str() else { return };
    let mut one = Reader::of(world, order.wish.whom(), id, dice.fork());
    let mut other = Reader::of(world, order.wish.whom(), id, dice.fork());
    tokio::join!(one.read_on(None), other.read_on(None));
}

/// Sends by a stream and follows it.
async fn by_stream(world: &World, order: &Order, dice: Dice) {
    let mut reader = Reader::of(world, order.wish.whom(), "", dice);
    reader.read_on(Some(order)).await;
}

struct Reader<'a> {
    world: &'a World,
    whom: Whom,
    number: u64,
    /// Empty until the first event names it.
    task: String,
    last: u64,
    dice: Dice,
}

/// How a connection ended.
enum Left {
    AtTheEnd,
    Midway,
    GaveUp,
}

impl<'a> Reader<'a> {
    fn of(world: &'a World, whom: Whom, task: &str, dice: Dice) -> Self {
        let number = world.readers.fetch_add(1, Ordering::Relaxed) + 1;
        Self { world, whom, number, task: task.to_owned(), last: 0, dice }
    }

    async fn read_on(&mut self, order: Option<&Order>) {
        loop {
            let opened = self.open(order).await;
            match opened {
                Ok(events) => match self.read(events, order).await {
                    Left::AtTheEnd | Left::GaveUp => return,
                    Left::Midway if self.world.is_over() => return,
                    Left::Midway => sleep(PAUSE).await,
                },
                Err(trouble) => {
                    if !self.world.try_again("a stream", trouble).await {
                        return;
                    }
                }
            }
        }
    }

    /// Opens the stream, or opens it again where it broke: by its task, or by the message that began it.
    async fn open(&mut self, order: Option<&Order>) -> Result<Events, Trouble> {
        let client = &self.world.client;
        let repost = order.filter(|_| self.last == 0 || self.dice.one_in(3));
        let opened = match repost {
            Some(order) => {
                let send = order.send(self.world.hooks, false);
                let cursor = (self.last > 0).then_some(self.last);
                let unanswered = Unanswered::new(self.world);
                unanswered.ended(client.send_stream(self.whom, &send, &order.key(), cursor).await)
            }
            None => client.subscribe(self.whom, &self.task, self.last).await,
        };
        if opened.is_ok() && self.last > 0 {
            self.world.resumed.fetch_add(1, Ordering::Relaxed);
        }
        opened
    }

    async fn read(&mut self, mut events: Events, order: Option<&Order>) -> Left {
        // Some clients leave in the middle, as people do.
        let mut patience = if self.dice.one_in(8) { self.dice.between(1, 6) } else { u64::MAX };
        while patience > 0 {
            patience -= 1;
            match events.next().await {
                Next::Event { seq, data } => {
                    if self.shown(seq, &data, order).await {
                        return Left::AtTheEnd;
                    }
                }
                Next::End | Next::Broken => return Left::Midway,
                Next::Wrong(what) => {
                    self.world.complain(format!("a stream of task {} broke with {what}", self.task));
                    return Left::GaveUp;
                }
            }
        }
        Left::Midway
    }

    /// True if that was the last event.
    async fn shown(&mut self, seq: u64, data: &[u8], order: Option<&Order>) -> bool {
        let event: Value = serde_json::from_slice(data).unwrap_or_default();
        if self.task.is_empty() {
            self.task = event["task"]["id"].as_str().unwrap_or_default().to_owned();
            if let Some(order) = order {
                self.world.accepted(order, &self.task).await;
            }
        }
        self.last = seq;
        let (task, digest) = (self.task.clone(), digest(data));
        self.world.ledger.record(Entry::Seen { reader: self.number, task, seq, digest }).await;
        event["statusUpdate"]["status"]["state"].as_str().is_some_and(is_terminal)
    }
}
