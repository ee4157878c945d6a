//! What is kept of a turn while its agent works: how long it has worked, and the calls that it has made to other agents.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskState;
use tokio::time::Instant;

use crate::state::runs::RunEnd;

/// How long a run has worked. Waiting for an authorization does not count.
pub(crate) struct WorkTime {
    inner: Mutex<Worked>,
}

struct Worked {
    began: Instant,
    /// The sum of the pauses that have ended.
    paused: Duration,
    paused_since: Option<Instant>,
}

/// How often a paused turn is checked, however little time it has left.
const PAUSE_LOOK: Duration = Duration::from_secs(1);

impl WorkTime {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Worked { began: Instant::now(), paused: Duration::ZERO, paused_since: None }) }
    }

    /// Starts the measurement, in the state that the agent has already set.
    pub(crate) fn begin(&self) {
        let now = Instant::now();
        self.with(|inner| {
            let paused_since = inner.paused_since.map(|_| now);
            *inner = Worked { began: now, paused: Duration::ZERO, paused_since };
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
            let (worked, is_paused) = self.with(|inner| (inner.so_far(), inner.paused_since.is_some()));
            let left = max.saturating_sub(worked);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(if is_paused { left.max(PAUSE_LOOK) } else { left }).await;
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Worked) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Worked {
    fn so_far(&self) -> Duration {
        let now = self.paused_since.unwrap_or_else(Instant::now);
        now.duration_since(self.began).saturating_sub(self.paused)
    }
}

/// The calls of one turn in this process.
#[derive(Default)]
pub(super) struct TurnCalls {
    state: Mutex<CallsState>,
}

#[derive(Default)]
pub(super) struct CallsState {
    /// How often this attempt has made the same call.
    pub(super) made: HashMap<String, u32>,
    pub(super) count: usize,
    /// The calls whose answer the run has not got.
    pub(super) open: Vec<String>,
    /// Set when the run has ended.
    pub(super) ended: Option<RunEnd>,
}

impl TurnCalls {
    pub(super) fn lock(&self) -> MutexGuard<'_, CallsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
