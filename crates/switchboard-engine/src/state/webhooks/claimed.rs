//! A delivery that this process has claimed.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::Limits;
use crate::ports::store::Delivery;

/// A delivery that this process has claimed for a limited time.
pub(crate) struct ClaimedDelivery {
    pub(crate) delivery: Delivery,
    pub(crate) at: Instant,
}

impl ClaimedDelivery {
    /// How long a claim lasts. It outlasts every post that begins while it is fresh, so no other process delivers
    /// meanwhile.
    pub(crate) fn lasts_ms(limits: &Limits) -> u32 {
        limits.delivery_timeout_ms.saturating_mul(4)
    }

    /// Whether the delivery has waited too long to begin, so that the claim should be released.
    pub(crate) fn is_stale(&self, limits: &Limits) -> bool {
        self.at.elapsed() > Duration::from_millis(limits.delivery_timeout_ms.into())
    }

    /// Whether one more post can end within the claim.
    pub(crate) fn is_fresh(&self, limits: &Limits) -> bool {
        self.at.elapsed() < 2 * Duration::from_millis(limits.delivery_timeout_ms.into())
    }
}
