//! The store: tasks and everything else that outlives a process. A store is four ports, one for each concern; a type
//! that implements all four is a store. Their types are re-exported here under one path.

pub use super::deliveries::{Deliveries, Delivery, DeliveryClaim, DeliveryOutcome, share_of_a_claim};
pub use super::runs::{DueRun, Release, Runs};
pub use super::storage::{OverStorage, StorageLimits, StoredBytes};
pub use super::task_log::{
    Accept, Accepted, AcceptedTask, Commit, CommitError, DeliveryKey, LeaseChange, ListCursor, ListPage, ListQuery,
    LogPage, LoggedCommit, PushChange, Scope, StoreError, StoredHead, StoredTask, Target, TaskKey, TaskLog,
    newest_status,
};
pub use super::upkeep::{
    COMMIT_BATCH_BOUNDS, COMMIT_MICROS_BOUNDS, Retention, Statements, StoreStats, Upkeep, batch_place,
};

/// All four ports of a store, as the engine holds them.
pub trait Store: TaskLog + Runs + Deliveries + Upkeep {}

impl<T: TaskLog + Runs + Deliveries + Upkeep + ?Sized> Store for T {}
