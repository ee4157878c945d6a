//! Nodes that share a store, a clock each, and what happens to them: processes are killed, frozen, asked to leave and
//! started again, and clocks jump.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::call::Endpoint;
use switchboard_core::model::{AgentCapabilities, AgentCard};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{CountingIds, MemoryStore};
use switchboard_engine::ports::Store;
use switchboard_engine::runs::{AgentSource, Traits};
use switchboard_engine::{Engine, Registered};
use tokio::sync::Notify;

use super::agent::{Deeds, EITHER, FRAIL, PUPPET, PURE, Puppet};
use super::audit::Audit;
use super::clocks::SimClock;
use super::dice::Dice;
use super::hints::{Bus, NodeHints, Telling};
use super::hooks::{NodeWebhook, Receiver};
use super::journal::{Journal, count};
use super::life::{End, Life};
use super::store::{NodeStore, WeatherWay};
use super::weather::{Trouble, Weather};

/// How a process opens the store that all share.
pub(super) type Opener = Box<dyn Fn(&Arc<Life>) -> Arc<dyn Store> + Send + Sync>;

/// What a test may build differently.
pub(super) struct Build {
    /// Between the nodes and the memory store.
    pub(super) store: fn(Arc<MemoryStore>) -> Opener,
    /// Between the nodes and the bus.
    pub(super) hints: Telling,
    pub(super) limits: fn(&mut Limits),
}

impl Default for Build {
    fn default() -> Self {
        // Every process has a handle of its own.
        Self {
            store: |store| Box::new(move |_| Arc::new(store.second_handle())),
            hints: |hint| Some(hint),
            limits: |_| {},
        }
    }
}

#[derive(Clone)]
pub(super) struct World(Arc<Inner>);

struct Inner {
    journal: Arc<Journal>,
    weather: Arc<Weather>,
    audit: Arc<Audit>,
    receiver: Arc<Receiver>,
    bus: Arc<Bus>,
    /// What is really stored.
    memory: Arc<MemoryStore>,
    open_store: Opener,
    telling: Telling,
    clock: Arc<SimClock>,
    /// How far all clocks have jumped, whichever way.
    jumped_ms: AtomicI64,
    ids: Arc<CountingIds>,
    deeds: Arc<Mutex<Deeds>>,
    limits: Limits,
    nodes: Vec<Node>,
    /// Told when a process starts or ends.
    changed: Notify,
}

struct Node {
    /// The agents of its processes.
    serves: Vec<&'static str>,
    clock: Arc<SimClock>,
    process: Mutex<Option<Process>>,
}

#[derive(Clone)]
struct Process {
    life: Arc<Life>,
    engine: Engine,
}

impl World {
    pub(super) fn new(build: &Build, trouble: Trouble, keep_steps: bool, dice: &mut Dice) -> Self {
        let journal = Arc::new(Journal::new(keep_steps));
        let clock = Arc::new(SimClock::new());
        let memory = Arc::new(MemoryStore::new(clock.clone(), 100_000));
        // No other process takes over from a lone process.
        let nodes = if trouble == Trouble::Seeded { [1, 2, 2, 3][dice.pick(4)] } else { 2 };
        let serves = agents_of(nodes, trouble, dice).into_iter();
        let node = |serves| Node { serves, clock: Arc::new(SimClock::new()), process: Mutex::default() };
        let mut limits = limits(dice);
        (build.limits)(&mut limits);
        Self(Arc::new(Inner {
            weather: Arc::new(Weather::new(journal.clone(), trouble, limits.lease_ms, dice.fork())),
            audit: Arc::new(Audit::new(journal.clone())),
            journal,
            receiver: Arc::default(),
            bus: Arc::default(),
            open_store: (build.store)(memory.clone()),
            telling: build.hints,
            memory,
            clock,
            jumped_ms: AtomicI64::new(0),
            ids: Arc::default(),
            deeds: Arc::default(),
            limits,
            nodes: serves.map(node).collect(),
            changed: Notify::new(),
        }))
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    pub(super) fn audit(&self) -> &Audit {
        &self.0.audit
    }

    pub(super) fn receiver(&self) -> &Receiver {
        &self.0.receiver
    }

    /// What is really stored.
    pub(super) fn memory(&self) -> &MemoryStore {
        &self.0.memory
    }

    pub(super) fn steps(&self) -> u64 {
        self.0.weather.steps()
    }

    /// Whether nothing goes wrong from beginning to end.
    pub(super) fn is_fair(&self) -> bool {
        self.0.weather.is_fair()
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(super) fn jumped(&self) -> Duration {
        Duration::from_millis(self.0.jumped_ms.load(Ordering::Relaxed).unsigned_abs())
    }

    /// Starts every node, and keeps it running whatever happens to its processes.
    pub(super) fn start(&self, dice: &mut Dice) {
        for node in 0..self.0.nodes.len() {
            tokio::spawn(self.clone().keep(node, dice.fork()));
        }
    }

    async fn keep(self, node: usize, mut dice: Dice) {
        for number in 1.. {
            let Process { life, engine } = self.launch(node, number);
            let end = life.ended().await;
            *self.0.nodes[node].process.lock().unwrap() = None;
            if end == End::Leaving {
                count(&self.0.journal.counts.shutdowns);
                self.0.journal.say(|| format!("{} leaves", life.name));
                let grace = Duration::from_millis(dice.below(1_500));
                let shutdown = engine.shutdown(grace);
                tokio::select! {
                    biased;
                    () = life.death() => {}
                    () = shutdown => {}
                }
                life.die();
            }
            engine.supervisor().stop().await;
            drop(engine);
            if self.0.nodes.len() == 1 {
                // One process per store is proved by a lock, so the next one knows that this one is gone.
                self.0.memory.void_leases();
            }
            tokio::time::sleep(Duration::from_millis(dice.between(1, 3_000))).await;
        }
    }

    fn launch(&self, node: usize, number: u64) -> Process {
        let Inner { journal, weather, audit, receiver, bus, open_store, telling, ids, deeds, limits, nodes, .. } =
            &*self.0;
        let life = Arc::new(Life::new(node, number, nodes[node].serves.clone()));
        journal.say(|| format!("{} starts", life.name));
        let below = open_store(&life);
        let way = WeatherWay { life: life.clone(), weather: weather.clone(), audit: audit.clone() };
        let store = NodeStore { below, way };
        let (bus, telling) = (bus.clone(), *telling);
        let hints = NodeHints { bus, telling, life: life.clone(), weather: weather.clone() };
        let webhook = NodeWebhook {
            receiver: receiver.clone(),
            life: life.clone(),
            weather: weather.clone(),
            audit: audit.clone(),
        };
        let mut engine = Engine::builder(Arc::new(store))
            .clock(nodes[node].clock.clone())
            .ids(ids.clone())
            .hints(Arc::new(hints))
            .webhook(Arc::new(webhook))
            .limits(limits.clone());
        let traits = Traits::default();
        let puppet = Puppet { life: life.clone(), journal: journal.clone(), deeds: deeds.clone(), traits };
        for name in &life.serves {
            engine = engine.agent(registered(name, puppet.source(name)));
        }
        let engine = engine.build();
        engine.start();
        let process = Process { life: life.clone(), engine };
        *nodes[node].process.lock().unwrap() = Some(process.clone());
        self.0.changed.notify_waiters();
        process
    }

    /// A process that takes calls for this agent, whichever `pick` says; waits while there is none. It may stand still.
    pub(super) async fn process(&self, pick: usize, agent: &str) -> (Arc<Life>, Arc<dyn Endpoint>) {
        loop {
            let changed = self.0.changed.notified();
            let alive = self.0.nodes.iter().filter_map(|node| node.process.lock().unwrap().clone());
            let alive: Vec<Process> = alive.filter(|process| process.life.serves.contains(&agent)).collect();
            if !alive.is_empty() {
                let Process { life, engine } = &alive[pick % alive.len()];
                return (life.clone(), engine.endpoint(agent).unwrap());
            }
            changed.await;
        }
    }

    /// Kills, freezes, sends away and misleads, as long as there is trouble.
    pub(super) async fn trouble(self, mut dice: Dice) {
        loop {
            tokio::time::sleep(Duration::from_millis(dice.between(50, 6_000))).await;
            if self.0.weather.is_calm() {
                return;
            }
            let node = &self.0.nodes[dice.pick(self.0.nodes.len())];
            let what = dice.below(7);
            if let 0 | 1 = what {
                let clock = if what == 0 { &self.0.clock } else { &node.clock };
                self.jump(clock, dice.below(90_000).cast_signed() - 30_000);
                continue;
            }
            let process = node.process.lock().unwrap().clone();
            let Some(Process { life, .. }) = process else { continue };
            match what {
                2 => self.0.weather.kill(&life, "between two steps"),
                3 => life.leave(),
                _ => {
                    let ms = self.0.weather.freeze(&life, "between two steps");
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    life.thaw();
                }
            }
        }
    }

    fn jump(&self, clock: &SimClock, ms: i64) {
        count(&self.0.journal.counts.clock_jumps);
        self.0.journal.say(|| format!("a clock jumps by {ms} ms"));
        self.0.jumped_ms.fetch_add(ms.abs(), Ordering::Relaxed);
        clock.jump_ms(ms);
    }

    /// No more trouble: what is left must come to rest.
    pub(super) fn calm_down(&self) {
        self.0.journal.say(|| "all is calm".to_owned());
        self.0.weather.calm_down();
        for node in &self.0.nodes {
            if let Some(process) = &*node.process.lock().unwrap() {
                process.life.thaw();
            }
        }
    }
}

/// Which agents each node serves: every agent somewhere, and in half of the worlds not each of them everywhere.
fn agents_of(nodes: usize, trouble: Trouble, dice: &mut Dice) -> Vec<Vec<&'static str>> {
    let mut serves = vec![Vec::new(); nodes];
    let all_alike = trouble != Trouble::Seeded || dice.one_in(2);
    for agent in [PUPPET, PURE, EITHER, FRAIL] {
        let only = (!all_alike && dice.one_in(2)).then(|| dice.pick(nodes));
        for (node, serves) in serves.iter_mut().enumerate() {
            if only.is_none_or(|only| only == node) {
                serves.push(agent);
            }
        }
    }
    serves
}

/// Small enough that every bound is met: rings that overflow, pages that end, leases that run out.
fn limits(dice: &mut Dice) -> Limits {
    Limits {
        lease_ms: 3_000,
        sweep_ms: 500,
        run_s_max: [5, 15][dice.pick(2)],
        attempts_max: [3, 1_000][dice.pick(2)],
        retry_backoff_ms_min: 200,
        retry_backoff_ms_max: 2_000,
        runs_max: [2, 1_000][dice.pick(2)],
        cancel_grace_ms: 1_000,
        settle_wait_s_max: 20,
        birth_wait_ms: 300,
        follow_poll_ms: 1_500,
        tail_updates_max: [4, 256][dice.pick(2)],
        log_page_commits: [2, 256][dice.pick(2)],
        delivery_backoff_ms_min: 50,
        delivery_backoff_ms_max: 1_000,
        delivery_timeout_ms: 1_000,
        delivery_failures_max: 1_000_000,
        ..Limits::default()
    }
}

/// An agent of the simulation, with a card that allows everything.
pub(super) fn registered(name: &str, source: AgentSource) -> Registered {
    let card = AgentCard {
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            ..AgentCapabilities::default()
        },
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        ..AgentCard::default()
    };
    Registered {
        name: name.into(),
        source,
        card: Arc::new(card.into()),
        extended_card: None,
        extended_card_for_anyone: false,
    }
}
