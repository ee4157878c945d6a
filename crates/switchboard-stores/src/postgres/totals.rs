//! The numbers of tasks and of what was written, so that statistics need no statement. They are counted when the store is opened
//! and from time to time after that; in between, each process adds what it changes itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::{COMMIT_MICROS_BOUNDS, StoreStats, batch_place};

use crate::record::{state_from_number, state_number};

const STATES: usize = TaskState::ALL.len();

#[derive(Default)]
pub(super) struct Totals {
    counts: Mutex<Counts>,
    commits: AtomicU64,
    conflicts: AtomicU64,
    failures: AtomicU64,
    batches: AtomicU64,
    batch_sizes: [AtomicU64; 9],
    batch_requests: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    waiting: AtomicU64,
    micros: [AtomicU64; 10],
    micros_sum: AtomicU64,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    /// What was counted, if it was.
    counted: Option<Counted>,
    /// What this process has changed since the last count began.
    since: Counted,
}

/// Tasks by state, in the order of `TaskState::ALL`, and all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) tasks: [i64; STATES],
    pub(super) records: i64,
}

/// The state of the counts when a count began.
#[derive(Clone, Copy)]
pub(super) struct CountBegun(Counted);

pub(super) fn place_of(number: i64) -> Option<usize> {
    let state = state_from_number(number).ok()?;
    TaskState::ALL.iter().position(|known| state_number(*known) == state_number(state))
}

impl Totals {
    /// Notes that a task is listed under another state, or that there is a record more or less.
    pub(super) fn changed(&self, from: Option<i64>, to: Option<i64>, records: i64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = from.and_then(place_of) {
            counts.since.tasks[place] -= 1;
        }
        if let Some(place) = to.and_then(place_of) {
            counts.since.tasks[place] += 1;
        }
        counts.since.records += records;
    }

    pub(super) fn count_begins(&self) -> CountBegun {
        CountBegun(self.counts.lock().unwrap_or_else(PoisonError::into_inner).since)
    }

    /// Sets what was counted. What this process changed while it was counted may be in it or not, and is left out.
    pub(super) fn counted(&self, CountBegun(before): CountBegun, counted: Counted) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.counted = Some(counted);
        for (since, before) in counts.since.tasks.iter_mut().zip(before.tasks) {
            *since -= before;
        }
        counts.since.records -= before.records;
    }

    /// All records, if they were counted.
    pub(super) fn records(&self) -> Option<u64> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.counted.map(|counted| u64::try_from(counted.records + counts.since.records).unwrap_or(0))
    }

    pub(super) fn queued(&self, by: i64) {
        match u64::try_from(by) {
            Ok(more) => self.waiting.fetch_add(more, Relaxed),
            Err(_) => self.waiting.fetch_sub(by.unsigned_abs(), Relaxed),
        };
    }

    /// A transaction of so many commits was made.
    pub(super) fn batch(&self, commits: usize) {
        self.batches.fetch_add(1, Relaxed);
        self.batch_sizes[batch_place(commits as u64)].fetch_add(1, Relaxed);
        self.batch_requests.fetch_add(commits as u64, Relaxed);
    }

    pub(super) fn written(&self, rows: u64, bytes: u64) {
        self.commits.fetch_add(1, Relaxed);
        self.rows.fetch_add(rows, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn rows(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
    }

    pub(super) fn refused(&self) {
        self.conflicts.fetch_add(1, Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    pub(super) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let place = COMMIT_MICROS_BOUNDS.iter().position(|bound| micros < *bound).unwrap_or(COMMIT_MICROS_BOUNDS.len());
        self.micros[place].fetch_add(1, Relaxed);
        self.micros_sum.fetch_add(micros, Relaxed);
    }

    pub(super) fn stats(&self) -> StoreStats {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = counts.counted.map(|counted| {
            let mut tasks = [0; STATES];
            for (place, task) in tasks.iter_mut().enumerate() {
                *task = u64::try_from(counted.tasks[place] + counts.since.tasks[place]).unwrap_or(0);
            }
            tasks
        });
        StoreStats {
            commits: self.commits.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            failures: self.failures.load(Relaxed),
            batches: self.batches.load(Relaxed),
            batch_sizes: std::array::from_fn(|place| self.batch_sizes[place].load(Relaxed)),
            batch_requests: self.batch_requests.load(Relaxed),
            rows_written: self.rows.load(Relaxed),
            bytes_written: self.bytes.load(Relaxed),
            queue_depth: self.waiting.load(Relaxed),
            commit_seconds: std::array::from_fn(|place| self.micros[place].load(Relaxed)),
            commit_micros_sum: self.micros_sum.load(Relaxed),
            tasks,
            // They are counted in `usage.rs`.
            stored_bytes: None,
        }
    }
}
