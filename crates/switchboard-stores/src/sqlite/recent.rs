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
use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::id_hash::{IdHash, SeededHash};
use switchboard_engine::ports::store::{Commit, LeaseChange};

use super::error::Failure;
use super::meta::{read_meta, write_meta};
use super::quarantine::TaskRef;
use super::rows::{VERSION_BITS, version_of};
use super::usage::bytes_of_row;
use crate::record::{Encoded, signed};

/// The numbers of the first and the last row of `recent`, in `meta`: so that a lost row is noticed.
pub(super) const FIRST_RECENT: &str = "first_recent";
pub(super) const LAST_RECENT: &str = "last_recent";

/// What the writer knows about the rows in `recent`.
pub(super) struct Recent {
    pub(super) unfiled: HashMap<i64, Unfiled, IdHash>,
    /// The number and the task of every row that is not known to be filed, oldest first.
    pub(super) order: VecDeque<(i64, i64)>,
    pub(super) last_no: i64,
    /// How many rows are not filed.
    pub(super) rows: usize,
    /// Rows that are filed and still there, as ranges of their numbers.
    pub(super) filed: Vec<(i64, i64)>,
    /// How many of these ranges this batch has deleted.
    pub(super) deleted: usize,
    /// The first row of each damaged task, of which no row was filed.
    pub(super) first_damaged: Option<i64>,
    /// The number of the last row according to `meta`.
    pub(super) noted_no: i64,
    pub(super) undo: Vec<Undo>,
    pub(super) shared: Arc<UnfiledTasks>,
}

/// The rows of one task that are not filed.
pub(super) struct Unfiled {
    pub(super) id: TaskId,
    /// Their numbers, oldest first.
    pub(super) rows: Vec<i64>,
    /// What they add to the bytes of the task.
    pub(super) bytes: i64,
    /// None if an earlier process wrote them.
    pub(super) last: Option<LastChunk>,
}

/// The task after the last of its rows.
#[derive(Clone)]
pub(super) struct LastChunk {
    pub(super) head: Arc<Head>,
    pub(super) at: Timestamp,
    /// The newest of the commits that has a checkpoint.
    pub(super) checkpoint: Option<i64>,
}

/// What a batch did, so that it can be undone.
pub(super) enum Undo {
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

    pub(super) fn note_filed(&mut self, no: i64) {
        match self.filed.last_mut() {
            Some((_, last)) if *last + 1 == no => *last = no,
            _ => self.filed.push((no, no)),
        }
    }

    /// Notes a row that was just written, and returns how many its task has.
    pub(super) fn add(&mut self, task_no: i64, commit: &Commit, bytes: i64) -> usize {
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
