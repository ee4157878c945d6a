//! Implements the store's ports: reads go to the cache or the reader threads, everything else to the writer.

use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use rusqlite::Connection;
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
use switchboard_engine::ports::{AuditLog, Calls, Clock, Deliveries, Outbox, Quarantine, Runs, TaskLog, Upkeep};

use super::accepted_task::task_as_accepted;
use super::audit::{self, AuditQueue};
use super::call_rows;
use super::census::{AT_ONCE_MAX, Census};
use super::download;
use super::epoch::NO_EPOCH;
use super::error::{Failure, FileError};
use super::idempotency::{find_accepted, known_as_of, last_accepted_day};
use super::ledger::outbox;
use super::ledger::prune::candidates;
use super::ledger::runs::{self, DueQuery};
use super::list;
use super::lock::FileLock;
use super::offline::reseal::seal_plain;
use super::open::{Opened, SqliteOptions, open};
use super::presence::Presence;
use super::quarantine::{Quarantined, TaskRef};
use super::read;
use super::readers::Readers;
use super::recent::{UnfiledTasks, is_chunk};
use super::secrets::Secrets;
use super::totals::Totals;
use super::usage::StoredSums;
use super::wall_clock;
use super::writer::{CommitRequest, SharedCaches, StartError, Writer, answer};
use crate::cache::Cache;
use crate::record::{encode, encode_artifacts};
use crate::write_stats::WriteStats;

/// Tasks in one SQLite file.
pub struct SqliteStore {
    clock: Arc<dyn Clock>,
    stats: Arc<WriteStats>,
    cache: Arc<Cache>,
    totals: Arc<Totals>,
    quarantine: Arc<Quarantined>,
    unfiled: Arc<UnfiledTasks>,
    audit: Arc<AuditQueue>,
    secrets: Arc<Secrets>,
    sums: Arc<StoredSums>,
    /// What was recorded about the wall clock when the file was opened.
    clock_record: ClockRecord,
    /// Ages are ignored until this time.
    held_until_ms: AtomicI64,
    last_chunk_no: AtomicI64,
    /// Where the next search for tasks to prune begins.
    prune_after: AtomicI64,
    // Dropped in this order: the last connection to close runs a checkpoint, which a reader cannot do, and the lock is
    // released after that.
    readers: Readers,
    writer: Writer,
    _census: Census,
    _lock: FileLock,
}

impl SqliteStore {
    /// Opens a file, creating it and its folder if necessary, and locks it for this process.
    ///
    /// # Errors
    /// When another process has the file open, a newer build wrote it, or it cannot be read or written.
    pub fn open(path: &Path, clock: Arc<dyn Clock>, options: SqliteOptions) -> Result<Self, FileError> {
        let Opened { lock, path, writer, readers, epoch, clock: clock_record } = open(path, &options, clock.now())?;
        let path = &*path;
        let presence = Presence::of(path);
        let sql = |source| FileError::Sqlite { path: path.to_owned(), source };
        let io = |source| FileError::Io { path: path.to_owned(), source };
        let last_chunk_no =
            writer.query_row("SELECT coalesce(max(chunk_no), 0) FROM chunk", [], |row| row.get(0)).map_err(sql)?;
        let stats = Arc::new(WriteStats::default());
        let cache = Arc::new(Cache::new(options.cache_records_max, options.cache_bytes_max));
        let totals = Arc::new(Totals::default());
        let sums = Arc::new(StoredSums::default());
        let census = Census::begin(path, &writer, &totals, &sums, AT_ONCE_MAX);
        let readers = Readers::start(readers).map_err(io)?;
        let quarantine = Arc::new(Quarantined::default());
        let unfiled = Arc::new(UnfiledTasks::default());
        let audit = Arc::new(AuditQueue::default());
        // Then tasks that a dead process has left are put into the indexes when the disk has space.
        unfiled.has_unindexed.store(epoch == NO_EPOCH, Relaxed);
        let secrets = Arc::new(Secrets::of(path, &options.secrets)?);
        match seal_plain(&writer, &secrets) {
            Ok(()) => (),
            // As above: reads must work on a full disk, too.
            Err(_) if epoch == NO_EPOCH => (),
            Err(failure) => return Err(FileError::Store { path: path.to_owned(), failure: failure.0 }),
        }
        let caches = SharedCaches {
            stats: stats.clone(),
            cache: cache.clone(),
            totals: totals.clone(),
            quarantine: quarantine.clone(),
            unfiled: unfiled.clone(),
            audit: audit.clone(),
            secrets: secrets.clone(),
            sums: sums.clone(),
        };
        let started = Writer::start(writer, caches, clock.clone(), epoch, presence, &options);
        let writer = started.map_err(|error| match error {
            StartError::Thread(source) => io(source),
            StartError::Sqlite(source) => sql(source),
        })?;
        Ok(Self {
            clock,
            stats,
            cache,
            totals,
            quarantine,
            unfiled,
            audit,
            secrets,
            sums,
            clock_record,
            held_until_ms: AtomicI64::new(clock_record.held_until.map_or(0, Timestamp::as_ms)),
            last_chunk_no: AtomicI64::new(last_chunk_no),
            prune_after: AtomicI64::new(0),
            readers,
            writer,
            _census: census,
            _lock: lock,
        })
    }

    #[cfg(test)]
    pub(super) fn readers_for_tests(&self) -> &Readers {
        &self.readers
    }

    #[cfg(test)]
    pub(super) fn writer_for_tests(&self) -> &Writer {
        &self.writer
    }

    async fn read_task(
        &self,
        scope: Scope,
        id: TaskId,
        bytes_max: u64,
        history_max: Option<u32>,
    ) -> Result<Option<StoredTask>, StoreError> {
        let generation = self.cache.generation();
        let (of, named) = (scope.clone(), id.clone());
        let read = move |connection: &Connection| read::task(connection, &of, &named, bytes_max, history_max);
        let stored = self.read_by_id(scope.clone(), id, read).await?;
        if let Some(stored) = &stored
            && too_large(&stored.head, bytes_max).is_empty()
            && !stored.folded.is_shortened
        {
            self.cache.fill(generation, &scope, stored);
        }
        Ok(stored)
    }

    /// The cached record if it fits, or else that of the file.
    fn find_task<'a>(
        &'a self,
        cached: Option<StoredTask>,
        scope: &Scope,
        id: &TaskId,
        bytes_max: u64,
        history_max: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        let fits = |found: &StoredTask| too_large(&found.head, bytes_max).is_empty();
        match cached.filter(fits) {
            Some(found) => Box::pin(ready(Ok(Some(found)))),
            None => Box::pin(self.read_task(scope.clone(), id.clone(), bytes_max, history_max)),
        }
    }

    async fn read_due_runs_of_others(
        &self,
        agents: Vec<AgentName>,
        after: Option<TaskKey>,
        limit: usize,
    ) -> Result<Vec<DueRun>, StoreError> {
        let query = self.writer.run(|ledger| {
            ledger.file_all()?;
            let expired = ledger.leases.expired(ledger.now);
            Ok(DueQuery { epoch: ledger.epoch, now: ledger.now, expired })
        });
        let (query, quarantine) = (query.await?, self.quarantine.clone());
        let read = move |connection: &Connection| {
            runs::due_runs_of_others(connection, &quarantine, &query, &agents, after, limit)
        };
        self.readers.run(read).await
    }

    /// Runs a read of a task that a caller names. What is left to be filed is filed for its owner alone: for everybody else, a
    /// task at work is looked up in the same way as one that does not exist.
    async fn read_by_id<T: Send + 'static>(
        &self,
        scope: Scope,
        id: TaskId,
        read: impl FnOnce(&Connection) -> Result<Option<T>, Failure> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let named = TaskRef::Id(id.clone());
        if self.unfiled.find(&named).is_some() {
            let look =
                move |connection: &Connection| Ok(read::find(connection, &scope, &id).is_ok_and(|row| row.is_none()));
            if self.readers.run(look).await? {
                return Ok(None);
            }
        }
        self.read_of(named, read).await
    }

    /// Runs a read of one task. If stored data is damaged, only this task is put into quarantine.
    async fn read_of<T: Send + 'static>(
        &self,
        of: TaskRef,
        read: impl FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        if let Some(task_no) = self.unfiled.find(&of) {
            self.writer.run(move |ledger| ledger.file_or_quarantine(task_no)).await?;
        }
        let quarantine = self.quarantine.clone();
        let read = move |connection: &Connection| {
            read(connection).map_err(|failure| quarantine.quarantine_if_damaged(connection, &of, failure))
        };
        self.readers.run(read).await
    }

    async fn prune_some(&self, retention: Retention, limit: usize) -> Result<usize, StoreError> {
        let (totals, quarantine) = (self.totals.clone(), self.quarantine.clone());
        let after = self.prune_after.load(Relaxed);
        let look =
            move |connection: &Connection| candidates(connection, &totals, &quarantine, &retention, after, limit);
        let found = self.readers.run(look).await?;
        self.prune_after.store(found.next, Relaxed);
        self.writer.run(move |ledger| ledger.prune(&retention, &found, limit)).await
    }
}

impl TaskLog for SqliteStore {
    /// If the caller drops the future after the request was sent, the commit is still written.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        let take_numbers = |count: usize| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.last_chunk_no.fetch_add(count, Relaxed) + 1
        };
        let encoded = encode(&commit.events, &commit.head, &take_numbers);
        let artifacts = (!is_chunk(&commit, &encoded)).then(|| encode_artifacts(&commit.head.artifacts));
        let (reply, answer) = answer();
        // Large values are in the request and not in the future that waits for the answer.
        let request = Box::new(CommitRequest::new(commit, encoded, artifacts, reply));
        Box::pin(async move {
            self.writer.commit(request).await?;
            answer.await?.into_outcome()
        })
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        match self.cache.head(scope, id) {
            Some(found) => Box::pin(ready(Ok(Some(found)))),
            None => {
                let (of, named) = (scope.clone(), id.clone());
                let read = move |connection: &Connection| read::head(connection, &of, &named);
                Box::pin(self.read_by_id(scope.clone(), id.clone(), read))
            }
        }
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.find_task(self.cache.task(scope, id), scope, id, bytes_max, None)
    }

    fn task_since<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        version: u64,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.find_task(self.cache.task_since(scope, id, version), scope, id, bytes_max, None)
    }

    fn task_view<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
        history_max: u32,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.find_task(self.cache.task(scope, id), scope, id, bytes_max, Some(history_max))
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        let (of, named) = (scope.clone(), accepted.clone());
        let read = move |connection: &Connection| task_as_accepted(connection, &of, &named, bytes_max);
        Box::pin(self.read_by_id(scope.clone(), accepted.task_id.clone(), read))
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        let (of, named, artifact) = (scope.clone(), id.clone(), artifact.clone());
        let read = move |connection: &Connection| download::open(connection, &of, &named, &artifact, part);
        Box::pin(self.read_by_id(scope.clone(), id.clone(), read))
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        let named = TaskRef::No(cursor.key.0);
        Box::pin(self.read_of(named, move |connection| download::read(connection, cursor, bytes_max)))
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        Box::pin(self.read_of(TaskRef::No(key.0), move |connection| read::log(connection, key, after_seq, limit)))
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        let (totals, quarantine, unfiled) = (self.totals.clone(), self.quarantine.clone(), self.unfiled.clone());
        let (scope, query) = (scope.clone(), query.clone());
        let shows_chunks = query.artifacts;
        let read = move |connection: &Connection| {
            let shared = list::Shared { totals: &totals, quarantine: &quarantine, unfiled: &unfiled };
            list::list(connection, &shared, &scope, &query)
        };
        Box::pin(async move {
            if shows_chunks && !self.unfiled.is_empty() {
                self.writer.run(|ledger| ledger.file_all()).await?;
            }
            self.readers.run(read).await
        })
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        let now = self.clock.now();
        let held_until = Some(Timestamp::from_ms(self.held_until_ms.load(Relaxed)));
        Box::pin(self.readers.run(move |connection| {
            let as_of = known_as_of(connection, now, held_until)?;
            find_accepted(connection, &key, as_of, last_accepted_day(connection)?)
        }))
    }
}

impl Runs for SqliteStore {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        let agents = agents.to_vec();
        Box::pin(self.writer.run(move |ledger| ledger.due_runs(&agents, limit)))
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        Box::pin(self.read_due_runs_of_others(agents.to_vec(), after, limit))
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.begin_runs(&begun)))
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(self.writer.run(move |ledger| Ok(ledger.renew_leases(&held, lease_ms))))
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        Box::pin(self.readers.run(read::canceled_runs))
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.release_leases(&released)))
    }
}

impl Deliveries for SqliteStore {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        let secrets = self.secrets.clone();
        Box::pin(self.read_of(TaskRef::No(key.0), move |connection| read::push_configs(connection, &secrets, key)))
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.claim_deliveries(limit, claim_ms)))
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.settle_deliveries(&settled)))
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        let quarantine = self.quarantine.clone();
        Box::pin(self.readers.run(move |connection| read::next_delivery_at(connection, &quarantine)))
    }

    fn outbox(&self) -> &dyn Outbox {
        self
    }
}

impl Upkeep for SqliteStore {
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.prune_some(retention, limit))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.writer.run(|ledger| {
            ledger.connection.prepare_cached("UPDATE meta SET value = value WHERE name = 'epoch'")?.execute([])?;
            Ok(())
        }))
    }

    fn stats(&self) -> StoreStats {
        StoreStats { tasks: self.totals.all(), stored_bytes: self.sums.all(), ..self.stats.read() }
    }

    fn audit(&self) -> Option<&dyn AuditLog> {
        Some(self)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }

    fn quarantine(&self) -> Quarantine {
        self.quarantine.report()
    }

    fn clock_record(&self) -> ClockRecord {
        self.clock_record
    }

    fn hold_until(&self, until: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        self.held_until_ms.store(until.as_ms(), Relaxed);
        Box::pin(self.writer.run(move |ledger| {
            wall_clock::write_held_until(ledger.connection, until)?;
            ledger.held_until = Some(until);
            Ok(())
        }))
    }
}

impl Calls for SqliteStore {
    fn open_call(&self, call: CallRow) -> BoxFuture<'_, Result<CallRow, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.open_call(&call)))
    }

    fn change_call(&self, id: &str, step: CallStep) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let id = id.to_owned();
        Box::pin(self.writer.run(move |ledger| ledger.change_call(&id, &step)))
    }

    fn call(&self, id: &str) -> BoxFuture<'_, Result<Option<CallRow>, StoreError>> {
        let id = id.to_owned();
        Box::pin(self.readers.run(move |connection| call_rows::call(connection, &id)))
    }

    fn calls_of(&self, parent: TaskKey) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        Box::pin(self.readers.run(move |connection| call_rows::calls_of(connection, parent)))
    }

    fn claim_calls(
        &self,
        only: Option<String>,
        limit: usize,
        claim_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<CallRow>, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.claim_calls(only.as_deref(), limit, claim_ms)))
    }

    fn next_call_in(&self) -> BoxFuture<'_, Result<Option<i64>, StoreError>> {
        Box::pin(async move {
            let next = self.readers.run(call_rows::next_call_at).await?;
            Ok(next.map(|at| at.ms_since(self.clock.now())))
        })
    }
}

impl AuditLog for SqliteStore {
    fn record(&self, entry: AuditEntry) {
        if self.audit.push(entry) {
            self.writer.note_audit();
        }
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            // Each transaction takes a bounded number of entries.
            while self.writer.run(|ledger| Ok(ledger.audit.batches())).await? > 1 {}
            Ok(())
        })
    }

    fn page(&self, after_no: u64, limit: usize) -> BoxFuture<'_, Result<AuditPage, StoreError>> {
        Box::pin(self.readers.run(move |connection| audit::page(connection, after_no, limit)))
    }

    fn forget(&self, retention: AuditRetention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.audit.forget(ledger.connection, &retention, limit)))
    }
}

impl Outbox for SqliteStore {
    fn page(&self, query: OutboxQuery) -> BoxFuture<'_, Result<OutboxPage, StoreError>> {
        let quarantine = self.quarantine.clone();
        Box::pin(self.readers.run(move |connection| outbox::list(connection, &quarantine, query)))
    }

    fn depth(&self, at_most: u32) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.readers.run(move |connection| outbox::depth(connection, at_most)))
    }

    fn find(&self, key: DeliveryKey) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>> {
        let quarantine = self.quarantine.clone();
        Box::pin(self.readers.run(move |connection| outbox::find(connection, &quarantine, key)))
    }

    fn redrive(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.redrive(&keys)))
    }

    fn purge(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.writer.run(move |ledger| ledger.purge(&keys)))
    }
}
