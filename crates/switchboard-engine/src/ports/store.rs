//! The store: tasks and everything else that outlives a process. A store is four ports, one for each concern; a type
//! that implements all four is a store. Their types are re-exported here under one path.

pub use super::commit::{Accept, Accepted, Commit, CommitError, LeaseChange, PushChange, Target, newest_status};
pub use super::common::{DeliveryKey, Scope, StoreError, TaskKey};
pub use super::deliveries::{Deliveries, Delivery, DeliveryClaim, DeliveryOutcome, share_of_a_claim};
pub use super::runs::{DueRun, Release, Runs};
pub use super::storage::{OverStorage, StorageLimits, StoredBytes};
pub use super::task_log::{
    AcceptedTask, ListCursor, ListPage, ListQuery, LogPage, LoggedCommit, StoredHead, StoredTask, TaskLog,
};
pub use super::upkeep::{
    COMMIT_BATCH_BOUNDS, COMMIT_MICROS_BOUNDS, Retention, Statements, StoreStats, Upkeep, batch_place,
};

/// All four ports of a store, as the engine holds them.
pub trait Store: TaskLog + Runs + Deliveries + Upkeep {}

impl<T: TaskLog + Runs + Deliveries + Upkeep + ?Sized> Store for T {}
