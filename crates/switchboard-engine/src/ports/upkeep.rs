//! The maintenance of a store: pruning, a probe of its health, statistics, and the rows that cannot be read.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ConfigId, TaskId, TaskState, Timestamp};

use super::audit::AuditLog;
use super::calls::Calls;
use super::common::StoreError;
use super::share::Share;
use super::system::ClockRecord;

/// The port for maintenance, one of the four ports of a store.
pub trait Upkeep: Send + Sync {
    /// Removes what the policy no longer keeps, at most `limit` records, and returns how many.
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Writes something harmless, because only a write shows whether a store that failed works again.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn stats(&self) -> StoreStats;

    /// What part this process has of the limits that hold for all processes with this store together.
    fn share(&self) -> Share {
        Share::default()
    }

    /// The audit log, if the store keeps one.
    fn audit(&self) -> Option<&dyn AuditLog> {
        None
    }

    /// The calls that agents make to other agents, if the store keeps them.
    fn calls(&self) -> Option<&dyn Calls> {
        None
    }

    /// The rows that could not be read since the store was opened.
    fn quarantine(&self) -> Quarantine {
        Quarantine::default()
    }

    /// What was recorded about the wall clock when the store was opened.
    fn clock_record(&self) -> ClockRecord {
        ClockRecord::default()
    }

    /// Records that ages are ignored until this time, also by a process that starts before it. Until then idempotency
    /// keys stay valid although their window seems to have passed.
    fn hold_until(&self, until: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        let _ = until;
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What is kept, in milliseconds since a task settled. Active tasks are never pruned.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    pub now: Timestamp,
    /// After this the log of a settled task is compacted into its fold, unless a delivery still reads it.
    pub events_ms: i64,
    pub tasks_ms: i64,
    /// Records that never became tasks, and idempotency keys.
    pub replies_ms: i64,
    pub tasks_max: u64,
    /// How many closed records one call removes if there are more than `tasks_max`, the oldest first; 0 removes just
    /// the excess.
    pub tasks_batch: u64,
}

impl Retention {
    /// How many closed records exceed the limit, given `records` in all.
    #[must_use]
    pub fn too_many(&self, records: u64) -> u64 {
        match records.saturating_sub(self.tasks_max) {
            0 => 0,
            excess if self.tasks_batch == 0 => excess,
            _ => self.tasks_batch,
        }
    }
}

/// Counters since start, for `/metrics` and for tests that count instead of timing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub commits: u64,
    pub conflicts: u64,
    pub failures: u64,
    /// Transactions: commits that waited together share one.
    pub batches: u64,
    /// Transactions by how many requests shared them, at each bound of [`COMMIT_BATCH_BOUNDS`] or below it, and above all of them.
    pub batch_sizes: [u64; 9],
    /// The requests in all of them.
    pub batch_requests: u64,
    pub rows_written: u64,
    pub bytes_written: u64,
    pub queue_depth: u64,
    /// Commits by the time they took, below each bound of `COMMIT_MICROS_BOUNDS`, and above all of them.
    pub commit_seconds: [u64; 10],
    pub commit_micros_sum: u64,
    /// The number of tasks by state, in the order of [`TaskState::ALL`]. Every commit updates it, so reading it is
    /// cheap; none while a file that was just opened is being counted.
    pub tasks: Option<[u64; TaskState::ALL.len()]>,
    /// The bytes that are stored, as [`storage`](super::storage) counts them; none while a file that was just opened is being counted.
    pub stored_bytes: Option<u64>,
    /// None but on a database server.
    pub statements: Statements,
}

/// The statements that were sent to a database server, by what they were for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    pub commits: u64,
    pub reads: u64,
    /// Leases, deliveries, calls of agents and hints.
    pub service: u64,
    /// Pruning, counting and the audit log.
    pub upkeep: u64,
}

impl Statements {
    /// Each with the word that metrics call it by.
    #[must_use]
    pub fn by_use(self) -> [(&'static str, u64); 4] {
        let Self { commits, reads, service, upkeep } = self;
        [("commits", commits), ("reads", reads), ("service", service), ("upkeep", upkeep)]
    }
}

/// Upper bounds, in microseconds, of the commit latency histogram.
pub const COMMIT_MICROS_BOUNDS: [u64; 9] = [100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000];

/// Upper bounds of the histogram of requests that share a transaction.
pub const COMMIT_BATCH_BOUNDS: [u64; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The place of a transaction of so many requests in [`StoreStats::batch_sizes`].
#[must_use]
pub fn batch_place(requests: u64) -> usize {
    COMMIT_BATCH_BOUNDS.partition_point(|bound| *bound < requests)
}

/// The rows that a store could not read since it was opened. The store skips them and goes on with the others, and
/// operators learn of them here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    /// How many rows there are in all, including those not named below.
    pub rows: u64,
    /// The first of them, at most [`NAMED_MAX`].
    pub named: Vec<DamagedRow>,
}

/// Rows that a [`Quarantine`] names; more are only counted.
pub const NAMED_MAX: usize = 20;

/// A row that cannot be read. The reason is only in the log, because it may quote what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamagedRow {
    Task {
        id: TaskId,
    },
    /// A webhook; its task can still be read.
    Webhook {
        task_id: TaskId,
        config_id: ConfigId,
    },
}

impl std::fmt::Display for DamagedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task { id } => write!(f, "task {id}"),
            Self::Webhook { task_id, config_id } => write!(f, "webhook {config_id} of task {task_id}"),
        }
    }
}
