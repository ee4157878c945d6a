//! The store and its ports. Each method of a port is one call of the module that does it.

use std::future::ready;
use std::sync::Arc;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{AgentName, ArtifactId, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::audit::{AuditEntry, AuditPage, AuditRetention};
use switchboard_engine::ports::calls::{CallRow, CallStep};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery};
use switchboard_engine::ports::outline::too_large;
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, Commit, CommitError, Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, DueRun,
    ListPage, ListQuery, LogPage, Release, Retention, Scope, StoreError, StoreStats, StoredHead, StoredTask, TaskKey,
};
use switchboard_engine::ports::system::ClockRecord;
use switchboard_engine::ports::{AuditLog, Calls, Deliveries, Outbox, Quarantine, Runs, Share, TaskLog, Upkeep};

use super::error::PostgresError;
use super::hints::PostgresHints;
use super::options::PostgresOptions;
use super::shared::Shared;
use super::thread::StoreThread;
use super::{calls, deliveries, download, list, prune, read, runs, writer};

/// A store on PostgreSQL.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    hints: Arc<PostgresHints>,
    /// Drives the connections; joined when the store is dropped.
    _thread: StoreThread,
}

impl PostgresStore {
    /// Opens a database, and brings its schema to the version of this build. This waits for the server, so it is called before
    /// anything is served, or on a thread that may wait.
    ///
    /// # Errors
    /// When the database cannot be reached or used, or another process runs under the name of this replica.
    pub fn open(options: PostgresOptions) -> Result<Self, PostgresError> {
        let (thread, shared, hints) = StoreThread::start(options)?;
        Ok(Self { shared, hints, _thread: thread })
    }

    /// Hints between the processes that share the database.
    #[must_use]
    pub fn hints(&self) -> Arc<PostgresHints> {
        self.hints.clone()
    }
}

impl TaskLog for PostgresStore {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        Box::pin(writer::commit(&self.shared, commit))
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        Box::pin(async move { self.checked(id, read::head(&self.shared, scope, id).await) })
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        Box::pin(async move { self.checked(id, read::task(&self.shared, scope, id, bytes_max, None).await) })
    }

    fn task_since<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        version: u64,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        let fits = |known: &StoredTask| too_large(&known.head, bytes_max).is_empty();
        match self.shared.cache.task_since(scope, id, version).filter(fits) {
            Some(known) => Box::pin(ready(Ok(Some(known)))),
            None => self.task(scope, id, bytes_max),
        }
    }

    fn task_view<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
        history_max: u32,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        Box::pin(
            async move { self.checked(id, read::task(&self.shared, scope, id, bytes_max, Some(history_max)).await) },
        )
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        let read = read::task_as_accepted(&self.shared, scope, accepted, bytes_max);
        Box::pin(async move { self.checked(&accepted.task_id, read.await) })
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        Box::pin(async move {
            let read = read::log(&self.shared, key, after_seq, limit).await;
            read.map_err(|error| match error {
                StoreError::Corrupt(reason) => StoreError::Damaged(reason),
                other => other,
            })
        })
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        Box::pin(async move { self.checked(id, download::open(&self.shared, scope, id, artifact, part).await) })
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        Box::pin(download::read(&self.shared, cursor, bytes_max))
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        Box::pin(list::list(&self.shared, scope, query))
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        Box::pin(read::find_accepted(&self.shared, key))
    }
}

impl PostgresStore {
    /// Puts a record that cannot be read into quarantine.
    fn checked<T>(&self, id: &TaskId, read: Result<T, StoreError>) -> Result<T, StoreError> {
        read.map_err(|error| self.shared.quarantine.task(id.clone(), error))
    }
}

impl Runs for PostgresStore {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(runs::due(&self.shared, agents, limit))
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(runs::due_of_others(&self.shared, agents, after, limit))
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(runs::begin(&self.shared, begun))
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(runs::renew(&self.shared, held, lease_ms))
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(runs::canceled(&self.shared))
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(runs::release(&self.shared, released))
    }
}

impl Deliveries for PostgresStore {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        Box::pin(deliveries::push_configs(&self.shared, key))
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        Box::pin(deliveries::claim(&self.shared, limit, claim_ms))
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(deliveries::settle(&self.shared, settled))
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        Box::pin(deliveries::next_at(&self.shared))
    }

    fn outbox(&self) -> &dyn Outbox {
        self
    }
}

impl Outbox for PostgresStore {
    fn page(&self, query: OutboxQuery) -> BoxFuture<'_, Result<OutboxPage, StoreError>> {
        Box::pin(deliveries::outbox_page(&self.shared, query))
    }

    fn depth(&self, at_most: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(deliveries::depth(&self.shared, at_most))
    }

    fn find(&self, key: DeliveryKey) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>> {
        Box::pin(deliveries::outbox_find(&self.shared, key))
    }

    fn redrive(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(deliveries::redrive(&self.shared, keys))
    }

    fn purge(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(deliveries::purge(&self.shared, keys))
    }
}

impl Upkeep for PostgresStore {
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(prune::prune(&self.shared, retention, limit))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        const PROBE: &str = "update meta set value = value where name = 'seen_at' returning 1";
        Box::pin(async move { self.shared.database.serve(PROBE, &[]).await.map(drop) })
    }

    fn stats(&self) -> StoreStats {
        let statements = self.shared.database.connector.sent.read();
        StoreStats { stored_bytes: self.shared.usage.all(), statements, ..self.shared.totals.stats() }
    }

    fn share(&self) -> Share {
        self.shared.share.clone()
    }

    fn audit(&self) -> Option<&dyn AuditLog> {
        Some(self)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }

    fn quarantine(&self) -> Quarantine {
        self.shared.quarantine.list()
    }

    fn clock_record(&self) -> ClockRecord {
        self.shared.clock_record
    }

    fn hold_until(&self, until: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        const HOLD: &str = "update meta set value = $1::bigint where name = 'held_until' returning 1";
        Box::pin(async move { self.shared.database.serve(HOLD, &[&until.as_ms()]).await.map(drop) })
    }
}

impl Calls for PostgresStore {
    fn open_call(&self, call: CallRow) -> BoxFuture<'_, Result<CallRow, StoreError>> {
        Box::pin(calls::open(&self.shared, call))
    }

    fn change_call(&self, id: &str, step: CallStep) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let id = id.to_owned();
        Box::pin(async move { calls::change(&self.shared, &id, step).await })
    }

    fn call(&self, id: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let id = id.to_owned();
        Box::pin(async move { calls::call(&self.shared, &id).await })
    }

    fn calls_of(&self, parent: TaskKey) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        Box::pin(calls::of_task(&self.shared, parent))
    }

    fn claim_calls(
        &self,
        only: Option<String>,
        limit: usize,
        claim_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        Box::pin(calls::claim(&self.shared, only, limit, claim_ms))
    }

    fn next_call_in(&self) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(calls::next_in(&self.shared))
    }
}

impl AuditLog for PostgresStore {
    fn record(&self, entry: AuditEntry) {
        self.shared.audit.record(entry);
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.shared.audit.flush(&self.shared.database))
    }

    fn page(&self, after_no: u64, limit: usize) -> BoxFuture<'_, Result<AuditPage, StoreError>> {
        Box::pin(self.shared.audit.page(&self.shared.database, after_no, limit))
    }

    fn forget(&self, retention: AuditRetention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.shared.audit.forget(&self.shared.database, retention, limit))
    }
}
