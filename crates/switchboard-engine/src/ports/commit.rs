//! What is written to a task: the events that happened together, and what must change with them.

use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{ConfigId, Dialect, PushConfig, TaskId, TaskState, TaskStatus, Timestamp};

use super::audit::AuditEntry;
use super::common::{Scope, StoreError, TaskKey};
use super::storage::{
    COMMIT_BYTES, ENDING_BYTES_MAX, KEY_BYTES, OverStorage, StorageLimits, TASK_BYTES, WEBHOOK_BYTES,
};

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

    /// Whether this commit, of so many bytes, is refused if it exceeds a limit. Messages, webhooks and what a run writes while it goes on
    /// are; claims, requests to cancel and ends of turns are not, unless they are large.
    #[must_use]
    pub fn needs_room(&self, bytes: u64) -> bool {
        let brings =
            |event: &Event| matches!(event, Event::Received { .. } | Event::Opened { .. } | Event::MessageAdded { .. });
        let registers = |change: &PushChange| matches!(change, PushChange::Put { .. });
        bytes > ENDING_BYTES_MAX
            || matches!(self.target, Target::New { .. })
            || (self.fence.is_some() && self.head.running)
            || self.events.iter().any(brings)
            || self.push.iter().any(registers)
    }

    /// What this commit counts besides the content of its events: its row, its idempotency key, a new record, and webhooks, of
    /// which there were `push_configs` before.
    #[must_use]
    pub fn bytes_around(&self, push_configs: u32) -> i64 {
        let task = if matches!(self.target, Target::New { .. }) { TASK_BYTES } else { 0 };
        let key = if self.accept.is_some() { KEY_BYTES } else { 0 };
        let webhooks = i64::from(self.head.push_configs) - i64::from(push_configs);
        (task + COMMIT_BYTES + key).cast_signed() + webhooks * WEBHOOK_BYTES.cast_signed()
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
