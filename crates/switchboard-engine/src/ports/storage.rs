//! How many bytes may be stored: by one task, by all tasks of one owner, and in all. A store counts the bytes with each commit
//! and refuses the commit that would exceed a limit; it gives them back when a task is compacted or removed.
//!
//! What is counted is the content and a fixed number of bytes for each row around it, calls of agents included, so that many small rows count too. A store
//! holds the sums; the rules are here, so that all stores count and refuse alike.

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::Measure;

/// What a record counts by itself: its row and its entries in the indexes.
pub const TASK_BYTES: u64 = 512;
/// What a commit counts besides its events.
pub const COMMIT_BYTES: u64 = 64;
/// What a piece of content that is too large for its commit counts besides its bytes.
pub const PIECE_BYTES: u64 = 64;
/// What the idempotency key of a commit counts. It counts for as long as its commit is kept, although it may be forgotten earlier or
/// later.
pub const KEY_BYTES: u64 = 192;
/// What a webhook counts. Its URL and its secrets have limits of their own, so it need not be measured.
pub const WEBHOOK_BYTES: u64 = 8 << 10;

/// What a call of an agent to another one counts besides what is delivered of it. It counts for the owner and in all; a task can make no more of them
/// than its messages allow.
pub const CALL_BYTES: u64 = 1 << 10;

/// The end of a turn may take this much beyond a limit, so that a task can always end, and say why.
pub const ENDING_BYTES_MAX: u64 = 16 << 10;

/// The most bytes that may be stored. A limit of `u64::MAX` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// Of one task.
    pub task_bytes_max: u64,
    /// Of all tasks of one owner, with all agents.
    pub owner_bytes_max: u64,
    /// Of all tasks.
    pub bytes_max: u64,
}

/// The bytes that are stored before a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBytes {
    pub task: u64,
    pub owner: u64,
    pub all: u64,
}

/// Which limit a commit would exceed. The number is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverStorage {
    Task(u64),
    Owner(u64),
    All(u64),
}

impl StorageLimits {
    /// No limits.
    pub const NONE: Self = Self { task_bytes_max: u64::MAX, owner_bytes_max: u64::MAX, bytes_max: u64::MAX };

    /// Whether there is room for so many bytes more.
    ///
    /// # Errors
    /// The first limit that they would exceed.
    pub fn check(&self, stored: StoredBytes, more: u64) -> Result<(), OverStorage> {
        let exceeds = |held: u64, max: u64| held.saturating_add(more) > max;
        if exceeds(stored.task, self.task_bytes_max) {
            return Err(OverStorage::Task(self.task_bytes_max));
        }
        if exceeds(stored.owner, self.owner_bytes_max) {
            return Err(OverStorage::Owner(self.owner_bytes_max));
        }
        if exceeds(stored.all, self.bytes_max) {
            return Err(OverStorage::All(self.bytes_max));
        }
        Ok(())
    }
}

impl OverStorage {
    /// All of them, in the order of [`OverStorage::place`], with the limit left out.
    pub const ALL: [Self; 3] = [Self::Task(0), Self::Owner(0), Self::All(0)];

    /// The index of its counter.
    #[must_use]
    pub fn place(self) -> usize {
        match self {
            Self::Task(_) => 0,
            Self::Owner(_) => 1,
            Self::All(_) => 2,
        }
    }

    /// The setting that holds the limit.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::Task(_) => "storage_task_bytes_max",
            Self::Owner(_) => "storage_owner_bytes_max",
            Self::All(_) => "storage_bytes_max",
        }
    }

    /// What a client reads whose message is refused, or whose task ends.
    #[must_use]
    pub fn reason(self) -> String {
        let setting = self.setting();
        match self {
            Self::Task(max) => {
                format!("the task would have more than {max} bytes stored ({setting}); begin another task")
            }
            Self::Owner(max) => {
                format!(
                    "your tasks would have more than {max} bytes stored ({setting}); old tasks that have ended make room"
                )
            }
            Self::All(max) => {
                format!(
                    "all tasks would have more than {max} bytes stored ({setting}); old tasks that have ended make room"
                )
            }
        }
    }

    /// The refusal of a message. It names no time to try again, because there is room when old tasks are removed.
    #[must_use]
    pub fn refusal(self) -> ProtocolError {
        ProtocolError::ResourceExhausted { reason: self.reason(), retry_after_s: 0 }
    }
}

/// About how many bytes events take in memory.
#[must_use]
pub fn event_bytes(events: &[Event]) -> u64 {
    let about = Measure::ABOUT;
    let of = |event: &Event| match event {
        Event::Received { inbound, .. } | Event::Opened { inbound, .. } | Event::MessageAdded { inbound } => {
            about.message(&inbound.message) + inbound.metadata.as_ref().map_or(0, |json| json.as_str().len() as u64)
        }
        Event::StatusChanged { message, metadata, .. } => {
            message.as_ref().map_or(0, |message| about.message(message))
                + metadata.as_ref().map_or(0, |json| json.as_str().len() as u64)
        }
        Event::ArtifactWritten { artifact, metadata, .. } => {
            about.artifact(artifact) + metadata.as_ref().map_or(0, |json| json.as_str().len() as u64)
        }
        Event::Noted { message } | Event::Replied { message } => about.message(message),
        Event::CancelRequested { metadata, .. } => metadata.as_ref().map_or(0, |json| json.as_str().len() as u64),
        Event::Checkpoint { value } => value.as_str().len() as u64,
        Event::TurnBegan { .. } | Event::TurnEnded | Event::Claimed { .. } => 0,
    };
    events.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::{OverStorage, StorageLimits, StoredBytes};

    #[test]
    fn the_first_limit_that_would_be_exceeded_is_named() {
        let limits = StorageLimits { task_bytes_max: 10, owner_bytes_max: 20, bytes_max: 30 };
        let stored = |task, owner, all| StoredBytes { task, owner, all };
        assert_eq!(limits.check(stored(5, 15, 25), 5), Ok(()));
        assert_eq!(limits.check(stored(5, 15, 25), 6), Err(OverStorage::Task(10)));
        assert_eq!(limits.check(stored(0, 15, 25), 6), Err(OverStorage::Owner(20)));
        assert_eq!(limits.check(stored(0, 0, 25), 6), Err(OverStorage::All(30)));
        assert_eq!(StorageLimits::NONE.check(stored(u64::MAX, u64::MAX, u64::MAX), u64::MAX), Ok(()));
    }

    #[test]
    fn each_kind_has_a_place_and_names_its_setting() {
        for (place, over) in OverStorage::ALL.into_iter().enumerate() {
            assert_eq!(over.place(), place);
            assert!(over.reason().contains(over.setting()), "{}", over.reason());
        }
    }
}
