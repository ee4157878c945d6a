//! What all ports of a store speak of: whose tasks are meant, the store's own numbers, and why it did not answer.

use switchboard_core::call::Owner;
use switchboard_core::model::AgentName;

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
