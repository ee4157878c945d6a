//! The types that the four ports of a store share: whose tasks are meant, the keys of stored rows, and errors.

use switchboard_core::call::Owner;
use switchboard_core::model::AgentName;

/// Whose tasks, and of which agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub owner: Owner,
    pub agent: AgentName,
}

/// The store's own short name for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey(pub i64);

/// The same of a webhook and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey(pub i64);

/// Why a store did not answer. There is one variant for each thing that callers do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// Try again later. The reason is logged and shown to whoever asks whether the process is ready: it names no path,
    /// no host and nothing that is stored.
    Unavailable(String),
    /// Stop: what is stored cannot be right.
    Corrupt(String),
    /// One record cannot be read, and the others can: the store has put it into quarantine. The text is for the log.
    Damaged(String),
    /// The log no longer reaches back that far.
    Pruned,
}
