//! The log of each task, and what is read from it. [`TaskLog::commit`] is the only way to write: it compares the
//! version and appends one [`Commit`], the events that happened together and what must change with them.
//!
//! Every read names the owner. Another owner's task is reported as missing, and only the store decides that.

use std::sync::Arc;

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{
    AgentName, ArtifactId, ConfigId, ContextId, Dialect, PushConfig, Task, TaskId, TaskState, TaskStatus, Timestamp,
};

use super::audit::AuditEntry;
use super::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use super::outline::Outline;
use super::storage::{OverStorage, StorageLimits};

/// The port for task logs, one of the four ports of a store.
pub trait TaskLog: Send + Sync {
    /// Appends one commit to one task, if the task's version is still the one on which the commit was decided. The
    /// commit is atomic, and it is durable when this returns.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>>;

    /// The head of a record, whether it is a task yet or not.
    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>>;

    /// The record: its head, and its log folded. Artifacts that do not fit into `bytes_max` (see
    /// [`too_large`](super::outline::too_large)) are outlined, and their contents are not read. The history holds its newest
    /// messages, of about `bytes_max` together; the present status and the current turn are always whole.
    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>>;

    /// The record as it was at `version` or later, for a caller that waited for the commit of this version by this process. An
    /// adapter whose data others write, too, may answer from memory where [`TaskLog::task`] would have to read.
    fn task_since<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        version: u64,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        let _ = version;
        self.task(scope, id, bytes_max)
    }

    /// The same for a reader that shows at most `history_max` messages of the history and starts no run: an adapter may leave
    /// out older ones, and the contents of all open turns.
    fn task_view<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
        history_max: u32,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        let _ = history_max;
        self.task(scope, id, bytes_max)
    }

    /// The task as it was right after the commit that accepted a further message, which is where a replay of its turn
    /// begins. Later commits are not read. Fails with `Pruned` below what is kept.
    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>>;

    /// Commits with visible events numbered above `after_seq`, in order, at most `limit`. There may be fewer if they
    /// are large, but none only if there are no more. The owner is not checked again: only a caller that has read the
    /// head knows its key. Fails with `Pruned` below what is kept.
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

    /// The tasks of a scope, newest status first; for equal times, the newest task first. A page that would hold more
    /// than [`ListQuery::bytes_max`] ends early, but never without a task.
    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>>;

    /// The message that was accepted under an idempotency key, if the key has not expired.
    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>>;
}

/// The head that commands are decided on, and its owner and agent.
#[derive(Clone, Debug)]
pub struct StoredHead {
    pub key: TaskKey,
    pub scope: Scope,
    pub head: Arc<Head>,
}

/// A task in its present state.
#[derive(Clone, Debug)]
pub struct StoredTask {
    pub key: TaskKey,
    pub head: Arc<Head>,
    /// Without the parts of the artifacts that are `outlined`.
    pub folded: Arc<Folded>,
    /// Artifacts whose contents were left in the store.
    pub outlined: Vec<Outline>,
}

/// A task as it was when a message was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptedTask {
    /// Without the parts of the artifacts that are `outlined`.
    pub task: Arc<Task>,
    /// Artifacts whose contents were left in the store.
    pub outlined: Vec<Outline>,
    /// The number of the task's last visible event then.
    pub seq: u64,
    /// Whether the message had to wait for its turn.
    pub waited: bool,
}

/// A sequence of commits.
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
    pub bytes_max: u64,
    /// How many messages of each history will be shown; an adapter may leave out older ones.
    pub history_max: Option<u32>,
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
    /// How many tasks match in all, on every page.
    pub total: u64,
}

/// One write to one task.
pub struct Commit {
    pub target: Target,
    /// The fence of the run that writes; none for writes by callers. It is compared inside the transaction.
    pub fence: Option<u64>,
    pub events: Arc<[Event]>,
    /// The head after this commit. Heads are shared by `Arc`, because many places hold one and few change it.
    pub head: Arc<Head>,
    /// Whether readers must fold this commit (see `lifecycle::is_needed_to_fold`).
    pub folds: bool,
    pub lease: LeaseChange,
    pub push: Vec<PushChange>,
    pub accept: Option<Accept>,
    /// An entry of the audit log that is written if the commit succeeds.
    pub audit: Option<Box<AuditEntry>>,
    pub at: Timestamp,
    /// How many bytes may be stored after it, see [`Commit::needs_room`].
    pub storage: StorageLimits,
    /// The fold after this commit, if the committer happens to hold it. An adapter that is the only writer may cache it
    /// for reads. No adapter may store it.
    pub folded: Option<Arc<Folded>>,
}

/// What a commit does to the lease on the run of its task. A commit that ends the run drops the lease in any case, and a run
/// that begins without one is due at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseChange {
    /// Leaves the lease as it is.
    Keep,
    /// Takes the lease for this process, or renews it, for `lease_ms`. A run that `waits` has no slot yet: it begins
    /// with [`Runs::begin_runs`](super::Runs::begin_runs).
    Take { lease_ms: u32, waits: bool },
    /// Takes over a run that no process holds, which begins with [`Runs::begin_runs`](super::Runs::begin_runs). It is a
    /// [`CommitError::Conflict`] if the run is not due any more, or is not `interrupted` as
    /// [`DueRun::interrupted`](super::runs::DueRun::interrupted) said: its holder may renew the lease or begin the run
    /// without a new version.
    Claim { lease_ms: u32, interrupted: bool },
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

/// The newest status that a sequence of events sets.
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
    /// Inserts a config, or replaces the one with the same id. Its cursor starts after `after_seq`.
    Put {
        config: PushConfig,
        dialect: Dialect,
        after_seq: u64,
    },
    Delete {
        id: ConfigId,
    },
}

/// The idempotency record of an accepted message, kept until `expires`.
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
    /// Whether the message had to wait for its turn; none if these are not the events that accepted it.
    #[must_use]
    pub fn waited_in(&self, events: &[Event]) -> Option<bool> {
        let added = |event: &Event| matches!(event, Event::MessageAdded { inbound } if inbound.turn == self.turn);
        let began = |event: &Event| matches!(event, Event::TurnBegan { turn, .. } if *turn == self.turn);
        events.iter().any(added).then(|| !events.iter().any(began))
    }
}

/// Why a commit was not written. Callers react differently to each variant.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// Another commit came first: load the head and decide again.
    Conflict,
    /// The run's fence is out of date because another run has replaced it: stop the run.
    Fenced,
    /// The idempotency key is taken.
    Duplicate(Accepted),
    /// The store is full, and nothing can be removed.
    Full,
    /// More bytes would be stored than may be.
    OverStorage(OverStorage),
    Store(StoreError),
}

impl From<StoreError> for CommitError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The owner and the agent whose tasks are meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub owner: Owner,
    pub agent: AgentName,
}

/// The store's own number of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub i64);

/// The store's own number of a webhook and its delivery cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey(pub i64);

/// Why a store did not answer. There is one variant for each thing that callers do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The store failed; try again later. The reason is logged and shown by the readiness check, so it names no path,
    /// no host and nothing that is stored.
    Unavailable(String),
    /// The stored data is inconsistent. Do not try again.
    Corrupt(String),
    /// One record cannot be read, but others can. The store has put it into quarantine. The text is for the log.
    Damaged(String),
    /// The requested part of the log is no longer kept.
    Pruned,
}
