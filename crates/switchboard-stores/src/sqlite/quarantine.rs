//! Rows that cannot be read. Each affects only its own task or webhook: it is logged once, skipped from then on, and
//! shown by the readiness check. The list is kept in memory only, so the next process tries a repaired row again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension, Row};
use switchboard_core::model::TaskId;
use switchboard_engine::ports::store::StoreError;
use switchboard_engine::ports::upkeep::{DamagedRow, NAMED_MAX, Quarantine};

use super::error::Failure;

/// How many rows are remembered. Further damaged rows are tried and logged again each time.
const ROWS_MAX: usize = 100_000;

#[derive(Default)]
pub(super) struct Quarantined {
    /// How many rows there are in all, so that a store without any need not take the lock.
    rows: AtomicU64,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    tasks: BTreeMap<i64, TaskId>,
    webhooks: BTreeMap<i64, DamagedRow>,
}

/// The task that a read is about.
pub(super) enum TaskRef {
    Id(TaskId),
    No(i64),
}

impl Quarantined {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.rows.load(Relaxed) == 0
    }

    pub(super) fn has_task(&self, task_no: i64) -> bool {
        !self.is_empty() && self.lock().tasks.contains_key(&task_no)
    }

    pub(super) fn has_webhook(&self, push_no: i64) -> bool {
        !self.is_empty() && self.lock().webhooks.contains_key(&push_no)
    }

    /// How many more rows a query must return, so that skipped rows do not use up its limit.
    pub(super) fn tasks(&self) -> usize {
        if self.is_empty() { 0 } else { self.lock().tasks.len() }
    }

    pub(super) fn webhooks(&self) -> usize {
        if self.is_empty() { 0 } else { self.lock().webhooks.len() }
    }

    /// Handles a failed read of one task. If stored data is damaged, the task is put into quarantine.
    pub(super) fn quarantine_if_damaged(&self, connection: &Connection, of: &TaskRef, failure: Failure) -> Failure {
        let Failure(StoreError::Corrupt(reason)) = failure else { return failure };
        let found = match of {
            TaskRef::Id(id) => connection
                .query_row("SELECT task_no FROM task WHERE id = ?1", [id.as_str()], |row| row.get(0))
                .optional()
                .map(|task_no| task_no.map(|task_no| (task_no, id.clone()))),
            TaskRef::No(task_no) => connection
                .query_row("SELECT id FROM task WHERE task_no = ?1", [task_no], |row| row.get::<_, String>(0))
                .optional()
                .map(|id| id.map(|id| (*task_no, TaskId::from(id)))),
        };
        match found {
            Ok(Some((task_no, id))) => Failure(self.put_task(task_no, id, &reason)),
            // Even the task's id cannot be read, so the file itself is damaged.
            Ok(None) | Err(_) => Failure(StoreError::Corrupt(reason)),
        }
    }

    /// Puts a task into quarantine, and returns the error for its reader.
    pub(super) fn put_task(&self, task_no: i64, id: TaskId, reason: &str) -> StoreError {
        let damaged = StoreError::Damaged(format!("task {id}: {reason}"));
        let mut numbers = self.lock();
        if numbers.tasks.len() < ROWS_MAX && numbers.tasks.insert(task_no, id.clone()).is_none() {
            self.rows.fetch_add(1, Relaxed);
            tracing::error!(
                task = %id, reason,
                "a task is damaged and is passed over from now on; `switchboard db verify` says more"
            );
        }
        damaged
    }

    /// The same for a task that is given by its number.
    pub(super) fn put_task_no(&self, connection: &Connection, task_no: i64, reason: &str) {
        let id = connection.query_row("SELECT id FROM task WHERE task_no = ?1", [task_no], |row| row.get(0));
        let id = id.unwrap_or_else(|_| format!("number {task_no}"));
        self.put_task(task_no, id.into(), reason);
    }

    /// Puts a webhook into quarantine whose row starts with the columns of its config.
    pub(super) fn put_webhook(&self, push_no: i64, task_id: TaskId, config_id: &str, reason: &str) {
        let row = DamagedRow::Webhook { task_id: task_id.clone(), config_id: config_id.into() };
        let mut numbers = self.lock();
        if numbers.webhooks.len() < ROWS_MAX && numbers.webhooks.insert(push_no, row).is_none() {
            self.rows.fetch_add(1, Relaxed);
            tracing::error!(
                task = %task_id, config = config_id, reason,
                "a webhook is damaged, or of a newer build, and is passed over from now on"
            );
        }
    }

    pub(super) fn report(&self) -> Quarantine {
        if self.is_empty() {
            return Quarantine::default();
        }
        let numbers = self.lock();
        let tasks = numbers.tasks.values().map(|id| DamagedRow::Task { id: id.clone() });
        let named = tasks.chain(numbers.webhooks.values().cloned()).take(NAMED_MAX).collect();
        Quarantine { rows: self.rows.load(Relaxed), named }
    }
}

impl Failure {
    /// Logs damage that affects only the callers that read it.
    pub(super) fn into_damage(self) -> Self {
        match self.0 {
            StoreError::Corrupt(reason) => Self(StoreError::Damaged(reason)),
            other @ (StoreError::Damaged(_) | StoreError::Unavailable(_) | StoreError::Pruned) => Self(other),
        }
    }

    /// The description of the damage, if the failure is due to damaged data.
    pub(super) fn damage(&self) -> Option<&str> {
        match &self.0 {
            StoreError::Corrupt(reason) | StoreError::Damaged(reason) => Some(reason),
            StoreError::Unavailable(_) | StoreError::Pruned => None,
        }
    }
}

/// A text column of a row whose other columns may be damaged.
pub(super) fn text_of(row: &Row<'_>, column: usize) -> String {
    row.get_ref(column).ok().and_then(|value| value.as_str().ok()).unwrap_or("?").to_owned()
}
