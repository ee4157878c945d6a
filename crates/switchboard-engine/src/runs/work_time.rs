//! How long a run has worked. Waiting for an authorization does not count.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskState;
use tokio::time::Instant;

/// The time that a run has worked.
pub(crate) struct WorkTime {
    inner: Mutex<Inner>,
}

struct Inner {
    began: Instant,
    /// The sum of the pauses that have ended.
    paused: Duration,
    paused_since: Option<Instant>,
}

/// How often a paused turn is checked, however little time it has left.
const PAUSE_LOOK: Duration = Duration::from_secs(1);

impl WorkTime {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner { began: Instant::now(), paused: Duration::ZERO, paused_since: None }) }
    }

    /// Starts the measurement, in the state that the agent has already set.
    pub(crate) fn begin(&self) {
        let now = Instant::now();
        self.with(|inner| {
            let paused_since = inner.paused_since.map(|_| now);
            *inner = Inner { began: now, paused: Duration::ZERO, paused_since };
        });
    }

    /// Notes a state that the agent has set.
    pub(crate) fn note(&self, state: TaskState) {
        self.with(|inner| {
            if let Some(since) = inner.paused_since.take() {
                inner.paused += since.elapsed();
            }
            if state == TaskState::AuthRequired {
                inner.paused_since = Some(Instant::now());
            }
        });
    }

    /// How long ago work began, pauses included.
    pub(crate) fn elapsed(&self) -> Duration {
        self.with(|inner| inner.began.elapsed())
    }

    /// Resolves when the agent has worked for this long.
    pub(crate) async fn used_up(&self, max: Duration) {
        loop {
            let (worked, is_paused) = self.with(|inner| (inner.worked(), inner.paused_since.is_some()));
            let left = max.saturating_sub(worked);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(if is_paused { left.max(PAUSE_LOOK) } else { left }).await;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Inner {
    fn worked(&self) -> Duration {
        let now = self.paused_since.unwrap_or_else(Instant::now);
        now.duration_since(self.began).saturating_sub(self.paused)
    }
}
