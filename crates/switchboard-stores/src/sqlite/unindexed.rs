//! Tasks at work that the indexes of lists and runs do not have yet.
//!
//! Most tasks end a moment after they were opened. The indexes by state, by context and by run would get an entry for
//! the first state and lose it again at once. So a task whose run begins in the commit that opens it is written with
//! values that those indexes leave out, and enters them with its first commit in which it is no longer at work. It also
//! enters them when the writer has nothing else to do, when many newer tasks were opened, and when the store is closed.
//!
//! Everything that looks a task up by its id or number finds it as always. Lists read these tasks by their numbers,
//! because they are among the newest. A task that a dead process has left so is put into the indexes when the file is
//! opened.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};
use switchboard_core::lifecycle::Phase;

use super::error::Failure;
use super::ledger::Ledger;
use super::rows::{TASK_COLUMNS, TaskColumns, task_columns};
use crate::record::{HeadColumns, phase_number};

/// In the column `phase`: a task, as 1 is, that the indexes of lists do not have.
pub(super) const UNINDEXED_TASK: i64 = 3;
/// In the column `running`: a run at work, as 1 is, that the index of runs does not have.
pub(super) const UNINDEXED_RUN: i64 = 2;

/// The oldest task that is not indexed is at most this many numbers behind the newest task when a batch begins.
const BEHIND_MAX: i64 = 1024;

/// The condition that rows which are not indexed meet: [`BEHIND_MAX`], and as many as one batch can add.
pub(super) const AMONG_THE_NEWEST: &str = "task_no > (SELECT coalesce(max(task_no), 0) FROM task) - 2048";

/// The tasks that are not indexed.
#[derive(Default)]
pub(super) struct Unindexed {
    numbers: BTreeSet<i64>,
    /// What the batch added or removed, so that it can be undone.
    undo: Vec<(i64, bool)>,
}

impl Unindexed {
    pub(super) fn set(&mut self, task_no: i64, is_unindexed: bool) {
        let changed = if is_unindexed { self.numbers.insert(task_no) } else { self.numbers.remove(&task_no) };
        if changed {
            self.undo.push((task_no, is_unindexed));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Called when the batch is durable.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// The position in the batch, for [`Unindexed::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Undoes what the batch has done since this mark.
    pub(super) fn undo_to(&mut self, mark: usize) {
        for (task_no, was_added) in self.undo.split_off(mark.min(self.undo.len())).into_iter().rev() {
            if was_added {
                self.numbers.remove(&task_no);
            } else {
                self.numbers.insert(task_no);
            }
        }
    }
}

/// A row as it is when the indexes have it.
fn indexed(columns: TaskColumns<'_>) -> TaskColumns<'_> {
    let (phase, running) = (phase_of(&columns.head), i64::from(columns.head.running != 0));
    TaskColumns { head: HeadColumns { phase, running, ..columns.head }, ..columns }
}

/// The number of the phase, whether the task is indexed or not.
pub(super) fn phase_of(head: &HeadColumns<'_>) -> i64 {
    if head.phase == UNINDEXED_TASK { phase_number(Phase::Live) } else { head.phase }
}

const INDEX: &str = "UPDATE task SET phase = ?2, running = ?3, checksum = ?4 WHERE task_no = ?1";

impl Ledger<'_> {
    /// Puts a task into the indexes, if it is not there.
    pub(super) fn index(&mut self, task_no: i64) -> Result<(), Failure> {
        if !self.unindexed.numbers.contains(&task_no) {
            return Ok(());
        }
        self.steps.remove(&task_no);
        let mut rows = self.statements.select_task.query([task_no])?;
        if let Some(row) = rows.next()? {
            let after = indexed(task_columns(row)?);
            let values = params![task_no, after.head.phase, after.head.running, after.checksum()];
            self.connection.prepare_cached(INDEX)?.execute(values)?;
        }
        drop(rows);
        self.unindexed.set(task_no, false);
        self.count_rows(1, 0);
        Ok(())
    }

    /// As [`Ledger::index`]. A task that is damaged is put into quarantine, and the next process tries it again.
    fn index_or_quarantine(&mut self, task_no: i64) -> Result<(), Failure> {
        if let Err(reason) = self.in_savepoint(|ledger| ledger.index(task_no))? {
            self.quarantine_task(task_no, &reason);
            self.unindexed.set(task_no, false);
        }
        Ok(())
    }

    pub(super) fn index_all(&mut self) -> Result<(), Failure> {
        while let Some(&task_no) = self.unindexed.numbers.first() {
            self.index_or_quarantine(task_no)?;
        }
        Ok(())
    }

    /// Puts tasks into the indexes that are no longer among the newest.
    pub(super) fn index_old(&mut self) -> Result<(), Failure> {
        while let Some(&task_no) = self.unindexed.numbers.first()
            && task_no < self.last_task_no - BEHIND_MAX
        {
            self.index_or_quarantine(task_no)?;
        }
        Ok(())
    }
}

/// Puts the tasks that a dead process has left into the indexes. A damaged row keeps its checksum, so it stays damaged and
/// is put into quarantine when its run is claimed.
pub(super) fn index_leftovers(connection: &Connection) -> rusqlite::Result<()> {
    let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE running = {UNINDEXED_RUN} AND {AMONG_THE_NEWEST}");
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match task_columns(row) {
            Ok(columns) => {
                let after = indexed(columns);
                found.push((after.task_no, Some((after.head.phase, after.head.running, after.checksum()))));
            }
            Err(_) => found.push((row.get(0)?, None)),
        }
    }
    let mut index = connection.prepare(INDEX)?;
    let index_damaged =
        format!("UPDATE task SET phase = iif(phase = {UNINDEXED_TASK}, 1, phase), running = 1 WHERE task_no = ?1");
    let mut index_damaged = connection.prepare(&index_damaged)?;
    for (task_no, after) in found {
        match after {
            Some((phase, running, checksum)) => index.execute([task_no, phase, running, checksum])?,
            None => index_damaged.execute([task_no])?,
        };
    }
    Ok(())
}
