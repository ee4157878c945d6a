//! Webhooks of tasks, and how far each has come. A commit marks them due; whoever claims one posts it and says how it ended.

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ContextId, Dialect, PushConfig, TaskId, Timestamp};

use super::Outbox;
use super::store_types::StoreError;
use super::store_types::{DeliveryKey, Scope, TaskKey};

/// The third of the four ports of a store.
pub trait Deliveries: Send + Sync {
    /// The webhooks of a task.
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>>;

    /// Takes deliveries that are due, hiding them from others for `claim_ms`.
    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>>;

    /// Records how deliveries ended, all of them in one go. Of one whose claim ran out and was taken by another, only
    /// what the receiver has taken is recorded.
    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// When the next delivery is due, if any waits.
    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;

    /// The same deliveries for operators.
    fn outbox(&self) -> &dyn Outbox;
}

/// One webhook that is behind its task.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub key: DeliveryKey,
    /// Whose task it is, for receivers that are sent the whole of it.
    pub scope: Scope,
    pub task_key: TaskKey,
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub config: PushConfig,
    pub dialect: Dialect,
    /// The number of the last update the receiver has taken.
    pub delivered_seq: u64,
    /// The number of the task's newest update when this was claimed.
    pub task_seq: u64,
    /// Failed attempts at the next one.
    pub failures: u32,
    pub claimed_until: Timestamp,
}

impl Delivery {
    #[must_use]
    pub fn claim(&self) -> DeliveryClaim {
        DeliveryClaim { key: self.key, until: self.claimed_until }
    }
}

/// Which claim of which delivery. One that has not been settled is claimed again only when it has run out, so the time
/// it holds until tells it from every later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    pub key: DeliveryKey,
    pub until: Timestamp,
}

#[derive(Clone, Debug)]
pub enum DeliveryOutcome {
    /// The receiver has taken everything up to here.
    Delivered { seq: u64 },
    /// Keep what was delivered, try the next again after `wait_ms` by the store's clock.
    Retry { delivered_seq: u64, wait_ms: i64, error: String },
    /// Not tried, through no fault of its own: keep what was delivered and the count of failures, take it up after
    /// `wait_ms`.
    Postponed { delivered_seq: u64, wait_ms: i64 },
    /// Given up on; it stays visible until somebody redrives it.
    Parked { delivered_seq: u64, error: String },
}

impl DeliveryOutcome {
    /// The number of the last update the receiver has taken.
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
