//! Where tasks live, and everything else that outlives a process. A store is four ports in one, each a concern of its own;
//! whoever implements the four has a store. What is said to them is listed here, so that one path names it all.

pub use super::commit::{Accept, Accepted, Commit, CommitError, LeaseChange, PushChange, Target, newest_status};
pub use super::deliveries::{Deliveries, Delivery, DeliveryClaim, DeliveryOutcome};
pub use super::runs::{DueRun, Release, Runs};
pub use super::store_types::StoreError;
pub use super::store_types::{DeliveryKey, Scope, TaskKey};
pub use super::task_log::{
    AcceptedTask, ListCursor, ListPage, ListQuery, LogPage, LoggedCommit, StoredHead, StoredTask, TaskLog,
};
pub use super::upkeep::{COMMIT_MICROS_BOUNDS, Retention, StoreStats, Upkeep};

/// All four, as the engine holds them.
pub trait Store: TaskLog + Runs + Deliveries + Upkeep {}

impl<T: TaskLog + Runs + Deliveries + Upkeep + ?Sized> Store for T {}
