//! Where tasks live. There is one write door, [`Store::commit`]: compare-and-append, one transaction for the log, the
//! head, the lease, push configs, delivery cursors and the idempotency key. Everything else reads, or moves work that
//! is not part of a task's history (leases, deliveries, retention).
//!
//! Every read names whose task it wants; a foreign task is a missing task, decided here and nowhere else.

use std::sync::Arc;

use switchboard_core::call::BoxFuture;
use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{
    ArtifactId, ConfigId, ContextId, Dialect, PushConfig, Task, TaskId, TaskState, TaskStatus, Timestamp,
};

use super::clock::ClockRecord;
use super::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use super::room::Room;
use super::{Outbox, Quarantine};

pub use super::keys::{DeliveryKey, Scope, TaskKey};
pub use super::store_error::StoreError;

pub trait Store: Send + Sync {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>>;

    /// The head of a record, born or not.
    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>>;

    /// The record: its head, and its log folded. Artifacts that there is no room for are shown as links, and their
    /// contents are not read.
    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        room: &'a Room,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>>;

    /// The task as it stood right after the commit that accepted a further message: where a replay of its turn begins.
    /// Reads what a reader would have read then, and nothing that came later. Fails with `Pruned` below what is kept.
    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        room: &'a Room,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>>;

    /// Commits that hold visible events numbered above `after_seq`, in order, at most `limit` of them: fewer where they
    /// are large, none only if there are none. A key is proof that its holder was shown the head. Fails with `Pruned`
    /// below what is kept.
    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>>;

    /// An artifact of a record, whole or one part of it (counted from 0, below `PARTS_APART_MAX`), for a reader of its
    /// bytes: the texts, bytes, links and JSON of its parts, one after the other.
    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>>;

    /// The bytes at a cursor, about `bytes_max` of them at most. Fails with `Pruned` if they are no longer kept.
    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>>;

    /// Born tasks of a scope, newest status first; of the same moment, the one opened last. A page that would hold more
    /// than there is room for ends early, but never without a task.
    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>>;

    /// What an idempotency key stands for, if it was used inside its window.
    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>>;

    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>>;

    /// Takes over runs that nobody holds: their lease has run out, was released and is due, or belonged to a process
    /// that is provably gone. Each is committed as `Claimed` under a new fence; one that was released or has not begun
    /// (see [`Store::begin_runs`]) without a new attempt. A lease that has run out while this process is at work on its
    /// run is renewed instead. A run whose task cannot be read goes into quarantine, and the others are claimed.
    fn claim_runs(&self, claim: ClaimRuns) -> BoxFuture<'_, Result<Vec<ClaimedRun>, StoreError>>;

    /// Records that claimed runs, and those committed as waiting, begin now; says which of them this process has lost.
    /// It is durable before a run has any effect: if the holder dies before, the run was not interrupted, and the next
    /// claim is no further attempt.
    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Extends the leases this process holds and says which it has lost. Renewing an expired lease that nobody claimed
    /// is allowed: a laptop that slept has lost nothing.
    fn renew_leases(&self, held: Vec<(TaskKey, u64)>, lease_ms: u32)
    -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Runs at work that somebody has asked to cancel. Whoever recorded the intent may have died, or be another process,
    /// before it could tell the run.
    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>>;

    /// Gives leases back. It is no failure of the runs: the claim that follows is not another attempt. One that somebody has
    /// asked to cancel, before or after this, waits for nothing: it is due at once.
    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Takes deliveries that are due, hiding them from others for `claim_ms`.
    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>>;

    /// Records how deliveries ended, all of them in one go. Of one whose claim ran out and was taken by another, only
    /// what the receiver has taken is recorded.
    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// When the next delivery is due, if any waits.
    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// The same deliveries for operators.
    fn outbox(&self) -> &dyn Outbox;

    /// Removes what the policy no longer keeps, at most `limit` records, and says how many.
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Writes something harmless: whether a store that failed works again can only be told by writing.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn stats(&self) -> StoreStats;

    /// The rows that could not be read since the store was opened.
    fn quarantine(&self) -> Quarantine {
        Quarantine::default()
    }

    /// What was known of the wall clock when the store was opened.
    fn clock_record(&self) -> ClockRecord {
        ClockRecord::default()
    }

    /// Remembers that ages do not count until then, also for a process that starts before: idempotency keys are known
    /// although their window seems to have passed.
    fn hold_until(&self, until: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        let _ = until;
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One step of one task.
pub struct Commit {
    pub target: Target,
    /// The fence of the run that writes; none for writes by callers. Compared inside the transaction.
    pub fence: Option<u64>,
    pub events: Arc<[Event]>,
    /// The head after this commit. Heads are shared, here and below: many hold one, and few ever change it.
    pub head: Arc<Head>,
    /// Whether readers must fold this commit (see `lifecycle::is_needed_to_fold`).
    pub folds: bool,
    /// Take, or take again, the lease on the run for this long. A commit that ends the run drops the lease by itself.
    pub lease_ms: Option<u32>,
    /// The run that takes its lease with this commit has to wait for its place: it begins with [`Store::begin_runs`].
    pub waits: bool,
    pub push: Vec<PushChange>,
    pub accept: Option<Accept>,
    pub at: Timestamp,
    /// The fold after this commit, if the committer happens to hold it. An adapter that is the only writer may keep it
    /// to answer reads; none may store it.
    pub folded: Option<Arc<Folded>>,
}

pub enum Target {
    New { scope: Scope },
    Existing { key: TaskKey, expected_version: u64 },
}

impl Commit {
    /// How many of the events are visible.
    #[must_use]
    pub fn visible(&self) -> u64 {
        self.events.iter().filter(|event| event.is_visible()).count() as u64
    }

    /// The number of the first visible event.
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.head.seq + 1 - self.visible()
    }

    /// The newest status these events set, if they set one.
    #[must_use]
    pub fn new_status(&self) -> Option<TaskStatus> {
        newest_status(&self.events)
    }
}

/// The newest status a run of events sets.
#[must_use]
pub fn newest_status(events: &[Event]) -> Option<TaskStatus> {
    events.iter().rev().find_map(|event| match event {
        Event::StatusChanged { state, message, at, .. } => {
            Some(TaskStatus { state: *state, message: message.clone(), timestamp: *at })
        }
        Event::Opened { at, .. } => Some(TaskStatus { state: TaskState::Submitted, message: None, timestamp: *at }),
        _ => None,
    })
}

pub enum PushChange {
    /// Insert, or replace the config with the same id. Its cursor starts after `after_seq`.
    Put {
        config: PushConfig,
        dialect: Dialect,
        after_seq: u64,
    },
    Delete {
        id: ConfigId,
    },
}

/// The record that a message was accepted, kept until `expires`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    pub key: [u8; 32],
    pub digest: [u8; 32],
    pub turn: u32,
    /// The number before the turn's first visible event: where a replay begins.
    pub after_seq: u64,
    pub expires: Timestamp,
}

/// A message that was accepted before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    pub task_id: TaskId,
    pub digest: [u8; 32],
    pub turn: u32,
    pub after_seq: u64,
}

impl Accepted {
    /// Whether the message had to wait for its turn, if these are the events that accepted it as a further message.
    #[must_use]
    pub fn waited_in(&self, events: &[Event]) -> Option<bool> {
        let added = |event: &Event| matches!(event, Event::MessageAdded { inbound } if inbound.turn == self.turn);
        let began = |event: &Event| matches!(event, Event::TurnBegan { turn, .. } if *turn == self.turn);
        events.iter().any(added).then(|| !events.iter().any(began))
    }
}

/// A task at the moment when a message was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedTask {
    pub task: Arc<Task>,
    /// The number of the task's last visible event then.
    pub seq: u64,
    /// Whether the message had to wait for its turn.
    pub waited: bool,
}

/// Why a commit did not happen. Each asks for another reaction.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// Somebody else was faster: load again, decide again.
    Conflict,
    /// The run has been replaced: stop it.
    Fenced,
    /// The idempotency key is taken.
    Duplicate(Accepted),
    /// The store holds as much as it may and nothing can be removed.
    Full,
    Store(StoreError),
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[derive(Clone, Debug)]
pub struct StoredHead {
    pub key: TaskKey,
    pub scope: Scope,
    pub head: Arc<Head>,
}

#[derive(Clone, Debug)]
pub struct StoredTask {
    pub key: TaskKey,
    pub head: Arc<Head>,
    pub folded: Arc<Folded>,
}

/// How runs are to be claimed.
#[derive(Clone)]
pub struct ClaimRuns {
    pub limit: usize,
    pub lease_ms: u32,
    /// Whether this process is at work on the run of a task under a fence. Asked inside the claim, so that a process that
    /// was frozen for longer than a lease does not take its own runs for orphans.
    pub at_work: Arc<dyn Fn(TaskKey, u64) -> bool + Send + Sync>,
}

/// A lease given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub key: TaskKey,
    pub fence: u64,
    /// How long nobody is to claim the run, by the store's clock: processes do not agree on the time of day.
    pub pause_ms: i64,
}

#[derive(Clone, Debug)]
pub struct ClaimedRun {
    pub stored: StoredHead,
    /// It had been given back in order, or had not begun. If not, the process that held it died or fell silent.
    pub was_released: bool,
}

/// A run of commits.
#[derive(Clone, Debug)]
pub struct LogPage {
    pub commits: Vec<LoggedCommit>,
}

#[derive(Clone, Debug)]
pub struct LoggedCommit {
    pub version: u64,
    pub first_seq: u64,
    pub events: Arc<[Event]>,
}

#[derive(Clone, Debug)]
pub struct ListQuery {
    pub context_id: Option<ContextId>,
    pub state: Option<TaskState>,
    /// Inclusive.
    pub status_since: Option<Timestamp>,
    pub page_size: usize,
    pub after: Option<ListCursor>,
    /// Whether artifacts will be shown; if not, an adapter may leave them out of the fold.
    pub artifacts: bool,
    /// For all tasks of the page together.
    pub room: Room,
}

/// The last task of the page before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    pub status_at: Timestamp,
    pub key: TaskKey,
}

pub struct ListPage {
    pub tasks: Vec<StoredTask>,
    /// Where the next page begins, if there is one.
    pub next: Option<ListCursor>,
    /// All that match, on whatever page.
    pub total: u64,
}

/// One webhook that is behind its task.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub key: DeliveryKey,
    /// Whose task it is, for receivers that are sent the whole of it.
    pub scope: Scope,
    pub task_key: TaskKey,
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub config: PushConfig,
    pub dialect: Dialect,
    /// The number of the last update the receiver has taken.
    pub delivered_seq: u64,
    /// The number of the task's newest update when this was claimed.
    pub task_seq: u64,
    /// Failed attempts at the next one.
    pub failures: u32,
    pub claimed_until: Timestamp,
}

impl Delivery {
    #[must_use]
    pub fn claim(&self) -> DeliveryClaim {
        DeliveryClaim { key: self.key, until: self.claimed_until }
    }
}

/// Which claim of which delivery. One that has not been settled is claimed again only when it has run out, so the time
/// it holds until tells it from every later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    pub key: DeliveryKey,
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub enum DeliveryOutcome {
    /// The receiver has taken everything up to here.
    Delivered { seq: u64 },
    /// Keep what was delivered, try the next again after `wait_ms` by the store's clock.
    Retry { delivered_seq: u64, wait_ms: i64, error: String },
    /// Not tried, through no fault of its own: keep what was delivered and the count of failures, take it up after
    /// `wait_ms`.
    Postponed { delivered_seq: u64, wait_ms: i64 },
    /// Given up on; it stays visible until somebody redrives it.
    Parked { delivered_seq: u64, error: String },
}

impl DeliveryOutcome {
    /// The number of the last update the receiver has taken.
    #[must_use]
    pub fn delivered_seq(&self) -> u64 {
        match self {
            Self::Delivered { seq } => *seq,
            Self::Retry { delivered_seq, .. }
            | Self::Postponed { delivered_seq, .. }
            | Self::Parked { delivered_seq, .. } => *delivered_seq,
        }
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
    /// How many closed records one call removes if there are more than `tasks_max`, the first opened first; 0 is as many as
    /// are too many.
    pub tasks_batch: u64,
}

impl Retention {
    /// How many closed records are to go because of their number, of `records` in all.
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
    pub rows_written: u64,
    pub bytes_written: u64,
    pub queue_depth: u64,
    /// Commits by the time they took, below each bound of `COMMIT_MICROS_BOUNDS`, and above all of them.
    pub commit_seconds: [u64; 10],
    pub commit_micros_sum: u64,
    /// Tasks that are kept, in the order of [`TaskState::ALL`]. Kept up to date by every commit, so reading it costs
    /// nothing; none while a file that was just opened is being counted.
    pub tasks: Option<[u64; TaskState::ALL.len()]>,
}

/// Upper bounds, in microseconds, of the commit latency histogram.
pub const COMMIT_MICROS_BOUNDS: [u64; 9] = [100, 250, 500, 1_000, 2_500, 10_000, 50_000, 250_000, 1_000_000];
