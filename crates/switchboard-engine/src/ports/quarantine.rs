//! Rows of a store that cannot be read. A store passes them over and goes on with the others; what it has passed over
//! is named here, so that an operator learns of it without reading the log.

use switchboard_core::model::{ConfigId, TaskId};

/// What a store has passed over since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quarantine {
    /// How many rows there are, named below or not.
    pub rows: u64,
    /// The first of them, at most [`NAMED_MAX`].
    pub named: Vec<DamagedRow>,
}

/// Rows that a [`Quarantine`] names; more are only counted.
pub const NAMED_MAX: usize = 20;

/// A row that cannot be read. Why is in the log: the reason may quote what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamagedRow {
    Task {
        id: TaskId,
    },
    /// A webhook, whose task is read as ever.
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
