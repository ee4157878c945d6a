//! The store's deliveries as an operator sees them: what waits, what was given up on, and the two things that can be
//! done about it. Not scoped to an owner, so nothing but the operator's door may lead here.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ConfigId, Dialect, TaskId, Timestamp};

use super::store_types::StoreError;
use super::store_types::{DeliveryKey, Scope, TaskKey};

pub trait Outbox: Send + Sync {
    /// Deliveries that wait, are under way or were given up on, in the order of their keys.
    fn page(&self, query: OutboxQuery) -> BoxFuture<'_, Result<OutboxPage, StoreError>>;

    /// One delivery, if it has anything left to deliver.
    fn find(&self, key: DeliveryKey) -> BoxFuture<'_, Result<Option<OutboxEntry>, StoreError>>;

    /// Makes deliveries due now and counts their failures anew, be they given up on or waiting. Those under way are left
    /// alone. Says how many it made due.
    fn redrive(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Drops what dead letters still had to deliver: their cursors move to the end of their tasks, and the webhooks stay
    /// for what comes later. Others are left alone. Says how many it dropped.
    fn purge(&self, keys: Vec<DeliveryKey>) -> BoxFuture<'_, Result<usize, StoreError>>;
}

#[derive(Clone, Copy, Debug)]
pub struct OutboxQuery {
    /// Only these; none is all of them.
    pub state: Option<OutboxState>,
    pub after: Option<DeliveryKey>,
    pub limit: usize,
}

/// A part of the list. An adapter looks at a bounded number of rows for it, so a page may be short, even empty, while
/// more follows.
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
    /// Given up on: a dead letter.
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
    /// What the receiver reads.
    pub dialect: Dialect,
    pub state: OutboxState,
    /// The number of the last update the receiver has taken, and of the task's newest.
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
