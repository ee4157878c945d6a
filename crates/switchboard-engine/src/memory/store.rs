//! A store that loses its data when the process ends. Every call holds one lock for a short time and answers at once,
//! so its futures are ready when they are returned. The number of records is bounded: a new record evicts the oldest
//! closed one.
//!
//! In tests, a second handle on the same tables stands for another process that shares the data.

use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{AgentName, ArtifactId, PushConfig, TaskId, Timestamp};

use super::tables::Tables;
use crate::ports::audit::{AuditEntry, AuditPage, AuditRetention};
use crate::ports::calls::{CallRow, CallStep};
use crate::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use crate::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery};
use crate::ports::store::{
    Accepted, AcceptedTask, Commit, CommitError, Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, DueRun,
    ListPage, ListQuery, LogPage, Release, Retention, Scope, StoreError, StoreStats, StoredHead, StoredTask, TaskKey,
};
use crate::ports::{AuditLog, Calls, Clock, Deliveries, Outbox, Runs, TaskLog, Upkeep};

pub const TASKS_MAX_DEFAULT: usize = 10_000;
/// How many bytes of tasks a process keeps in memory, unless its limits say otherwise.
pub const STORAGE_BYTES_MAX_DEFAULT: u64 = 1 << 30;

pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Arc<Mutex<Tables>>,
}

impl MemoryStore {
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, tasks_max: usize) -> Self {
        Self { clock, tables: Arc::new(Mutex::new(Tables::new(tasks_max))) }
    }

    /// Another handle on the same tables that shares nothing else, like the handle of another process.
    #[must_use]
    pub fn second_handle(&self) -> Self {
        Self { clock: self.clock.clone(), tables: self.tables.clone() }
    }

    /// Simulates a restart with a durable store, for tests of recovery: the holders of all leases and deliveries are
    /// dead.
    pub fn void_leases(&self) {
        let (mut tables, now) = self.at_present();
        tables.void_leases();
        tables.void_delivery_claims(now);
        tables.calls.void_claims(now);
    }

    /// Locks the tables and reads the time. The time is read under the lock, so that it goes back only if the clock was
    /// set back.
    fn at_present(&self) -> (MutexGuard<'_, Tables>, Timestamp) {
        let mut tables = self.lock();
        let now = self.clock.now();
        tables.record_time(now);
        (tables, now)
    }

    // Only a bug in this module can panic while the lock is held. Going on with the tables is better than failing every
    // later call.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn answer<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, T> {
    Box::pin(ready(value))
}

impl TaskLog for MemoryStore {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        let (mut tables, now) = self.at_present();
        answer(tables.commit(commit, now))
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        answer(Ok(self.lock().head(scope, id)))
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        answer(Ok(self.lock().task(scope, id, bytes_max)))
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        answer(self.lock().task_as_accepted(scope, accepted, bytes_max))
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        answer(Ok(self.lock().artifact(scope, id, artifact, part)))
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        answer(self.lock().read_artifact(cursor, bytes_max))
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        answer(self.lock().log(key, after_seq, limit))
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        answer(Ok(self.lock().list(scope, query)))
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        let (tables, now) = self.at_present();
        answer(Ok(tables.find_accepted(&key, now)))
    }
}

impl Runs for MemoryStore {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let (tables, now) = self.at_present();
        answer(Ok(tables.due_runs(agents, limit, now)))
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let (tables, now) = self.at_present();
        answer(Ok(tables.due_runs_of_others(agents, after, limit, now)))
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        answer(Ok(self.lock().begin_runs(&begun)))
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        let (mut tables, now) = self.at_present();
        answer(Ok(tables.renew_leases(&held, lease_ms, now)))
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        answer(Ok(self.lock().canceled_runs()))
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        let (mut tables, now) = self.at_present();
        tables.release_leases(&released, now);
        answer(Ok(()))
    }
}

impl Deliveries for MemoryStore {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        answer(Ok(self.lock().push_configs(key)))
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        let (mut tables, now) = self.at_present();
        answer(Ok(tables.claim_deliveries(limit, claim_ms, now)))
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let (mut tables, now) = self.at_present();
        for (claim, outcome) in settled {
            tables.settle_delivery(claim, outcome, now);
        }
        answer(Ok(()))
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        answer(Ok(self.lock().next_delivery_at()))
    }

    fn outbox(&self) -> &dyn Outbox {
        self
    }
}

impl Upkeep for MemoryStore {
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        answer(Ok(self.lock().prune(retention, limit)))
    }

    fn hold_until(&self, until: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.lock().held_until = until;
        answer(Ok(()))
    }

    fn stats(&self) -> StoreStats {
        let tables = self.lock();
        let mut stats =
            StoreStats { tasks: Some(tables.tasks), stored_bytes: Some(tables.bytes), ..tables.stats.clone() };
        drop(tables);
        // Commits do not wait for each other here: each is its own transaction and takes microseconds.
        stats.batches = stats.commits;
        (stats.batch_sizes[0], stats.batch_requests) = (stats.commits, stats.commits);
        stats.commit_seconds[0] = stats.commits;
        stats
    }

    fn audit(&self) -> Option<&dyn AuditLog> {
        Some(self)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }
}

impl Calls for MemoryStore {
    fn open_call(&self, call: CallRow) -> BoxFuture<'_, Result<CallRow, StoreError>> {
        answer(Ok(self.lock().open_call(call)))
    }

    fn change_call(&self, id: &str, step: CallStep) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let (mut tables, now) = self.at_present();
        answer(Ok(tables.change_call(id, &step, now)))
    }

    fn call(&self, id: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        answer(Ok(self.lock().calls.get(id).cloned()))
    }

    fn calls_of(&self, parent: TaskKey) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        answer(Ok(self.lock().calls.of(parent)))
    }

    fn claim_calls(
        &self,
        only: Option<String>,
        limit: usize,
        claim_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        let (mut tables, now) = self.at_present();
        answer(Ok(tables.calls.claim(only.as_deref(), limit, claim_ms, now)))
    }

    fn next_call_in(&self) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        let (tables, now) = self.at_present();
        answer(Ok(tables.calls.next_at().map(|at| at.ms_since(now))))
    }
}

impl AuditLog for MemoryStore {
    fn record(&self, entry: AuditEntry) {
        self.lock().audit.append(&entry);
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        answer(Ok(()))
    }

    fn page(&self, after_no: u64, limit: usize) -> BoxFuture<'_, Result<AuditPage, StoreError>> {
        answer(Ok(self.lock().audit.page(after_no, limit)))
    }

    fn forget(&self, retention: AuditRetention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        answer(Ok(self.lock().audit.forget(retention, limit)))
    }
}

impl Outbox for MemoryStore {
    fn page(&self, query: OutboxQuery) -> BoxFuture<'_, Result<OutboxPage, StoreError>> {
        answer(Ok(self.lock().list_outbox(query)))
    }

    fn depth(&self, at_most: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        answer(Ok((self.lock().deliveries_due() as u64).min(at_most.into())))
    }

    fn find(&self, key: DeliveryKey) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>> {
        answer(Ok(self.lock().find_outbox(key)))
    }

    fn redrive(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        let (mut tables, now) = self.at_present();
        answer(Ok(keys.into_iter().filter(|key| tables.redrive(*key, now)).count()))
    }

    fn purge(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        let mut tables = self.lock();
        answer(Ok(keys.into_iter().filter(|key| tables.purge(*key)).count()))
    }
}
