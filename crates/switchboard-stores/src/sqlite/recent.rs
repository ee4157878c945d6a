//! Chunks of running tasks that wait to be moved into the log.
//!
//! A commit that only writes to artifacts, with or without a checkpoint, is one row of the table `recent`, to which rows are only appended. A page
//! of it holds the chunks of many tasks, so a batch of a hundred such commits writes a few pages. In `log`, where the
//! commits of a task are adjacent, the same batch would write a hundred pages of log and as many rows of `task`. Later
//! the chunks of a task are *filed*: moved into `log` all at once, and the task's row is updated.
//!
//! Until then the row of the task is out of date. So the chunks are filed before anything else is done with the task:
//! before a commit of another kind, and before the file is read for it. They are also filed when there are many of
//! them, when the writer has nothing to do, and when the store is closed. Rows that a dead process has left are found
//! when the file is opened, and filed in the same way.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::{AgentName, TaskId, Timestamp};
use switchboard_engine::id_hash::{IdHash, SeededHash};
use switchboard_engine::ports::store::{Commit, LeaseChange, StoreError};

use super::commit::StepRow;
use super::error::Failure;
use super::fold::Chunks;
use super::ledger::{Ledger, read_meta, write_meta};
use super::quarantine::TaskRef;
use super::rows::{
    LogColumns, LogRow, RECENT_COLUMNS, TaskColumns, log_columns, log_no, task_columns, task_row, version_of,
};
use super::schema::VERSION_BITS;
use super::usage::bytes_of_row;
use crate::record::{Encoded, HeadColumns, Want, decode, encode_artifacts, signed};

/// A task's chunks are filed when there are between this many and twice as many. The number varies, so that tasks that
/// began together are not all filed at the same time.
const TASK_ROWS_MIN: usize = 32;
/// With more rows than this in all, those of the task with the oldest one are filed.
const ROWS_MAX: usize = 16 * 1024;
/// The same for a table with more rows than this, filed or not.
const TABLE_ROWS_MAX: usize = 32 * 1024;
/// Filed rows are deleted when there are this many of them.
const DELETED_AT_ONCE: i64 = 1024;

/// The numbers of the first and the last row of `recent`, in `meta`: so that a lost row is noticed.
pub(super) const FIRST_RECENT: &str = "first_recent";
pub(super) const LAST_RECENT: &str = "last_recent";

/// What the writer knows about the rows in `recent`.
pub(super) struct Recent {
    unfiled: HashMap<i64, Unfiled, IdHash>,
    /// The number and the task of every row that is not known to be filed, oldest first.
    order: VecDeque<(i64, i64)>,
    last_no: i64,
    /// How many rows are not filed.
    rows: usize,
    /// Rows that are filed and still there, as ranges of their numbers.
    filed: Vec<(i64, i64)>,
    /// How many of these ranges this batch has deleted.
    deleted: usize,
    /// The first row of each damaged task, of which no row was filed.
    first_damaged: Option<i64>,
    /// The number of the last row according to `meta`.
    noted_no: i64,
    undo: Vec<Undo>,
    shared: Arc<UnfiledTasks>,
}

/// The rows of one task that are not filed.
struct Unfiled {
    id: TaskId,
    /// Their numbers, oldest first.
    rows: Vec<i64>,
    /// What they add to the bytes of the task.
    bytes: i64,
    /// None if an earlier process wrote them.
    last: Option<LastChunk>,
}

/// The task after the last of its rows.
#[derive(Clone)]
struct LastChunk {
    head: Arc<Head>,
    at: Timestamp,
    /// The newest of the commits that has a checkpoint.
    checkpoint: Option<i64>,
}

/// What a batch did, so that it can be undone.
enum Undo {
    Added { task_no: i64, bytes: i64, last: Option<LastChunk> },
    Filed { task_no: i64, unfiled: Unfiled },
}

impl Recent {
    /// Finds what an earlier process has left.
    pub(super) fn read(connection: &Connection, shared: Arc<UnfiledTasks>) -> rusqlite::Result<Self> {
        let mut recent = Self {
            unfiled: HashMap::default(),
            order: VecDeque::new(),
            last_no: 0,
            rows: 0,
            filed: Vec::new(),
            deleted: 0,
            first_damaged: None,
            noted_no: read_meta(connection, LAST_RECENT)?.unwrap_or(0),
            undo: Vec::new(),
            shared,
        };
        let mut select = connection.prepare(
            "SELECT recent_no, recent.log_no, task.version, task.id, octet_length(recent.record)
               FROM recent LEFT JOIN task ON task.task_no = (recent.log_no >> ?1) ORDER BY recent_no",
        )?;
        let mut rows = select.query([VERSION_BITS])?;
        while let Some(row) = rows.next()? {
            let (no, of): (i64, i64) = (row.get(0)?, row.get(1)?);
            let (task_no, version): (i64, Option<i64>) = (of >> VERSION_BITS, row.get(2)?);
            recent.last_no = no;
            recent.order.push_back((no, task_no));
            // Otherwise the row was filed, and the process ended before it was deleted.
            if version.is_some_and(|version| version_of(of) > version) {
                // An id that is damaged must not keep the file from being opened: it costs its own task, later.
                let id = String::from_utf8_lossy(row.get_ref(3)?.as_bytes_or_null()?.unwrap_or_default()).into_owned();
                let begin = || Unfiled { id: TaskId::from(id), rows: Vec::new(), bytes: 0, last: None };
                let unfiled = recent.unfiled.entry(task_no).or_insert_with(begin);
                unfiled.rows.push(no);
                unfiled.bytes += bytes_of_row(row.get(4)?, false);
                recent.rows += 1;
            }
        }
        recent.last_no = recent.last_no.max(recent.noted_no);
        for (task_no, unfiled) in &recent.unfiled {
            recent.shared.insert(*task_no, &unfiled.id);
        }
        Ok(recent)
    }

    fn note_filed(&mut self, no: i64) {
        match self.filed.last_mut() {
            Some((_, last)) if *last + 1 == no => *last = no,
            _ => self.filed.push((no, no)),
        }
    }

    /// Notes a row that was just written, and returns how many its task has.
    fn add(&mut self, task_no: i64, commit: &Commit, bytes: i64) -> usize {
        let head = &commit.head;
        self.last_no += 1;
        self.order.push_back((self.last_no, task_no));
        self.rows += 1;
        let begin = || Unfiled { id: head.id.clone(), rows: Vec::new(), bytes: 0, last: None };
        let unfiled = self.unfiled.entry(task_no).or_insert_with(begin);
        unfiled.rows.push(self.last_no);
        unfiled.bytes += bytes;
        let earlier = unfiled.last.as_ref().and_then(|last| last.checkpoint);
        let checkpoint = if has_checkpoint(&commit.events) { Some(signed(head.version)) } else { earlier };
        let last = unfiled.last.replace(LastChunk { head: head.clone(), at: commit.at, checkpoint });
        self.undo.push(Undo::Added { task_no, bytes, last });
        unfiled.rows.len()
    }

    /// Called when the batch is durable.
    pub(super) fn keep(&mut self) {
        self.filed.drain(..std::mem::take(&mut self.deleted));
        for done in self.undo.drain(..) {
            let (Undo::Added { task_no, .. } | Undo::Filed { task_no, .. }) = done;
            match (self.unfiled.get(&task_no), done) {
                (Some(unfiled), Undo::Added { last: None, .. } | Undo::Filed { .. }) => {
                    self.shared.insert(task_no, &unfiled.id);
                }
                (None, Undo::Filed { unfiled, .. }) => self.shared.remove(task_no, &unfiled.id),
                (_, Undo::Added { .. }) => {}
            }
        }
    }

    /// The position in the batch, for [`Recent::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(super) fn undo(&mut self) {
        self.deleted = 0;
        self.undo_to(0);
        // The number may not have been stored, so it is stored with the next row.
        self.noted_no = 0;
    }

    /// Undoes what the batch has done since this mark.
    pub(super) fn undo_to(&mut self, mark: usize) {
        for done in self.undo.split_off(mark.min(self.undo.len())).into_iter().rev() {
            match done {
                Undo::Added { task_no, bytes, last } => {
                    self.last_no -= 1;
                    self.order.pop_back();
                    self.rows -= 1;
                    let Some(unfiled) = self.unfiled.get_mut(&task_no) else { continue };
                    unfiled.rows.pop();
                    unfiled.bytes -= bytes;
                    unfiled.last = last;
                    if unfiled.rows.is_empty() {
                        self.unfiled.remove(&task_no);
                    }
                }
                Undo::Filed { task_no, unfiled } => {
                    self.rows += unfiled.rows.len();
                    self.unfiled.insert(task_no, unfiled);
                }
            }
        }
    }
}

/// Whether a commit may wait in `recent`: it writes to artifacts, perhaps with a checkpoint, and changes nothing else that other
/// tables hold.
pub(super) fn is_chunk(commit: &Commit, encoded: &Encoded) -> bool {
    commit.lease == LeaseChange::Keep
        && commit.head.running
        && commit.head.push_configs == 0
        && commit.push.is_empty()
        && commit.accept.is_none()
        && encoded.chunks.is_empty()
        && !commit.events.is_empty()
        && are_chunks(&commit.events)
}

/// Whether events may be those of a row in `recent`.
pub(super) fn are_chunks(events: &[Event]) -> bool {
    let writes_artifact = |event: &Event| matches!(event, Event::ArtifactWritten { .. });
    events.iter().any(writes_artifact) && events.iter().all(|event| writes_artifact(event) || is_checkpoint(event))
}

pub(super) fn has_checkpoint(events: &[Event]) -> bool {
    events.iter().any(is_checkpoint)
}

fn is_checkpoint(event: &Event) -> bool {
    matches!(event, Event::Checkpoint { .. })
}

impl Ledger<'_> {
    /// Writes a commit that [`is_chunk`] and adds so many bytes to its task. Returns the row of the task as it will be when the commit is filed.
    pub(super) fn append_chunk(
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
        self.statements.insert_recent.execute((
            no,
            columns.log_no,
            columns.last_seq,
            columns.visible,
            columns.prev_story,
            columns.prev_artifact,
            columns.at,
            &*encoded.record,
            // The checksum that the commit will have in the log; until then it is valid for this row only.
            columns.checksum(encoded.record_hash) ^ no,
        ))?;
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
    pub(super) fn file(&mut self, task_no: i64) -> Result<(), Failure> {
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
    pub(super) fn file_log(&mut self, task_no: i64) -> Result<(), Failure> {
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
    pub(super) fn file_or_quarantine(&mut self, task_no: i64) -> Result<(), Failure> {
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
    pub(super) fn file_all(&mut self) -> Result<(), Failure> {
        let mut tasks: Vec<i64> = self.recent.unfiled.keys().copied().collect();
        tasks.sort_unstable();
        for task_no in tasks {
            self.file_unless_damaged(task_no)?;
        }
        Ok(())
    }

    /// Keeps the table short: files the oldest rows if there are too many, and deletes rows that earlier batches have
    /// filed.
    pub(super) fn shorten_recent(&mut self) -> Result<(), Failure> {
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
    pub(super) fn note_last_recent(&mut self) -> rusqlite::Result<()> {
        if self.recent.noted_no != self.recent.last_no {
            write_meta(self.connection, LAST_RECENT, self.recent.last_no)?;
            self.recent.noted_no = self.recent.last_no;
        }
        Ok(())
    }

    /// Files everything and empties the table, except for damaged rows.
    pub(super) fn empty_recent(&mut self) -> Result<(), Failure> {
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
    pub(super) fn file_unless_damaged(&mut self, task_no: i64) -> Result<bool, Failure> {
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

/// Records that the table is empty.
pub(super) fn begin_recent(connection: &Connection) -> Result<(), Failure> {
    write_meta(connection, FIRST_RECENT, 1)?;
    write_meta(connection, LAST_RECENT, 0)?;
    Ok(())
}

/// Which tasks have chunks in `recent`, for readers of the file.
#[derive(Default)]
pub(super) struct UnfiledTasks {
    /// How many there are, so that a store without any need not take the lock.
    count: AtomicUsize,
    /// Whether there are tasks that the indexes do not have, see `unindexed`.
    pub(super) has_unindexed: AtomicBool,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    /// Seeded: in some dialects clients choose ids.
    by_id: HashMap<TaskId, i64, SeededHash>,
    ids: HashMap<i64, TaskId, IdHash>,
}

impl UnfiledTasks {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The number of a task that has chunks in `recent`.
    pub(super) fn find(&self, of: &TaskRef) -> Option<i64> {
        if self.is_empty() {
            return None;
        }
        let numbers = self.lock();
        match of {
            TaskRef::Id(id) => numbers.by_id.get(id).copied(),
            TaskRef::No(task_no) => numbers.ids.contains_key(task_no).then_some(*task_no),
        }
    }

    fn insert(&self, task_no: i64, id: &TaskId) {
        let mut numbers = self.lock();
        numbers.by_id.insert(id.clone(), task_no);
        numbers.ids.insert(task_no, id.clone());
        self.count.store(numbers.ids.len(), Ordering::Release);
    }

    fn remove(&self, task_no: i64, id: &TaskId) {
        let mut numbers = self.lock();
        numbers.by_id.remove(id);
        numbers.ids.remove(&task_no);
        self.count.store(numbers.ids.len(), Ordering::Release);
    }
}
