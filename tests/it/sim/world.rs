//! The ports of the simulation, and the process that dies on them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::call::{BoxFuture, Endpoint};
use switchboard_core::model::{AgentCapabilities, AgentCard, PushConfig, TaskId, Timestamp};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{CountingIds, MemoryStore};
use switchboard_engine::ports::store::{
    Accepted, Commit, CommitError, Delivery, DeliveryKey, DeliveryOutcome, ListPage, ListQuery, LogPage, Retention,
    Scope, StoreError, StoreStats, StoredHead, StoredTask, TaskKey,
};
use switchboard_engine::ports::{Clock, Hint, HintSink, Hints, Outbox, Store};
use switchboard_engine::runs::AgentSource;
use switchboard_engine::{Engine, Registered};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::agent::Puppet;
use super::dice::Dice;

pub(super) const AGENT: &str = "puppet";

/// One store, and at most one process at a time that works on it.
#[derive(Clone)]
pub(super) struct World(Arc<Inner>);

struct Inner {
    store: Arc<MemoryStore>,
    faulty: Arc<FaultyStore>,
    clock: Arc<SimClock>,
    ids: Arc<CountingIds>,
    dice: Mutex<Dice>,
    engine: Mutex<Option<Engine>>,
    /// Told when a process starts or dies. (A watch channel would wake its waiters in an order of its own choosing.)
    changed: Notify,
}

impl World {
    pub(super) fn new(mut dice: Dice) -> Self {
        let clock = Arc::new(SimClock { start: Instant::now(), jumped_ms: AtomicI64::new(0) });
        let store = Arc::new(MemoryStore::new(clock.clone(), 100_000));
        let faulty = Arc::new(FaultyStore {
            store: store.clone(),
            dice: Mutex::new(dice.fork()),
            calm: AtomicBool::new(false),
            faults: AtomicU64::new(0),
        });
        let ids = Arc::new(CountingIds::default());
        let world = Self(Arc::new(Inner {
            store,
            faulty,
            clock,
            ids,
            dice: Mutex::new(dice),
            engine: Mutex::new(None),
            changed: Notify::new(),
        }));
        world.start();
        world
    }

    /// Starts a process.
    pub(super) fn start(&self) {
        let limits =
            Limits { lease_ms: 3_000, sweep_ms: 500, run_s_max: 120, attempts_max: 1_000, ..Limits::default() };
        let card = AgentCard {
            capabilities: AgentCapabilities { streaming: Some(true), ..AgentCapabilities::default() },
            default_input_modes: vec!["text/plain".to_owned()],
            default_output_modes: vec!["text/plain".to_owned()],
            ..AgentCard::default()
        };
        let agent = Registered {
            name: AGENT.into(),
            source: AgentSource::shared(Puppet),
            card: Arc::new(card),
            extended_card: None,
            extended_card_for_anyone: false,
        };
        let hints = FaultyHints { sink: Mutex::default(), dice: Mutex::new(self.0.dice.lock().unwrap().fork()) };
        let engine = Engine::builder(self.0.faulty.clone())
            .clock(self.0.clock.clone())
            .ids(self.0.ids.clone())
            .hints(Arc::new(hints))
            .limits(limits)
            .agent(agent)
            .build();
        engine.start();
        *self.0.engine.lock().unwrap() = Some(engine);
        self.0.changed.notify_waiters();
    }

    /// Kills the process where it stands: nothing is released, nothing is said.
    pub(super) async fn crash(&self) {
        let engine = self.0.engine.lock().unwrap().take();
        self.0.changed.notify_waiters();
        if let Some(engine) = engine {
            engine.supervisor().stop().await;
        }
        self.0.store.void_leases();
    }

    pub(super) fn jump_clock(&self, ms: i64) {
        self.0.clock.jumped_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// No more faults: what is left must come to rest.
    pub(super) fn calm(&self) {
        self.0.faulty.calm.store(true, Ordering::SeqCst);
    }

    pub(super) fn faults(&self) -> u64 {
        self.0.faulty.faults.load(Ordering::SeqCst)
    }

    pub(super) fn store(&self) -> &MemoryStore {
        &self.0.store
    }

    /// The process that is alive now; waits while there is none.
    pub(super) async fn endpoint(&self) -> Arc<dyn Endpoint> {
        loop {
            let changed = self.0.changed.notified();
            let alive = self.0.engine.lock().unwrap().as_ref().and_then(|engine| engine.endpoint(AGENT));
            if let Some(endpoint) = alive {
                return endpoint;
            }
            changed.await;
        }
    }

    /// Done when the process that is alive now is not any more.
    pub(super) async fn death(&self) {
        self.0.changed.notified().await;
    }
}

struct SimClock {
    start: Instant,
    jumped_ms: AtomicI64,
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.start.elapsed().as_millis()).unwrap();
        Timestamp::from_ms(1_700_000_000_000 + elapsed + self.jumped_ms.load(Ordering::SeqCst))
    }
}

/// Loses hints, and repeats some.
struct FaultyHints {
    sink: Mutex<Option<Arc<dyn HintSink>>>,
    dice: Mutex<Dice>,
}

impl Hints for FaultyHints {
    fn notify(&self, hint: Hint<'_>) {
        let times = match self.dice.lock().unwrap().below(10) {
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        let sink = self.sink.lock().unwrap().clone();
        for _ in 0..times {
            if let Some(sink) = &sink {
                sink.hint(hint);
            }
        }
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        *self.sink.lock().unwrap() = Some(sink);
    }
}

struct FaultyStore {
    store: Arc<MemoryStore>,
    dice: Mutex<Dice>,
    calm: AtomicBool,
    faults: AtomicU64,
}

enum Fate {
    Fine,
    Conflict,
    Lost,
    /// It happens, and nobody is told.
    Unanswered,
}

impl FaultyStore {
    fn fate(&self) -> (Fate, Duration) {
        if self.calm.load(Ordering::SeqCst) {
            return (Fate::Fine, Duration::ZERO);
        }
        let mut dice = self.dice.lock().unwrap();
        let delay = Duration::from_millis(if dice.one_in(3) { dice.below(30) } else { 0 });
        let fate = match dice.below(40) {
            0 => Fate::Conflict,
            1 => Fate::Lost,
            2 => Fate::Unanswered,
            _ => return (Fate::Fine, delay),
        };
        self.faults.fetch_add(1, Ordering::SeqCst);
        (fate, delay)
    }

    /// Reads and other errands: late, or not answered.
    fn errand<'a, T: Send + 'a>(
        &'a self,
        errand: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        let (fate, delay) = self.fate();
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            match fate {
                Fate::Lost => Err(unavailable()),
                Fate::Fine | Fate::Conflict | Fate::Unanswered => errand.await,
            }
        })
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable("the simulation says so".to_owned())
}

impl Store for FaultyStore {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        let (fate, delay) = self.fate();
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            match fate {
                Fate::Fine => self.store.commit(commit).await,
                Fate::Conflict => Err(CommitError::Conflict),
                Fate::Lost => Err(unavailable().into()),
                Fate::Unanswered => {
                    let _ = self.store.commit(commit).await;
                    Err(unavailable().into())
                }
            }
        })
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        self.errand(self.store.head(scope, id))
    }

    fn task<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.errand(self.store.task(scope, id))
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        self.errand(self.store.log(key, after_seq, limit))
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        self.errand(self.store.list(scope, query))
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        self.errand(self.store.find_accepted(key))
    }

    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        self.errand(self.store.push_configs(key))
    }

    fn claim_runs(&self, limit: usize, lease_ms: u32) -> BoxFuture<'_, Result<Vec<StoredHead>, StoreError>> {
        self.errand(self.store.claim_runs(limit, lease_ms))
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.errand(self.store.renew_leases(held, lease_ms))
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.errand(self.store.canceled_runs())
    }

    fn release_leases(&self, held: Vec<(TaskKey, u64)>, due: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.errand(self.store.release_leases(held, due))
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        self.store.claim_deliveries(limit, claim_ms)
    }

    fn settle_deliveries(&self, settled: Vec<(DeliveryKey, DeliveryOutcome)>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.settle_deliveries(settled)
    }

    fn outbox(&self) -> &dyn Outbox {
        self.store.outbox()
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.store.next_delivery_at()
    }

    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.store.prune(retention, limit)
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}
