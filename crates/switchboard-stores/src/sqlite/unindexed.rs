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

use rusqlite::Connection;

use super::rows::{TASK_COLUMNS, TaskColumns, UNINDEXED_RUN, UNINDEXED_TASK, phase_of, task_columns};
use crate::record::HeadColumns;

/// The oldest task that is not indexed is at most this many numbers behind the newest task when a batch begins.
pub(super) const BEHIND_MAX: i64 = 1024;

/// The condition that rows which are not indexed meet: [`BEHIND_MAX`], and as many as one batch can add.
pub(super) const AMONG_THE_NEWEST: &str = "task_no > (SELECT coalesce(max(task_no), 0) FROM task) - 2048";

/// The tasks that are not indexed.
#[derive(Default)]
pub(super) struct Unindexed {
    pub(super) numbers: BTreeSet<i64>,
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
pub(super) fn indexed(columns: TaskColumns<'_>) -> TaskColumns<'_> {
    let (phase, running) = (phase_of(&columns.head), i64::from(columns.head.running != 0));
    TaskColumns { head: HeadColumns { phase, running, ..columns.head }, ..columns }
}

pub(super) const INDEX: &str = "UPDATE task SET phase = ?2, running = ?3, checksum = ?4 WHERE task_no = ?1";

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
