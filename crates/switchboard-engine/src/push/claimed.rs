//! A delivery that this process has claimed, and how long that holds.

use std::time::Duration;

use tokio::time::Instant;

use crate::limits::Limits;
use crate::ports::store::Delivery;

/// A delivery that is ours for a while.
pub(crate) struct Claimed {
    pub(super) delivery: Delivery,
    pub(super) at: Instant,
}

impl Claimed {
    /// How long a claim is asked for. It outlasts every post that begins while it is fresh, so nobody else delivers
    /// meanwhile.
    pub(super) fn lasts_ms(limits: &Limits) -> u32 {
        limits.delivery_timeout_ms.saturating_mul(4)
    }

    /// Whether it has waited too long to begin; the claim is then better given back.
    pub(super) fn is_stale(&self, limits: &Limits) -> bool {
        self.at.elapsed() > Duration::from_millis(limits.delivery_timeout_ms.into())
    }

    /// Whether one more post can end within the claim.
    pub(super) fn is_fresh(&self, limits: &Limits) -> bool {
        self.at.elapsed() < 2 * Duration::from_millis(limits.delivery_timeout_ms.into())
    }
}
