//! Counters that the writer updates and all threads may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use switchboard_engine::ports::store::{COMMIT_MICROS_BOUNDS, StoreStats};

#[derive(Default)]
pub(super) struct Stats {
    pub(super) commits: AtomicU64,
    pub(super) conflicts: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) rows_written: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) queue_depth: AtomicU64,
    commit_seconds: [AtomicU64; 10],
    commit_micros_sum: AtomicU64,
}

impl Stats {
    pub(super) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Relaxed);
    }

    pub(super) fn committed(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = COMMIT_MICROS_BOUNDS.partition_point(|bound| *bound < micros);
        Self::add(&self.commits, 1);
        Self::add(&self.commit_seconds[bucket], 1);
        Self::add(&self.commit_micros_sum, micros);
    }

    pub(super) fn read(&self) -> StoreStats {
        StoreStats {
            commits: self.commits.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            failures: self.failures.load(Relaxed),
            batches: self.batches.load(Relaxed),
            rows_written: self.rows_written.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            queue_depth: self.queue_depth.load(Relaxed),
            commit_seconds: std::array::from_fn(|bucket| self.commit_seconds[bucket].load(Relaxed)),
            commit_micros_sum: self.commit_micros_sum.load(Relaxed),
            tasks: Default::default(),
        }
    }
}
