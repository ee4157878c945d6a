//! One cell: a store, the replicas that share it, the tasks that are sent to them, and what happens to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use switchboard_core::call::{Caller, Owner, Reply, Request, SendMessage};
use switchboard_core::model::{Message, Part, Role};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::MemoryStore;
use tokio::time::{Instant, sleep, timeout};

use super::super::clocks::SimClock;
use super::super::dice::Dice;
use super::super::life::{End, Life};
use super::Plan;
use super::book::Book;
use super::figures::Figures;
use super::link::Hand;
use super::replica::{Process, Replica, Shared, WORKER};

/// How long a replica is left in peace, on average.
const PEACE: Duration = Duration::from_secs(600);
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it tries: for longer than anything lasts that goes wrong.
const TRIES_MAX: u32 = 500;
/// How long the store of a cell is gone in a disaster: longer than a lease.
const STORE_GONE_S: (u64, u64) = (40, 90);
/// Longer than all that is left to do may take once there is peace.
const REST: Duration = Duration::from_secs(3_600);
const LOOK: Duration = Duration::from_secs(1);
/// What a takeover may take beyond the lease and one sweep.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Cell(Arc<Inner>);

struct Inner {
    plan: Plan,
    shared: Shared,
    /// The clock of the store.
    clock: Arc<SimClock>,
    replicas: Vec<Replica>,
    calm: AtomicBool,
    accepted: AtomicU64,
    dice: Dice,
}

impl Cell {
    pub(super) fn new(plan: Plan, mut dice: Dice) -> Self {
        let clock = Arc::new(SimClock::drifting(200));
        let limits = Limits { attempts_max: 1_000, run_s_max: 86_400, ..Limits::default() };
        let silence_ms = u64::from(limits.lease_ms) + u64::from(limits.sweep_ms);
        let book = Arc::new(Book::new(Duration::from_millis(silence_ms) + GRACE));
        let memory = MemoryStore::new(clock.clone(), 1_000_000);
        let replicas = (0..plan.replicas).map(|_| Replica::new(&mut dice)).collect();
        Self(Arc::new(Inner {
            plan,
            shared: Shared { memory, book, ids: Arc::default(), limits },
            clock,
            replicas,
            calm: AtomicBool::new(false),
            accepted: AtomicU64::new(0),
            dice,
        }))
    }

    /// From the first start to the end of the last task.
    pub(super) async fn live(self) -> Figures {
        let (mut dice, plan) = (self.0.dice.clone(), self.0.plan);
        self.start(&mut dice);
        tokio::spawn(self.clone().misfortunes(dice.fork()));
        tokio::spawn(self.clone().disasters(dice.fork()));
        let mut sends = Vec::new();
        for number in 0..plan.tasks {
            let (cell, mut dice) = (self.clone(), dice.fork());
            sends.push(tokio::spawn(async move {
                sleep(Duration::from_millis(dice.below(whole_ms(plan.trouble)))).await;
                let steps = dice.between(1, 12);
                cell.send(number, steps, dice).await;
            }));
        }
        for send in sends {
            send.await.unwrap();
        }
        let trouble = self.0.shared.book.started() + plan.trouble;
        tokio::time::sleep_until(trouble).await;
        self.0.calm.store(true, Ordering::Relaxed);
        let rest = Instant::now() + REST;
        while self.0.shared.book.runs() > 0 && Instant::now() < rest {
            sleep(LOOK).await;
        }
        self.0.shared.book.close(self.0.accepted.load(Ordering::Relaxed)).of_cell(plan.replicas)
    }

    /// Replicas that hold runs, and nothing happens to them.
    pub(super) async fn stand_by(self, runs: u64) -> Figures {
        let mut dice = self.0.dice.clone();
        self.start(&mut dice);
        self.send_all(runs, &mut dice).await;
        // What was seen until here is not counted.
        self.0.shared.book.pause();
        sleep(Duration::from_secs(3_600)).await;
        let mut figures = self.0.shared.book.pause();
        figures.seconds = 3600;
        figures.of_cell(self.0.replicas.len())
    }

    /// Replicas that hold runs, and cannot reach their store for this long.
    pub(super) async fn lose_the_store(self, runs: u64, gone: Duration) -> Figures {
        let mut dice = self.0.dice.clone();
        self.start(&mut dice);
        self.send_all(runs, &mut dice).await;
        sleep(Duration::from_secs(60)).await;
        self.0.shared.book.pause();
        self.store_is_gone(gone).await;
        sleep(Duration::from_secs(180)).await;
        self.0.shared.book.pause().of_cell(self.0.replicas.len())
    }

    /// Sends messages whose runs never end.
    async fn send_all(&self, runs: u64, dice: &mut Dice) {
        let sends = (0..runs).map(|number| self.send(number, 0, dice.fork()));
        futures_util::future::join_all(sends).await;
    }

    /// Starts every replica, and keeps it running whatever happens to its processes.
    fn start(&self, dice: &mut Dice) {
        for node in 0..self.0.replicas.len() {
            tokio::spawn(self.clone().keep(node, dice.fork()));
        }
        tokio::spawn(self.clone().look());
    }

    async fn look(self) {
        loop {
            sleep(LOOK).await;
            let well_for = self.0.replicas.iter().map(Replica::well_for).max().unwrap_or_default();
            self.0.shared.book.look(well_for);
        }
    }

    async fn keep(self, node: usize, mut dice: Dice) {
        let replica = &self.0.replicas[node];
        for number in 1.. {
            let life = Life::new(node, number, vec![WORKER]);
            let Process { hand: Hand { life, .. }, engine } = replica.launch(life, &self.0.shared, dice.fork());
            let end = life.ended().await;
            *replica.process.lock().unwrap() = None;
            if end == End::Leaving {
                tokio::select! {
                    biased;
                    () = life.death() => {}
                    () = engine.shutdown(Duration::from_secs(dice.below(10))) => {}
                }
                life.die();
            }
            engine.supervisor().stop().await;
            drop(engine);
            sleep(Duration::from_millis(dice.between(500, 30_000))).await;
        }
    }

    /// Sends one message until it is accepted.
    async fn send(&self, number: u64, steps: u64, mut dice: Dice) {
        let message = Message::new(Role::User, format!("message-{number}"), vec![Part::text(format!("steps {steps}"))]);
        let send = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        let mut caller = Caller::anonymous();
        // Many owners, so that no limit of one of them is met.
        caller.owner = Owner { tenant: "".into(), principal: format!("client-{number}").into() };
        caller.authenticated = true;
        for _ in 0..TRIES_MAX {
            let replica = &self.0.replicas[dice.pick(self.0.replicas.len())];
            if let Some(Process { hand, engine }) = replica.process() {
                let endpoint = engine.endpoint(WORKER).unwrap();
                let call = endpoint.call(caller.clone(), Request::SendMessage(send.clone().into()));
                if let Ok(Some(Ok(Reply::SentTask(_)))) = timeout(PATIENCE, hand.life.through(call)).await {
                    self.0.accepted.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                self.0.shared.book.count(|figures| figures.sends_repeated += 1);
            }
            sleep(Duration::from_millis(dice.between(100, 2_000))).await;
        }
        self.0.shared.book.count(|figures| figures.broken.push(format!("message {number} was never accepted")));
    }

    fn is_calm(&self) -> bool {
        self.0.calm.load(Ordering::Relaxed)
    }

    /// One replica after the other is killed, frozen, cut off, stopped or misled.
    async fn misfortunes(self, mut dice: Dice) {
        let mean_ms = whole_ms(PEACE) / self.0.replicas.len() as u64;
        loop {
            sleep(Duration::from_millis(dice.between(1, 2 * mean_ms))).await;
            if self.is_calm() {
                return;
            }
            let node = dice.pick(self.0.replicas.len());
            let replica = &self.0.replicas[node];
            // Most often for longer than a lease.
            let time = Duration::from_millis(dice.between(100, 3 * u64::from(self.0.shared.limits.lease_ms)));
            match (dice.below(10), replica.process()) {
                (0, _) => {
                    replica.clock.jump_ms(dice.below(600_000).cast_signed() - 300_000);
                    self.0.shared.book.count(|figures| figures.clock_jumps += 1);
                }
                (1..=2, _) => drop(tokio::spawn(self.clone().cut_off(node, time))),
                (3..=5, Some(Process { hand, .. })) => self.kill(&hand),
                (6..=7, Some(Process { hand, .. })) => drop(tokio::spawn(self.clone().freeze(hand, time))),
                (_, Some(Process { hand, .. })) => {
                    hand.life.leave();
                    self.0.shared.book.count(|figures| figures.stopped += 1);
                }
                (_, None) => {}
            }
        }
    }

    fn kill(&self, hand: &Hand) {
        hand.life.die();
        self.0.shared.book.count(|figures| figures.killed += 1);
    }

    async fn cut_off(self, node: usize, time: Duration) {
        self.0.shared.book.count(|figures| figures.cut_off += 1);
        let link = &self.0.replicas[node].link;
        link.cut();
        sleep(time).await;
        link.heal();
    }

    async fn freeze(self, hand: Hand, time: Duration) {
        self.0.shared.book.count(|figures| figures.frozen += 1);
        hand.life.freeze();
        sleep(time).await;
        hand.life.thaw();
    }

    async fn store_is_gone(&self, time: Duration) {
        self.0.replicas.iter().for_each(|replica| replica.link.cut());
        sleep(time).await;
        self.0.replicas.iter().for_each(|replica| replica.link.heal());
    }

    /// What happens to a whole cell: a third of its replicas die at once, its store is gone, the clock of the store jumps ahead
    /// by two leases, and back.
    async fn disasters(self, mut dice: Dice) {
        let pause = self.0.plan.trouble / 5;
        let jump_ms = 2 * i64::from(self.0.shared.limits.lease_ms);
        for disaster in 0..4 {
            sleep(pause).await;
            match disaster {
                0 => {
                    let processes = self.0.replicas.iter().filter_map(Replica::process);
                    let unlucky: Vec<Process> = processes.filter(|_| dice.one_in(3)).collect();
                    unlucky.iter().for_each(|process| self.kill(&process.hand));
                }
                1 => self.store_is_gone(Duration::from_secs(dice.between(STORE_GONE_S.0, STORE_GONE_S.1))).await,
                2 => self.0.clock.jump_ms(jump_ms),
                _ => self.0.clock.jump_ms(-jump_ms),
            }
            self.0.shared.book.count(|figures| figures.disasters += 1);
        }
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}
