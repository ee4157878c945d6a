//! Wall clocks on virtual time. The store has one and each node has one; each can be wrong by itself.

use std::sync::atomic::{AtomicI64, Ordering};

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock;
use tokio::time::Instant;

pub(super) struct SimClock {
    started: Instant,
    wrong_by_ms: AtomicI64,
    /// How many microseconds it gains in a second; negative if it loses.
    drift_ppm: i64,
}

impl SimClock {
    pub(super) fn new() -> Self {
        Self::drifting(0)
    }

    /// A clock that is too fast or, if negative, too slow.
    pub(super) fn drifting(drift_ppm: i64) -> Self {
        Self { started: Instant::now(), wrong_by_ms: AtomicI64::new(0), drift_ppm }
    }

    /// Forwards, or backwards if negative.
    pub(super) fn jump_ms(&self, ms: i64) {
        self.wrong_by_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap();
        let gained = elapsed * self.drift_ppm / 1_000_000;
        Timestamp::from_ms(1_700_000_000_000 + elapsed + gained + self.wrong_by_ms.load(Ordering::Relaxed))
    }
}
