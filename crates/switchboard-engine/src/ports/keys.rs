//! What records are asked for by: whose they are, and the store's own short names for them.

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
