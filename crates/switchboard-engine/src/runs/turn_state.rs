//! What is kept of a turn while its agent works: the writes that are under way to the store, how long it has worked, and the calls that it
//! has made to other agents.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use switchboard_core::model::TaskState;
use tokio::time::Instant;

use super::RunEnd;

/// What makes writes: the turn of an agent.
pub(super) trait Writing: Send + Sync {
    /// Those that are under way.
    fn writes(&self) -> &Writes;
}

/// The writes of one turn that the store has not answered yet. While an agent waits for the store alone, the task that polls
/// its run has nothing else to wait for: the store answers soon, and its answer wakes the run. So the run starts no timers, and
/// its stream sends nothing, for the moment that an ordinary answer takes.
#[derive(Default)]
pub(crate) struct Writes {
    under_way: AtomicU32,
    /// Whether the run is being polled. It looks at `under_way` after that, so it need not be woken.
    is_polling: AtomicBool,
    /// The run, while it waits for the store.
    waiting: Mutex<Option<Waker>>,
}

/// A write that is under way until this is dropped.
pub(crate) struct Write<'a>(&'a Writes);

impl Writes {
    pub(crate) fn begin(&self) -> Write<'_> {
        self.under_way.fetch_add(1, SeqCst);
        Write(self)
    }

    /// Polls the agent.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.is_polling.store(true, SeqCst);
        let polled = poll();
        self.is_polling.store(false, SeqCst);
        polled
    }

    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the store has a write of the agent. If so, the task is woken when it has none any more, also if another task
    /// of the agent made the write.
    pub(crate) fn is_under_way(&self, cx: &Context<'_>) -> bool {
        if self.under_way.load(SeqCst) == 0 {
            return false;
        }
        *self.lock() = Some(cx.waker().clone());
        self.under_way.load(SeqCst) > 0
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, SeqCst) > 1 || self.0.is_polling.load(SeqCst) {
            return;
        }
        // Taken first, so that the lock is free when the run is woken.
        let waiting = self.0.lock().take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::Writes;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_write_of_another_task_wakes_the_run_when_it_is_over() {
        let (writes, woken) = (Writes::default(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        assert!(!writes.is_under_way(&cx));
        let (first, second) = (writes.begin(), writes.begin());
        assert!(writes.is_under_way(&cx));
        drop(first);
        assert_eq!(woken.0.load(Ordering::SeqCst), 0, "the other one is under way");
        drop(second);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(!writes.is_under_way(&cx));
    }

    #[test]
    fn a_write_that_ends_while_the_run_is_polled_wakes_nobody() {
        let (writes, woken) = (Writes::default(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        let write = writes.begin();
        assert!(writes.is_under_way(&cx));
        let polled = writes.poll(|| {
            drop(write);
            Poll::<()>::Pending
        });
        assert!(polled.is_pending() && !writes.is_under_way(&cx));
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    }
}
