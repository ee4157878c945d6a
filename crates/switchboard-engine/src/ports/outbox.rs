//! The store's deliveries for operators: what waits, what became a dead letter, and the two ways to change that. The
//! port covers the deliveries of all owners, so only the operator's interface may use it.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ConfigId, Dialect, TaskId, Timestamp};

use super::common::{DeliveryKey, Scope, StoreError, TaskKey};

pub trait Outbox: Send + Sync {
    /// Deliveries that wait, are under way or became dead letters, in the order of their keys.
    fn page(&self, query: OutboxQuery) -> BoxFuture<'_, Result<OutboxPage, StoreError>>;

    /// How many deliveries wait or are under way, counted up to this number.
    fn depth(&self, at_most: u32) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// One delivery, if it has anything left to deliver.
    fn find(&self, key: DeliveryKey) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>>;

    /// Makes deliveries due now and resets their count of failures, whether they are dead letters or waiting.
    /// Deliveries under way are not changed. Returns how many it made due.
    fn redrive(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Drops what dead letters still had to deliver: their cursors move to the end of their tasks, and the webhooks
    /// stay for what comes later. Other deliveries are not changed. Returns how many it dropped.
    fn purge(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>>;
}

#[derive(Clone, Copy, Debug)]
pub struct OutboxQuery {
    /// Only deliveries in this state; none means all.
    pub state: Option<OutboxState>,
    pub after: Option<DeliveryKey>,
    pub limit: usize,
}

/// One page of the list. An adapter examines a bounded number of rows for it, so a page may be short or even empty
/// although more pages follow.
#[derive(Clone, Debug)]
pub struct OutboxPage {
    pub entries: Vec<OutboxEntry>,
    /// Where the next page begins, if there may be one.
    pub next: Option<DeliveryKey>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboxState {
    /// Due, or waiting for its next attempt.
    Waiting,
    UnderWay,
    /// A dead letter: no more attempts are made.
    Dead,
}

/// One webhook that has not delivered everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxEntry {
    pub key: DeliveryKey,
    pub scope: Scope,
    pub task_key: TaskKey,
    pub task_id: TaskId,
    pub config_id: ConfigId,
    pub url: String,
    /// The dialect of the receiver.
    pub dialect: Dialect,
    pub state: OutboxState,
    /// The number of the last update that the receiver has accepted, and of the task's newest.
    pub delivered_seq: u64,
    pub task_seq: u64,
    /// Failed attempts at the next update.
    pub failures: u32,
    /// When it is tried next; for one under way, when its claim runs out.
    pub due: Option<Timestamp>,
    pub last_error: Option<String>,
    pub last_attempt_at: Option<Timestamp>,
    pub created_at: Timestamp,
}
