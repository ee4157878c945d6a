//! The small adapters: a manual clock, counting ids, and hints between engines of one process.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use switchboard_core::model::Timestamp;

use crate::id_hash::IdHash;
use crate::ports::{Clock, Hint, HintSink, Hints, Ids};

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ms: AtomicI64,
}

impl ManualClock {
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { now_ms: AtomicI64::new(now.as_ms()) }
    }

    /// Sets the clock to a moment, which may be earlier than its present time.
    pub fn set(&self, now: Timestamp) {
        self.now_ms.store(now.as_ms(), Ordering::SeqCst);
    }

    /// Moves the clock by this many milliseconds, backwards if negative.
    pub fn advance_ms(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_ms.load(Ordering::SeqCst))
    }
}

/// Ids that look like UUIDs and count up from one, and numbers that are the same in every run.
#[derive(Debug, Default)]
pub struct CountingIds {
    last: AtomicU64,
    drawn: AtomicU64,
}

impl Ids for CountingIds {
    fn uuid(&self, _: Timestamp) -> Arc<str> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        format!("00000000-0000-4000-8000-{number:012x}").into()
    }

    fn any(&self) -> u64 {
        IdHash::default().hash_one(self.drawn.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Hints between engines of one process that share a store. Each engine has its own, from [`LocalHints::for_another`].
#[derive(Clone, Default)]
pub struct LocalHints {
    number: usize,
    all: Arc<AllLocal>,
}

#[derive(Default)]
struct AllLocal {
    last: AtomicUsize,
    sinks: Mutex<Vec<(usize, Arc<dyn HintSink>)>>,
}

impl LocalHints {
    /// The hints of one more engine.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self { number: self.all.last.fetch_add(1, Ordering::Relaxed) + 1, all: self.all.clone() }
    }
}

impl Hints for LocalHints {
    fn notify(&self, hint: Hint<'_>) {
        let sinks = self.all.sinks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        sinks.iter().filter(|(number, _)| *number != self.number).for_each(|(_, sink)| sink.hint(hint));
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.all.sinks.lock().unwrap_or_else(PoisonError::into_inner).push((self.number, sink));
    }
}
