//! A memory store whose commits a test can hold back or break, to look at what happens around them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{AgentName, ArtifactId, PushConfig, TaskId, Timestamp};
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, Commit, CommitError, Delivery, DeliveryClaim, DeliveryOutcome, DueRun, LeaseChange,
    ListPage, ListQuery, LogPage, Release, Retention, Scope, StoreError, StoreStats, StoredHead, StoredTask, TaskKey,
};
use switchboard_engine::ports::{Clock, Deliveries, Outbox, Runs, TaskLog, Upkeep};
use tokio::sync::watch;

pub(crate) struct GatedStore {
    inner: MemoryStore,
    /// Whether commits wait to be answered.
    held: watch::Sender<bool>,
    fails: AtomicBool,
    fails_to_read: AtomicBool,
    damaged: AtomicBool,
    log_reads: AtomicU64,
    probes: AtomicU64,
    delivery_looks: AtomicU64,
}

impl GatedStore {
    /// Every commit goes through.
    pub(crate) fn open(clock: Arc<dyn Clock>) -> Arc<Self> {
        let store = Self::held(clock);
        store.release();
        store
    }

    /// A commit is written at once, but answered only when the test lets it.
    pub(crate) fn held(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(clock, 10_000),
            held: watch::Sender::new(true),
            fails: AtomicBool::new(false),
            fails_to_read: AtomicBool::new(false),
            damaged: AtomicBool::new(false),
            log_reads: AtomicU64::new(0),
            probes: AtomicU64::new(0),
            delivery_looks: AtomicU64::new(0),
        })
    }

    /// Answers no commit from now on but those that claim a run.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    /// Answers all commits from now on, those that wait included.
    pub(crate) fn release(&self) {
        self.held.send_replace(false);
    }

    /// Whether commits fail from now on.
    pub(crate) fn fail(&self, on: bool) {
        self.fails.store(on, Ordering::SeqCst);
    }

    /// Whether logs cannot be read from now on.
    pub(crate) fn fail_reads(&self, on: bool) {
        self.fails_to_read.store(on, Ordering::SeqCst);
    }

    /// From now on what is read of a task is damaged.
    pub(crate) fn damage(&self) {
        self.damaged.store(true, Ordering::SeqCst);
    }

    /// How often a log was read.
    pub(crate) fn log_reads(&self) -> u64 {
        self.log_reads.load(Ordering::SeqCst)
    }

    /// How often due deliveries were looked for.
    pub(crate) fn delivery_looks(&self) -> u64 {
        self.delivery_looks.load(Ordering::SeqCst)
    }

    /// How often it was asked whether it works.
    pub(crate) fn probes(&self) -> u64 {
        self.probes.load(Ordering::SeqCst)
    }
}

impl TaskLog for GatedStore {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        if self.fails.load(Ordering::SeqCst) {
            let error = StoreError::Unavailable("the disk is full".to_owned());
            return Box::pin(std::future::ready(Err(CommitError::Store(error))));
        }
        // A run is taken over whatever else has to wait.
        let is_claim = matches!(commit.lease, LeaseChange::Claim { .. });
        let written = self.inner.commit(commit);
        if is_claim {
            return written;
        }
        Box::pin(async move {
            let _ = self.held.subscribe().wait_for(|held| !held).await;
            written.await
        })
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        self.inner.head(scope, id)
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        if self.damaged.load(Ordering::SeqCst) {
            let error = StoreError::Damaged("the checksum does not match".to_owned());
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.task(scope, id, bytes_max)
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        self.inner.task_as_accepted(scope, accepted, bytes_max)
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        self.inner.artifact(scope, id, artifact, part)
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        self.inner.read_artifact(cursor, bytes_max)
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        self.log_reads.fetch_add(1, Ordering::SeqCst);
        if self.fails_to_read.load(Ordering::SeqCst) {
            let error = StoreError::Unavailable("the disk is gone".to_owned());
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.log(key, after_seq, limit)
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        self.inner.list(scope, query)
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        self.inner.find_accepted(key)
    }
}

impl Runs for GatedStore {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.inner.due_runs(agents, limit)
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.inner.due_runs_of_others(agents, after, limit)
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.inner.begin_runs(begun)
    }

    fn renew_leases(&self, held: Vec<(TaskKey, u64)>, ms: u32) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.inner.renew_leases(held, ms)
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.inner.canceled_runs()
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.release_leases(released)
    }
}

impl Deliveries for GatedStore {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        self.inner.push_configs(key)
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        self.delivery_looks.fetch_add(1, Ordering::SeqCst);
        self.inner.claim_deliveries(limit, claim_ms)
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.settle_deliveries(settled)
    }

    fn outbox(&self) -> &dyn Outbox {
        self.inner.outbox()
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.inner.next_delivery_at()
    }
}

impl Upkeep for GatedStore {
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.probes.fetch_add(1, Ordering::SeqCst);
        let fails = self.fails.load(Ordering::SeqCst);
        let answer = if fails { Err(StoreError::Unavailable("the disk is full".to_owned())) } else { Ok(()) };
        Box::pin(std::future::ready(answer))
    }

    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.inner.prune(retention, limit)
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }
}
