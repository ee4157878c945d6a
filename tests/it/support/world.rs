//! An engine with agents on a store that outlives it, so that a test can let the engine die and start another.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use switchboard_core::call::Caller;
use switchboard_core::model::{AgentCapabilities, AgentCard, Timestamp};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{CountingIds, MemoryStore};
use switchboard_engine::ports::{Callees, Clock, Dispatch, Hints, Store, Webhook};
use switchboard_engine::runs::AgentSource;
use switchboard_engine::{Engine, Registered};
use switchboard_stores::sqlite::{SqliteOptions, SqliteStore};
use tokio::time::Instant;

use super::callers::Client;
use super::limit::Limit;

/// When every test begins: 2026-01-01T00:00:00Z.
pub(crate) const BEGINNING: Timestamp = Timestamp::from_ms(1_767_225_600_000);

/// Wall time that goes with tokio's own, which a test can pause, or stands still; and that can jump, as wall time does.
pub(crate) struct WallClock {
    /// None stands still.
    started: Option<Instant>,
    jumped_ms: AtomicI64,
}

impl WallClock {
    fn new(started: Option<Instant>) -> Arc<Self> {
        Arc::new(Self { started, jumped_ms: AtomicI64::new(0) })
    }

    /// Moves the clock by so much, backwards if negative; no time passes.
    pub(crate) fn jump(&self, seconds: i64) {
        self.jumped_ms.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let passed = self.started.map_or(0, |started| started.elapsed().as_millis());
        BEGINNING.plus_ms(i64::try_from(passed).unwrap() + self.jumped_ms.load(Ordering::SeqCst))
    }
}

/// What stays when an engine dies: the stored tasks, the clock, and the counter that ids come from. A clone is the same
/// stock, for a second engine beside the first.
#[derive(Clone)]
pub(crate) struct Stock {
    place: Place,
    pub(crate) clock: Arc<WallClock>,
    ids: Arc<CountingIds>,
}

#[derive(Clone)]
enum Place {
    Memory(Arc<MemoryStore>),
    Sqlite { path: PathBuf, _folder: Arc<tempfile::TempDir> },
    Given(Arc<dyn Store>),
}

impl Stock {
    /// A memory store on tokio's time.
    pub(crate) fn memory() -> Self {
        Self::memory_of(10_000)
    }

    /// A memory store for so many tasks.
    pub(crate) fn memory_of(tasks_max: usize) -> Self {
        let clock = WallClock::new(Some(Instant::now()));
        let store = Arc::new(MemoryStore::new(clock.clone(), tasks_max));
        Self { place: Place::Memory(store), clock, ids: Arc::default() }
    }

    /// A fresh file, under a clock that stands still.
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.db");
        let clock = WallClock::new(None);
        Self { place: Place::Sqlite { path, _folder: Arc::new(folder) }, clock, ids: Arc::default() }
    }

    /// A store that the test made, on tokio's time.
    pub(crate) fn given(make: impl FnOnce(Arc<dyn Clock>) -> Arc<dyn Store>) -> Self {
        let clock = WallClock::new(Some(Instant::now()));
        Self { place: Place::Given(make(clock.clone())), clock, ids: Arc::default() }
    }

    fn open(&self) -> Arc<dyn Store> {
        match &self.place {
            Place::Memory(store) => store.clone(),
            Place::Sqlite { path, .. } => {
                Arc::new(SqliteStore::open(path, self.clock.clone(), SqliteOptions::default()).unwrap())
            }
            Place::Given(store) => store.clone(),
        }
    }
}

/// A world about to begin.
pub(crate) struct Setup {
    stock: Stock,
    limits: Limits,
    agents: Vec<Registered>,
    webhook: Option<Arc<dyn Webhook>>,
    hints: Option<Arc<dyn Hints>>,
    dispatch: Option<Arc<dyn Dispatch>>,
    callees: Option<Arc<dyn Callees>>,
}

impl Setup {
    pub(crate) fn on(stock: Stock) -> Self {
        let (webhook, hints, dispatch, callees) = (None, None, None, None);
        Self { stock, limits: Limits::default(), agents: Vec::new(), webhook, hints, dispatch, callees }
    }

    /// On a memory store.
    pub(crate) fn new() -> Self {
        Self::on(Stock::memory())
    }

    pub(crate) fn agent(mut self, agent: Registered) -> Self {
        self.agents.push(agent);
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn webhook(mut self, webhook: Arc<dyn Webhook>) -> Self {
        self.webhook = Some(webhook);
        self
    }

    pub(crate) fn hints(mut self, hints: Arc<dyn Hints>) -> Self {
        self.hints = Some(hints);
        self
    }

    pub(crate) fn self_fire(mut self, dispatch: Arc<dyn Dispatch>) -> Self {
        self.dispatch = Some(dispatch);
        self
    }

    pub(crate) fn callees(mut self, callees: Arc<dyn Callees>) -> Self {
        self.callees = Some(callees);
        self
    }

    pub(crate) fn start(self) -> World {
        let world = self.start_frozen();
        world.thaw();
        world
    }

    /// An engine whose loops stand still: it answers calls, but renews no lease and takes nothing up.
    pub(crate) fn start_frozen(self) -> World {
        let Self { stock, limits, agents, webhook, hints, dispatch, callees } = self;
        let mut engine = Engine::builder(stock.open()).clock(stock.clock.clone()).ids(stock.ids.clone()).limits(limits);
        if let Some(webhook) = webhook {
            engine = engine.webhook(webhook);
        }
        if let Some(hints) = hints {
            engine = engine.hints(hints);
        }
        if let Some(dispatch) = dispatch {
            engine = engine.self_fire(dispatch);
        }
        if let Some(callees) = callees {
            engine = engine.callees(callees);
        }
        let first = agents[0].name.to_string();
        for agent in agents {
            engine = engine.agent(agent);
        }
        World { engine: engine.build(), stock, first, _limit: Limit::new() }
    }
}

/// Agents at work.
pub(crate) struct World {
    pub(crate) engine: Engine,
    stock: Stock,
    first: String,
    _limit: Limit,
}

impl World {
    /// One agent on a memory store.
    pub(crate) fn of(agent: Registered) -> Self {
        Setup::new().agent(agent).start()
    }

    /// Lets the loops of a frozen engine run.
    pub(crate) fn thaw(&self) {
        self.engine.start();
    }

    /// The clock on the wall, and what stands below it.
    pub(crate) fn stock(&self) -> &Stock {
        &self.stock
    }

    /// The anonymous caller of the first agent.
    pub(crate) fn client(&self) -> Client {
        self.client_of(&self.first)
    }

    pub(crate) fn client_of(&self, agent: &str) -> Client {
        Client::new(self.engine.endpoint(agent).unwrap(), Caller::anonymous())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.stock.clock.now()
    }

    pub(crate) fn commits(&self) -> u64 {
        self.engine.store_stats().commits
    }

    /// What stays after an orderly end.
    pub(crate) fn leave(self) -> Stock {
        self.stock
    }

    /// The process dies here: runs stop where they are and nothing is given back.
    pub(crate) async fn crash(self) -> Stock {
        self.engine.supervisor().stop().await;
        drop(self.engine);
        if let Place::Memory(store) = &self.stock.place {
            store.void_leases();
        }
        self.stock
    }
}

/// An agent under a name, with a card that offers everything.
pub(crate) fn registered(name: &str, source: AgentSource) -> Registered {
    let card = AgentCard {
        name: name.to_owned(),
        description: "For tests".to_owned(),
        version: "1.0.0".to_owned(),
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extended_agent_card: Some(false),
            extensions: Vec::new(),
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

/// The same agent with another card.
pub(crate) fn with_card(agent: Registered, change: impl FnOnce(&mut AgentCard)) -> Registered {
    let mut card = AgentCard::clone(&agent.card.get());
    change(&mut card);
    Registered { card: Arc::new(card.into()), ..agent }
}
