//! The numbers of tasks and of what was written, so that statistics need no statement. They are counted when the store is opened
//! and from time to time after that; in between, each process adds what it changes itself.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::StoreStats;

use crate::record::{state_from_number, state_number};
use crate::write_stats::WriteStats;

const STATES: usize = TaskState::ALL.len();

#[derive(Default)]
pub(super) struct Totals {
    counts: Mutex<Counts>,
    stats: WriteStats,
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
            Ok(more) => self.stats.queue_depth.fetch_add(more, Relaxed),
            Err(_) => self.stats.queue_depth.fetch_sub(by.unsigned_abs(), Relaxed),
        };
    }

    /// A transaction of so many commits was made.
    pub(super) fn batch(&self, commits: usize) {
        self.stats.batch(commits as u64);
    }

    pub(super) fn written(&self, rows: u64, bytes: u64) {
        WriteStats::add(&self.stats.commits, 1);
        WriteStats::add(&self.stats.rows_written, rows);
        WriteStats::add(&self.stats.bytes_written, bytes);
    }

    pub(super) fn rows(&self, rows: u64) {
        WriteStats::add(&self.stats.rows_written, rows);
    }

    pub(super) fn refused(&self) {
        WriteStats::add(&self.stats.conflicts, 1);
    }

    pub(super) fn failed(&self) {
        WriteStats::add(&self.stats.failures, 1);
    }

    pub(super) fn took(&self, time: Duration) {
        self.stats.took(time);
    }

    /// All but the stored bytes, which are counted in `usage.rs`.
    pub(super) fn stats(&self) -> StoreStats {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let tasks = counts.counted.map(|counted| {
            let mut tasks = [0; STATES];
            for (place, task) in tasks.iter_mut().enumerate() {
                *task = u64::try_from(counted.tasks[place] + counts.since.tasks[place]).unwrap_or(0);
            }
            tasks
        });
        StoreStats { tasks, ..self.stats.read() }
    }
}
