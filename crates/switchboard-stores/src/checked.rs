//! What commands report about a database: what a check looked at, each fault, the chains of the audit log, and tasks that were handed over.

use std::fmt;

use switchboard_engine::ports::audit::ChainPosition;
use switchboard_engine::ports::store::StoreError;

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    pub tasks: u64,
    /// Tasks whose single events were removed by retention; less can be checked for them.
    pub tasks_compacted: u64,
    pub commits: u64,
    pub events: u64,
    /// Chunks of contents that are too large for a commit's record, and their bytes.
    pub chunks: u64,
    pub chunk_bytes: u64,
    pub webhooks: u64,
    /// Webhooks whose secrets cannot be read because their key is not there. That is no fault of the database, and is so for
    /// every backup that is apart from the key.
    pub webhooks_without_key: u64,
    /// Messages that are recognised if they are repeated.
    pub accepted: u64,
    /// Calls of agents to other agents.
    pub calls: u64,
    /// Entries of the audit log.
    pub audit_entries: u64,
    pub faults: u64,
}

/// An error that was found in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The task that the fault concerns, if any.
    pub task: Option<String>,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.task {
            Some(task) => write!(f, "task {task}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// One chain of an audit log, after it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditChain {
    /// The name of the chain.
    pub id: String,
    /// The last entry that is no longer kept; number 0 if none was removed.
    pub anchor: ChainPosition,
    /// The newest entry that follows without a break.
    pub last: ChainPosition,
    /// What is wrong with the entry after it; none if the chain is whole.
    pub broken: Option<String>,
}

/// What was handed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// How many tasks the new owner has got.
    pub tasks: u64,
    /// The agents whose tasks they are, in order.
    pub agents: Vec<String>,
    /// Tasks that stay with the old owner, because their row is damaged.
    pub damaged: u64,
}

/// An error of a store in its own words.
pub(crate) fn told(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable(text) | StoreError::Corrupt(text) | StoreError::Damaged(text) => text.clone(),
        StoreError::Pruned => "it is no longer kept".to_owned(),
    }
}
