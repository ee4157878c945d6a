//! The webhooks of tasks and their delivery cursors. A commit marks webhooks due; the process that claims a delivery
//! posts it and records the outcome.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ContextId, Dialect, PushConfig, TaskId, Timestamp};

use super::common::{DeliveryKey, Scope, StoreError, TaskKey};
use super::outbox::Outbox;

/// The port for webhooks and deliveries, one of the four ports of a store.
pub trait Deliveries: Send + Sync {
    /// The webhooks of a task.
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>>;

    /// Claims deliveries that are due; other processes do not get them for `claim_ms`. If more are due than the limit, each owner that
    /// has one gets its share ([`share_of_a_claim`]), and what is left goes to those that have waited longest, so that the backlog of
    /// one owner does not hide what falls due for another. Of one owner, they are claimed in the order in which they fell due. If there
    /// are more owners than the limit, they take turns. What a claim costs does not depend on how many deliveries wait.
    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>>;

    /// Records the outcomes of deliveries in one transaction. If a claim ran out and another process has claimed the
    /// delivery, only what the receiver has accepted is recorded.
    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// When the next delivery is due, if any waits.
    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// The view of deliveries for operators.
    fn outbox(&self) -> &dyn Outbox;
}

/// How many of a claim of so many deliveries are for one owner, if so many owners have any that are due.
#[must_use]
pub fn share_of_a_claim(limit: usize, owners: usize) -> usize {
    (limit / owners.max(1)).max(1)
}

/// One webhook that has updates to deliver.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub key: DeliveryKey,
    /// The owner and agent of the task, for receivers that are sent whole tasks.
    pub scope: Scope,
    pub task_key: TaskKey,
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub config: PushConfig,
    pub dialect: Dialect,
    /// The number of the last update that the receiver has accepted.
    pub delivered_seq: u64,
    /// The number of the task's newest update when this was claimed.
    pub task_seq: u64,
    /// Failed attempts at the next update.
    pub failures: u32,
    pub claimed_until: Timestamp,
}

impl Delivery {
    #[must_use]
    pub fn claim(&self) -> DeliveryClaim {
        DeliveryClaim { key: self.key, until: self.claimed_until }
    }
}

/// Identifies one claim of one delivery. A delivery is claimed again only after its claim was settled or has run out,
/// so the end of the claim distinguishes it from every later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    pub key: DeliveryKey,
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub enum DeliveryOutcome {
    /// The receiver has accepted everything up to this number.
    Delivered { seq: u64 },
    /// The next update failed: keep what was delivered, and try again after `wait_ms` by the store's clock.
    Retry { delivered_seq: u64, wait_ms: i64, error: String },
    /// The next update was not tried: keep what was delivered and the count of failures, and make it due after
    /// `wait_ms`.
    Postponed { delivered_seq: u64, wait_ms: i64 },
    /// The delivery became a dead letter. It stays visible until an operator redrives or drops it.
    Parked { delivered_seq: u64, error: String },
}

impl DeliveryOutcome {
    /// The number of the last update that the receiver has accepted.
    #[must_use]
    pub fn delivered_seq(&self) -> u64 {
        match self {
            Self::Delivered { seq } => *seq,
            Self::Retry { delivered_seq, .. }
            | Self::Postponed { delivered_seq, .. }
            | Self::Parked { delivered_seq, .. } => *delivered_seq,
        }
    }
}
