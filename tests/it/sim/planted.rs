//! A test of the tests: six bugs, each in an adapter or a setting of the simulation's own, and how many seeds it takes
//! until a promise is seen broken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use switchboard_core::call::BoxFuture;
use switchboard_core::lifecycle::Head;
use switchboard_core::model::{AgentName, ArtifactId, PushConfig, TaskId, Timestamp};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, Commit, CommitError, Delivery, DeliveryClaim, DeliveryOutcome, DueRun, ListPage, ListQuery,
    LogPage, Release, Retention, Scope, StoreError, StoreStats, StoredHead, StoredTask, Target, TaskKey,
};
use switchboard_engine::ports::{Deliveries, Hint, News, Outbox, Runs, TaskLog, Upkeep};

use super::agent::{EITHER, FRAIL, PUPPET, PURE};
use super::hints::Telling;
use super::life::Life;
use super::weather::{Blow, Trouble};
use super::world::Build;
use super::{Simulation, Story};

/// A bug that no seed up to here shows is not caught.
const SEEDS_MAX: u64 = 300;

#[test]
fn a_store_that_ignores_the_fence_is_caught() {
    let build = Build {
        store: |memory| {
            let store = Arc::new(Doctored { commit: ignore_fence, ..Doctored::healthy(memory) });
            Box::new(move |_| store.clone())
        },
        ..Build::default()
    };
    caught("a store that ignores the fence", "a run wrote under fence", &build);
}

#[test]
fn a_store_that_answers_before_it_applies_is_caught() {
    let build = Build {
        store: |memory| {
            let bottom = Arc::new(Bottom::new(memory));
            Box::new(move |life| {
                let life = Some(life.clone());
                let asked = <[_]>::to_vec;
                Arc::new(Doctored { bottom: bottom.clone(), commit: answer_first, asked, listed: |_| {}, life })
            })
        },
        ..Build::default()
    };
    caught("a store that answers before it applies", "the log is not what the store took", &build);
}

#[test]
fn a_run_that_goes_on_without_taking_anything_back_is_caught() {
    let build = Build {
        store: |memory| {
            let store = Arc::new(Doctored { listed: hide_the_excess, ..Doctored::healthy(memory) });
            Box::new(move |_| store.clone())
        },
        ..Build::default()
    };
    caught("a run that goes on without taking anything back", "was answered with", &build);
}

#[test]
fn a_supervisor_without_a_sweeper_is_caught() {
    // The loop is there and sleeps for 49 days between two looks.
    let build = Build { limits: |limits| limits.sweep_ms = u32::MAX, ..Build::default() };
    caught("a supervisor without a sweeper", "has no owner", &build);
}

#[test]
fn a_store_that_claims_for_agents_it_does_not_serve_is_caught() {
    let build = Build {
        store: |memory| {
            let asked = |_: &[AgentName]| [PUPPET, PURE, EITHER, FRAIL].map(AgentName::from).to_vec();
            let store = Arc::new(Doctored { asked, ..Doctored::healthy(memory) });
            Box::new(move |_| store.clone())
        },
        ..Build::default()
    };
    caught("a store that claims for agents it does not serve", "which does not serve", &build);
}

/// With as long a wait between two looks as a server has.
fn told_by(hints: Telling) -> Build {
    Build { hints, limits: |limits| limits.follow_poll_ms = Limits::default().follow_poll_ms, ..Build::default() }
}

#[test]
fn followers_on_another_node_see_updates_long_before_anybody_looks_by_itself() {
    let build = told_by(|hint| Some(hint));
    let mut streams = 0;
    for seed in 1..=SEEDS_MAX {
        let story = fair(seed, &build);
        assert_eq!(story.broken, None, "seed {seed}");
        streams += story.totals.updates_seen;
    }
    assert!(streams > 1_000, "{streams} updates were seen");
}

#[test]
fn hints_that_never_come_or_carry_nothing_are_caught() {
    let never: Telling = |_| None;
    let nothing: Telling = |hint| Some(Hint { news: News::Event(1), ..hint });
    for (bug, telling) in [("hints that never come", never), ("hints that carry nothing", nothing)] {
        let build = told_by(telling);
        let late = |seed| fair(seed, &build).broken.filter(|broken| broken.contains("ms after its commit"));
        let seen = (1..=SEEDS_MAX).find_map(|seed| late(seed).map(|broken| (seed, broken)));
        let (seed, broken) = seen.unwrap_or_else(|| panic!("{bug}: no seed of {SEEDS_MAX} noticed"));
        println!("{bug}: seed {seed} caught it: {}", broken.trim());
    }
}

/// A world in which nothing goes wrong.
fn fair(seed: u64, build: &Build) -> Story {
    Simulation { seed, build, trouble: Trouble::One(Blow::Death, 0), keep_steps: false }.run()
}

/// Counts seeds until one shows the bug for what it is; many break other promises before, which is its echo.
fn caught(bug: &str, promise: &str, build: &Build) {
    let mut noticed = 0;
    for seed in 1..=SEEDS_MAX {
        let story = Simulation { seed, build, trouble: Trouble::Seeded, keep_steps: false }.run();
        let Some(broken) = story.broken else { continue };
        noticed += 1;
        if broken.contains(promise) {
            println!("{bug}: seed {seed} caught it ({noticed} noticed something): {}", broken.trim());
            return;
        }
    }
    panic!("{bug}: of {SEEDS_MAX} seeds, {noticed} noticed something, and none that {promise:?}");
}

/// The shared ground of a store with a bug.
struct Bottom {
    memory: Arc<MemoryStore>,
    scopes: Mutex<BTreeMap<TaskKey, Scope>>,
    /// Commits that were answered and not yet applied, and whose process has to live until they are.
    answered: Mutex<Vec<(Arc<Life>, Commit)>>,
}

impl Bottom {
    fn new(memory: Arc<MemoryStore>) -> Self {
        Self { memory, scopes: Mutex::default(), answered: Mutex::default() }
    }

    fn apply(&self, commit: Commit) -> Result<TaskKey, CommitError> {
        let scope = match &commit.target {
            Target::New { scope } => Some(scope.clone()),
            Target::Existing { .. } => None,
        };
        let key = at_once(self.memory.commit(commit))?;
        if let Some(scope) = scope {
            self.scopes.lock().unwrap().insert(key, scope);
        }
        Ok(key)
    }

    fn head(&self, key: TaskKey, id: &TaskId) -> Option<Arc<Head>> {
        let scope = self.scopes.lock().unwrap().get(&key)?.clone();
        Some(at_once(self.memory.head(&scope, id)).ok()??.head)
    }

    /// Applies what was answered, unless its process has died. Then it never shows.
    fn flush(&self) {
        for (life, commit) in std::mem::take(&mut *self.answered.lock().unwrap()) {
            if !life.is_dead() {
                let _ = self.apply(commit);
            }
        }
    }
}

/// A memory store answers at once.
fn at_once<T>(answer: BoxFuture<'_, T>) -> T {
    answer.now_or_never().expect("a memory store answers at once")
}

/// What a run writes is appended without checking its fence.
fn ignore_fence(store: &Doctored, mut commit: Commit) -> Result<TaskKey, CommitError> {
    let fence = commit.fence.take();
    if let (Some(fence), Target::Existing { key, expected_version }) = (fence, &mut commit.target)
        && let Some(mut head) = store.bottom.head(*key, &commit.head.id)
        && head.fence != fence
    {
        *expected_version = head.version;
        Arc::make_mut(&mut head).apply_commit(&commit.events);
        commit.head = head;
        commit.folded = None;
    }
    store.bottom.apply(commit)
}

/// A commit that would succeed is answered first and applied later.
fn answer_first(store: &Doctored, commit: Commit) -> Result<TaskKey, CommitError> {
    if let (Target::Existing { key, expected_version }, Some(life)) = (&commit.target, &store.life)
        && let Some(head) = store.bottom.head(*key, &commit.head.id)
        && head.version == *expected_version
        && commit.fence.is_none_or(|fence| fence == head.fence)
        && commit.accept.is_none()
    {
        let key = *key;
        store.bottom.answered.lock().unwrap().push((life.clone(), commit));
        return Ok(key);
    }
    store.bottom.apply(commit)
}

/// A run is told that nothing was written after its last checkpoint.
fn hide_the_excess(run: &mut DueRun) {
    let head = Arc::make_mut(&mut run.stored.head);
    for recorded in Arc::make_mut(&mut head.artifacts).iter_mut().filter_map(|artifact| artifact.checkpoint.as_mut()) {
        recorded.unchanged = true;
    }
}

/// A memory store with another way to commit, or to show what is due.
struct Doctored {
    bottom: Arc<Bottom>,
    commit: fn(&Self, Commit) -> Result<TaskKey, CommitError>,
    /// The agents whose runs are listed for those that are asked for.
    asked: fn(&[AgentName]) -> Vec<AgentName>,
    listed: fn(&mut DueRun),
    life: Option<Arc<Life>>,
}

impl Doctored {
    fn healthy(memory: Arc<MemoryStore>) -> Self {
        let bottom = Arc::new(Bottom::new(memory));
        Self {
            bottom,
            commit: |store, commit| store.bottom.apply(commit),
            asked: <[_]>::to_vec,
            listed: |_| {},
            life: None,
        }
    }

    fn memory(&self) -> &MemoryStore {
        self.bottom.flush();
        &self.bottom.memory
    }
}

impl TaskLog for Doctored {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        self.bottom.flush();
        Box::pin(std::future::ready((self.commit)(self, commit)))
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        self.memory().head(scope, id)
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.memory().task(scope, id, bytes_max)
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        self.memory().task_as_accepted(scope, accepted, bytes_max)
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        self.memory().artifact(scope, id, artifact, part)
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        self.memory().read_artifact(cursor, bytes_max)
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        self.memory().log(key, after_seq, limit)
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        self.memory().list(scope, query)
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        self.memory().find_accepted(key)
    }
}

impl Runs for Doctored {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let agents = (self.asked)(agents);
        Box::pin(async move {
            let mut runs = self.memory().due_runs(&agents, limit).await?;
            runs.iter_mut().for_each(self.listed);
            Ok(runs)
        })
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.memory().due_runs_of_others(agents, after, limit)
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.memory().begin_runs(begun)
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.memory().renew_leases(held, lease_ms)
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.memory().canceled_runs()
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory().release_leases(released)
    }
}

impl Deliveries for Doctored {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        self.memory().push_configs(key)
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        self.memory().claim_deliveries(limit, claim_ms)
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory().settle_deliveries(settled)
    }

    fn outbox(&self) -> &dyn Outbox {
        self.memory().outbox()
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.memory().next_delivery_at()
    }
}

impl Upkeep for Doctored {
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.memory().prune(retention, limit)
    }

    fn stats(&self) -> StoreStats {
        self.bottom.memory.stats()
    }
}
