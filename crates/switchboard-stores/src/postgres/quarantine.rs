//! The rows that could not be read since the store was opened.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use switchboard_core::model::{ConfigId, TaskId};
use switchboard_engine::ports::store::StoreError;
use switchboard_engine::ports::upkeep::NAMED_MAX;
use switchboard_engine::ports::{DamagedRow, Quarantine};

/// How many damaged rows are told apart; more are not counted again.
const DAMAGED_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Quarantined {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashSet<String>,
    listed: Quarantine,
}

impl Quarantined {
    /// Notes a task that cannot be read, and turns the error into the one for a single record. Other errors are passed on.
    pub(super) fn task(&self, id: TaskId, error: StoreError) -> StoreError {
        match error {
            StoreError::Corrupt(reason) => {
                self.add(DamagedRow::Task { id }, &reason);
                StoreError::Damaged(reason)
            }
            other => other,
        }
    }

    pub(super) fn webhook(&self, task_id: TaskId, config_id: ConfigId, error: StoreError) {
        if let StoreError::Corrupt(reason) = error {
            self.add(DamagedRow::Webhook { task_id, config_id }, &reason);
        }
    }

    fn add(&self, row: DamagedRow, reason: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.known.len() >= DAMAGED_MAX || !state.known.insert(row.to_string()) {
            return;
        }
        tracing::error!(row = %row, reason, "stored row cannot be read; it is skipped");
        state.listed.rows += 1;
        if state.listed.named.len() < NAMED_MAX {
            state.listed.named.push(row);
        }
    }

    pub(super) fn list(&self) -> Quarantine {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).listed.clone()
    }
}
