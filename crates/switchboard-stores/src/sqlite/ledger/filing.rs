//! Writes chunks of running tasks to the table `recent`, and files them later; see `recent`.

use std::sync::Arc;

use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::store::{Commit, StoreError};

use super::Ledger;
use crate::record::{Encoded, HeadColumns, Want, decode, encode_artifacts, signed};
use crate::sqlite::error::Failure;
use crate::sqlite::fold::Chunks;
use crate::sqlite::meta::write_meta;
use crate::sqlite::recent::{FIRST_RECENT, LAST_RECENT, LastChunk, Undo, has_checkpoint};
use crate::sqlite::rows::{
    LogColumns, LogRow, RECENT_COLUMNS, TaskColumns, log_columns, log_no, task_columns, task_row,
};
use crate::sqlite::step_row::StepRow;

/// A task's chunks are filed when there are between this many and twice as many. The number varies, so that tasks that
/// began together are not all filed at the same time.
const TASK_ROWS_MIN: usize = 32;
/// With more rows than this in all, those of the task with the oldest one are filed.
const ROWS_MAX: usize = 16 * 1024;
/// The same for a table with more rows than this, filed or not.
const TABLE_ROWS_MAX: usize = 32 * 1024;
/// Filed rows are deleted when there are this many of them.
const DELETED_AT_ONCE: i64 = 1024;

impl Ledger<'_> {
    /// Writes a commit that [`is_chunk`] and adds so many bytes to its task. Returns the row of the task as it will be when the commit is filed.
    pub(crate) fn append_chunk(
        &mut self,
        task_no: i64,
        before: &StepRow,
        commit: &Commit,
        encoded: &Encoded,
        bytes: i64,
    ) -> Result<StepRow, Failure> {
        let version = signed(commit.head.version);
        let columns = LogColumns {
            prev_story: self.prev_story(task_no, before, &commit.events)?,
            ..log_columns(task_no, &commit.head, &commit.events, before.chains, commit.at)
        };
        let no = self.recent.last_no + 1;
        let insert = &mut self.statements.insert_recent;
        insert.bind(1, no)?;
        insert.bind(2, columns.log_no)?;
        insert.bind(3, columns.last_seq)?;
        insert.bind(4, columns.visible)?;
        insert.bind(5, columns.prev_story)?;
        insert.bind(6, columns.prev_artifact)?;
        insert.bind(7, columns.at)?;
        insert.bind(8, &*encoded.record)?;
        // The checksum that the commit will have in the log; until then it is valid for this row only.
        insert.bind(9, columns.checksum(encoded.record_hash) ^ no)?;
        insert.execute()?;
        self.count_rows(1, encoded.record.len());
        let rows = self.recent.add(task_no, commit, bytes);
        let chains = before.chains.after(version, &commit.events, commit.folds);
        let below_checkpoint = before.below_checkpoint_after(&commit.events, columns.prev_story, chains);
        let spread = usize::try_from(task_no).unwrap_or(0) % TASK_ROWS_MIN;
        if rows >= TASK_ROWS_MIN + spread {
            // Damage of the task's row is no reason to refuse the chunk, which is in `recent` already.
            self.file_unless_damaged(task_no)?;
        }
        let bytes = before.bytes + bytes;
        Ok(StepRow { version: commit.head.version, chains, below_checkpoint, bytes, ..*before })
    }

    /// Files the chunks of a task, if it has any.
    pub(crate) fn file(&mut self, task_no: i64) -> Result<(), Failure> {
        let Some(unfiled) = self.recent.unfiled.get(&task_no) else { return Ok(()) };
        let (last, bytes) = (unfiled.last.clone(), unfiled.bytes);
        let LastChunk { head, at, checkpoint } = match last {
            Some(last) => last,
            None => self.last_chunk(task_no)?,
        };
        self.file_log(task_no)?;
        let artifacts = encode_artifacts(&head.artifacts);
        self.count_rows(1, artifacts.len());
        let mut rows = self.statements.select_task.query([task_no])?;
        let row = rows.next()?.ok_or_else(|| gone(task_no))?;
        let before = task_columns(row)?;
        let (version, seq) = (signed(head.version), signed(head.seq));
        let columns = TaskColumns {
            head: HeadColumns { version, seq, artifacts: &artifacts, ..before.head },
            story_version: checkpoint.unwrap_or(before.story_version),
            artifact_version: version,
            updated_at: at.as_ms(),
            bytes: before.bytes + bytes,
            ..before
        };
        self.statements.update_filed.execute((
            task_no,
            version,
            seq,
            &*artifacts,
            columns.artifact_version,
            columns.updated_at,
            columns.checksum(),
            columns.bytes,
            columns.story_version,
        ))?;
        Ok(())
    }

    /// Moves the chunks of a task into its log, for a caller that writes the task's row itself.
    pub(crate) fn file_log(&mut self, task_no: i64) -> Result<(), Failure> {
        let Some(unfiled) = self.recent.unfiled.remove(&task_no) else { return Ok(()) };
        let moved = unfiled.rows.iter().try_for_each(|no| match self.statements.file_recent.execute([no])? {
            1 => Ok(()),
            _ => Err(missing(*no)),
        });
        self.count_rows(unfiled.rows.len(), 0);
        self.recent.rows -= unfiled.rows.len();
        self.recent.undo.push(Undo::Filed { task_no, unfiled });
        moved
    }

    /// The task after its chunks, for chunks that an earlier process wrote.
    fn last_chunk(&mut self, task_no: i64) -> Result<LastChunk, Failure> {
        let mut tasks = self.statements.select_task.query([task_no])?;
        let task = tasks.next()?.ok_or_else(|| gone(task_no))?;
        // Chunks are already decided, and the agent does not matter for their effect on the head.
        let mut head = task_row(&task_columns(task)?, &AgentName::default())?.head;
        let (mut at, mut checkpoint) = (0, None);
        let sql = format!("SELECT {RECENT_COLUMNS} FROM recent WHERE recent_no = ?1");
        let mut select = self.connection.prepare_cached(&sql)?;
        for no in self.recent.unfiled.get(&task_no).map(|unfiled| unfiled.rows.as_slice()).unwrap_or_default() {
            let mut rows = select.query([no])?;
            let Some(row) = rows.next()? else { return Err(missing(*no)) };
            let found = LogRow::read(row)?;
            if found.columns.log_no != log_no(task_no, signed(head.version) + 1) {
                let reason = format!("commit {} follows commit {}", found.version(), head.version);
                return Err(Failure(StoreError::Corrupt(reason)));
            }
            let events = decode(found.record, Want::Everything, &Chunks(self.connection))?;
            head.apply_commit(&events);
            at = found.columns.at;
            checkpoint = has_checkpoint(&events).then_some(found.version()).or(checkpoint);
        }
        Ok(LastChunk { head: Arc::new(head), at: Timestamp::from_ms(at), checkpoint })
    }

    /// As [`Ledger::file`]. If stored data is damaged, the task is put into quarantine.
    pub(crate) fn file_or_quarantine(&mut self, task_no: i64) -> Result<(), Failure> {
        if !self.recent.unfiled.contains_key(&task_no) {
            return Ok(());
        }
        match self.in_savepoint(|ledger| ledger.file(task_no))? {
            Ok(()) => Ok(()),
            Err(reason) => {
                self.quarantine_task(task_no, &reason);
                Err(Failure(StoreError::Damaged(reason)))
            }
        }
    }

    /// Files everything, for callers that read many tasks at once. Damaged rows stay where they are.
    pub(crate) fn file_all(&mut self) -> Result<(), Failure> {
        let mut tasks: Vec<i64> = self.recent.unfiled.keys().copied().collect();
        tasks.sort_unstable();
        for task_no in tasks {
            self.file_unless_damaged(task_no)?;
        }
        Ok(())
    }

    /// Keeps the table short: files the oldest rows if there are too many, and deletes rows that earlier batches have
    /// filed.
    pub(crate) fn shorten_recent(&mut self) -> Result<(), Failure> {
        while let Some(&(no, task_no)) = self.recent.order.front() {
            let is_filed = self.recent.unfiled.get(&task_no).is_none_or(|unfiled| unfiled.rows.first() > Some(&no));
            if is_filed {
                self.recent.note_filed(no);
            } else if self.quarantine.has_task(task_no) {
                self.recent.first_damaged.get_or_insert(no);
            } else {
                break;
            }
            self.recent.order.pop_front();
        }
        // One row that waits keeps all that come after it in the table, filed or not.
        let too_many = self.recent.order.len().saturating_sub(TABLE_ROWS_MAX);
        let mut oldest = 0;
        while (self.recent.rows > ROWS_MAX || oldest < too_many)
            && let Some(&(_, task_no)) = self.recent.order.get(oldest)
        {
            self.file_unless_damaged(task_no)?;
            oldest += 1;
        }
        let count: i64 = self.recent.filed.iter().map(|(first, last)| last - first + 1).sum();
        if count >= DELETED_AT_ONCE {
            self.delete_filed()?;
        }
        Ok(())
    }

    fn delete_filed(&mut self) -> Result<(), Failure> {
        let mut delete = self.connection.prepare_cached("DELETE FROM recent WHERE recent_no BETWEEN ?1 AND ?2")?;
        for (first, last) in &self.recent.filed {
            delete.execute([first, last])?;
        }
        self.recent.deleted = self.recent.filed.len();
        let oldest = self.recent.order.front().map(|(no, _)| *no);
        let first = self.recent.first_damaged.or(oldest).unwrap_or(self.recent.last_no + 1);
        write_meta(self.connection, FIRST_RECENT, first)?;
        Ok(())
    }

    /// Notes the number of the last row, before the batch is committed.
    pub(crate) fn note_last_recent(&mut self) -> rusqlite::Result<()> {
        if self.recent.noted_no != self.recent.last_no {
            write_meta(self.connection, LAST_RECENT, self.recent.last_no)?;
            self.recent.noted_no = self.recent.last_no;
        }
        Ok(())
    }

    /// Files everything and empties the table, except for damaged rows.
    pub(crate) fn empty_recent(&mut self) -> Result<(), Failure> {
        if !self.recent.unfiled.is_empty() || !self.unindexed.is_empty() {
            self.begin()?;
            self.file_all()?;
            self.index_all()?;
            self.commit()?;
        }
        if !self.recent.order.is_empty() || !self.recent.filed.is_empty() {
            self.begin()?;
            self.delete_filed()?;
            self.commit()?;
        }
        Ok(())
    }

    /// As [`Ledger::file_or_quarantine`], for one of many tasks; returns whether the task is undamaged.
    pub(crate) fn file_unless_damaged(&mut self, task_no: i64) -> Result<bool, Failure> {
        if !self.recent.unfiled.contains_key(&task_no) {
            return Ok(true);
        }
        if self.quarantine.has_task(task_no) {
            return Ok(false);
        }
        match self.file_or_quarantine(task_no) {
            Ok(()) => Ok(true),
            Err(Failure(StoreError::Damaged(_))) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

fn missing(no: i64) -> Failure {
    Failure(StoreError::Corrupt(format!("row {no} of the newest chunks is missing")))
}

fn gone(task_no: i64) -> Failure {
    Failure(StoreError::Corrupt(format!("task number {task_no} is not there")))
}
