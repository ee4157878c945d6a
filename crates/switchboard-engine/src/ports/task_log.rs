//! The log of each task, and what is read from it. [`TaskLog::commit`] is the only way to write: it compares the
//! version and appends one [`Commit`], the events that happened together and what must change with them.
//!
//! Every read names the owner. Another owner's task is reported as missing, and only the store decides that.

use std::sync::Arc;

use switchboard_core::call::BoxFuture;
use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{ArtifactId, ContextId, Task, TaskId, TaskState, Timestamp};

use super::commit::{Accepted, Commit, CommitError};
use super::common::{Scope, StoreError, TaskKey};
use super::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use super::outline::Outline;

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
