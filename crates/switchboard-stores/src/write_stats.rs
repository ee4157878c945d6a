//! What a store has written since it was opened, counted without a lock. The thread that writes counts, and all threads may read.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use switchboard_engine::ports::store::{COMMIT_MICROS_BOUNDS, Statements, StoreStats, batch_place};

#[derive(Default)]
pub(crate) struct WriteStats {
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) failures: AtomicU64,
    batches: AtomicU64,
    batch_sizes: [AtomicU64; 9],
    batch_requests: AtomicU64,
    pub(crate) rows_written: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) queue_depth: AtomicU64,
    commit_seconds: [AtomicU64; 10],
    commit_micros_sum: AtomicU64,
}

impl WriteStats {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Relaxed);
    }

    /// A transaction of so many requests was made durable.
    pub(crate) fn batch(&self, requests: u64) {
        Self::add(&self.batches, 1);
        Self::add(&self.batch_sizes[batch_place(requests)], 1);
        Self::add(&self.batch_requests, requests);
    }

    /// A commit was answered after this time.
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = COMMIT_MICROS_BOUNDS.partition_point(|bound| *bound < micros);
        Self::add(&self.commit_seconds[bucket], 1);
        Self::add(&self.commit_micros_sum, micros);
    }

    /// The statistics, without those of stored tasks.
    pub(crate) fn read(&self) -> StoreStats {
        StoreStats {
            commits: self.commits.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            failures: self.failures.load(Relaxed),
            batches: self.batches.load(Relaxed),
            batch_sizes: std::array::from_fn(|place| self.batch_sizes[place].load(Relaxed)),
            batch_requests: self.batch_requests.load(Relaxed),
            rows_written: self.rows_written.load(Relaxed),
            bytes_written: self.bytes_written.load(Relaxed),
            queue_depth: self.queue_depth.load(Relaxed),
            commit_seconds: std::array::from_fn(|bucket| self.commit_seconds[bucket].load(Relaxed)),
            commit_micros_sum: self.commit_micros_sum.load(Relaxed),
            tasks: None,
            stored_bytes: None,
            statements: Statements::default(),
        }
    }
}
