//! The numbers of tasks, so that a list need not count a million rows for its total. The first query counts, and after
//! that the writer updates the counts with every change.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use switchboard_core::model::TaskState;

use crate::record::state_number;

pub(super) type ByState = [u64; TaskState::ALL.len()];

/// How many scopes have their tasks counted. With more scopes, all counts are dropped and made again.
const SCOPES_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Totals {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listed: HashMap<i64, ByState>,
    records: Option<i64>,
    /// The number of listed tasks when the file was opened, and the change since.
    at_open: Option<ByState>,
    since_open: [i64; TaskState::ALL.len()],
    /// Incremented with every batch of changes, so that a count from before a batch is not stored after it.
    batch: u64,
    /// Whether a batch is being made durable: readers may see its changes, and the counts do not have them yet.
    is_changing: bool,
}

/// The state of the counts when a reader began to count. None if what it counts must not be stored.
#[derive(Clone, Copy)]
pub(super) struct CountGeneration(Option<u64>);

/// What one commit or removal does to the counts.
#[derive(Clone, Copy)]
pub(super) struct CountChange {
    pub(super) scope_no: i64,
    /// The state the task was listed under, and is listed under now.
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
    /// The change in the number of records.
    pub(super) records: i64,
}

impl Totals {
    /// Sets how many tasks the file held when it was opened.
    pub(super) fn counted_all(&self, counts: ByState) {
        self.lock().at_open = Some(counts);
    }

    /// Every listed task, by state; none while they are being counted.
    pub(super) fn all(&self) -> Option<ByState> {
        let state = self.lock();
        let at_open = state.at_open?;
        Some(std::array::from_fn(|place| at_open[place].saturating_add_signed(state.since_open[place])))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn generation(&self) -> CountGeneration {
        let state = self.lock();
        CountGeneration((!state.is_changing).then_some(state.batch))
    }

    /// Called before a batch with changes is made durable. The end is [`Totals::update`] or [`Totals::unchanged`].
    pub(super) fn begin_change(&self) {
        let mut state = self.lock();
        state.batch += 1;
        state.is_changing = true;
    }

    /// Called when a batch was not made durable.
    pub(super) fn unchanged(&self) {
        self.lock().is_changing = false;
    }

    /// The listed tasks of a scope, if they are counted.
    pub(super) fn listed(&self, scope_no: i64) -> Option<ByState> {
        self.lock().listed.get(&scope_no).copied()
    }

    pub(super) fn counted_listed(&self, generation: CountGeneration, scope_no: i64, counts: ByState) {
        let mut state = self.lock();
        if generation.0 == Some(state.batch) {
            if state.listed.len() >= SCOPES_MAX {
                state.listed.clear();
            }
            state.listed.insert(scope_no, counts);
        }
    }

    /// All records, tasks or not, if they are counted.
    pub(super) fn records(&self) -> Option<i64> {
        self.lock().records
    }

    pub(super) fn counted_records(&self, generation: CountGeneration, count: i64) {
        let mut state = self.lock();
        if generation.0 == Some(state.batch) {
            state.records = Some(count);
        }
    }

    /// Applies a durable batch.
    pub(super) fn update(&self, count_changes: &[CountChange]) {
        let mut state = self.lock();
        state.is_changing = false;
        for moved in count_changes {
            if let Some(records) = &mut state.records {
                *records += moved.records;
            }
            if let Some(from) = moved.from.and_then(|number| state.since_open.get_mut(place(number))) {
                *from -= 1;
            }
            if let Some(to) = moved.to.and_then(|number| state.since_open.get_mut(place(number))) {
                *to += 1;
            }
            if let Some(counts) = state.listed.get_mut(&moved.scope_no) {
                if let Some(from) = moved.from.and_then(|number| counts.get_mut(place(number))) {
                    *from = from.saturating_sub(1);
                }
                if let Some(to) = moved.to.and_then(|number| counts.get_mut(place(number))) {
                    *to += 1;
                }
            }
        }
    }
}

/// The index of a state's count; states are numbered from one, without gaps.
pub(super) fn place(number: i64) -> usize {
    usize::try_from(number - 1).unwrap_or(usize::MAX)
}

pub(super) fn place_of(state: TaskState) -> usize {
    place(state_number(state))
}
