//! One replica of a cell: its clock, its way to the store, and the process that runs in it, if one does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::model::Json;
use switchboard_engine::Engine;
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{CountingIds, MemoryStore};
use switchboard_engine::runs::{Agent, AgentError, AgentSource, Turn};

use super::super::clocks::SimClock;
use super::super::dice::Dice;
use super::super::life::Life;
use super::super::store::NodeStore;
use super::super::world::registered;
use super::book::Book;
use super::link::{CellWay, Hand, Link};

/// The agent of every replica.
pub(super) const WORKER: &str = "worker";
/// One step of its work, in seconds.
const STEP_S: (u64, u64) = (10, 30);

pub(super) struct Replica {
    pub(super) clock: Arc<SimClock>,
    pub(super) link: Arc<Link>,
    pub(super) process: Mutex<Option<Process>>,
}

#[derive(Clone)]
pub(super) struct Process {
    pub(super) hand: Hand,
    pub(super) engine: Engine,
}

impl Replica {
    /// A replica whose clock is wrong, and becomes more so.
    pub(super) fn new(dice: &mut Dice) -> Self {
        let clock = SimClock::drifting(dice.below(1_000).cast_signed() - 500);
        clock.jump_ms(dice.below(600_000).cast_signed() - 300_000);
        Self { clock: Arc::new(clock), link: Arc::new(Link::new()), process: Mutex::default() }
    }

    pub(super) fn process(&self) -> Option<Process> {
        self.process.lock().unwrap().clone()
    }

    /// For how long it has been able to work.
    pub(super) fn well_for(&self) -> Duration {
        self.process().map_or(Duration::ZERO, |process| process.hand.well_for())
    }

    /// Starts a process.
    pub(super) fn launch(&self, life: Life, shared: &Shared, mut dice: Dice) -> Process {
        let hand = Hand { life: Arc::new(life), link: self.link.clone() };
        let worker = Worker { hand: hand.clone(), book: shared.book.clone(), dice: Mutex::new(dice.fork()) };
        let way = CellWay { hand: hand.clone(), book: shared.book.clone(), dice: Mutex::new(dice) };
        let store = NodeStore { below: Arc::new(shared.memory.second_handle()), way };
        let engine = Engine::builder(Arc::new(store))
            .clock(self.clock.clone())
            .ids(shared.ids.clone())
            .limits(shared.limits.clone())
            .agent(registered(WORKER, AgentSource::shared(worker)))
            .build();
        engine.start();
        let process = Process { hand, engine };
        *self.process.lock().unwrap() = Some(process.clone());
        process
    }
}

/// What the replicas of a cell share.
pub(super) struct Shared {
    pub(super) memory: MemoryStore,
    pub(super) book: Arc<Book>,
    pub(super) ids: Arc<CountingIds>,
    pub(super) limits: Limits,
}

/// Works in steps, and remembers each; the next attempt goes on from there. `steps 0` never ends and writes nothing.
struct Worker {
    hand: Hand,
    book: Arc<Book>,
    dice: Mutex<Dice>,
}

impl Agent for Worker {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let life = &self.hand.life;
        life.awake().await;
        self.book.begun(turn.fencing_token());
        let steps: u64 = turn.text().strip_prefix("steps ").unwrap().parse().unwrap();
        if steps == 0 {
            return std::future::pending().await;
        }
        let done = turn.last_checkpoint().map_or(0, |value| value.as_str().parse().unwrap());
        for step in done + 1..=steps {
            let seconds = self.dice.lock().unwrap().between(STEP_S.0, STEP_S.1);
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            life.awake().await;
            turn.checkpoint(&Json::from_trusted(step.to_string())).await?;
        }
        Ok(turn.answer("done").await?)
    }
}
