//! Puts tasks at work into the indexes, see `unindexed`.

use rusqlite::params;

use super::Ledger;
use crate::sqlite::error::Failure;
use crate::sqlite::rows::task_columns;
use crate::sqlite::unindexed::{BEHIND_MAX, INDEX, indexed};

impl Ledger<'_> {
    /// Puts a task into the indexes, if it is not there.
    pub(crate) fn index(&mut self, task_no: i64) -> Result<(), Failure> {
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

    pub(crate) fn index_all(&mut self) -> Result<(), Failure> {
        while let Some(&task_no) = self.unindexed.numbers.first() {
            self.index_or_quarantine(task_no)?;
        }
        Ok(())
    }

    /// Puts tasks into the indexes that are no longer among the newest.
    pub(crate) fn index_old(&mut self) -> Result<(), Failure> {
        while let Some(&task_no) = self.unindexed.numbers.first()
            && task_no < self.last_task_no - BEHIND_MAX
        {
            self.index_or_quarantine(task_no)?;
        }
        Ok(())
    }
}
