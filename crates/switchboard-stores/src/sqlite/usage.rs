//! How many bytes are stored of each owner's tasks, and in all. Each task's row has its own number, which changes with the row, so that
//! a commit writes nothing more for it. The sums are only in memory: they are counted when the file is opened, beside the
//! number of tasks (`census.rs`), and the writer keeps the changes since. So a crash cannot make them wrong.
//!
//! What is counted is said in `switchboard_engine::ports::storage`. A commit that waits to be filed is counted when it is written;
//! the row of its task gets its bytes when it is filed. Calls of agents are in the sums alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use rusqlite::Connection;
use switchboard_engine::id_hash::IdHash;
use switchboard_engine::ports::storage::{CALL_BYTES, COMMIT_BYTES, KEY_BYTES, PIECE_BYTES, TASK_BYTES, WEBHOOK_BYTES};
use switchboard_engine::ports::store::{Commit, StoredBytes};

use super::error::Failure;
use super::rows::{TASK_COLUMNS, VERSION_BITS, VERSION_MAX, log_no, task_columns};
use crate::record::{Encoded, signed};

/// How many scopes are remembered with the number of their owner. Others are looked up again.
const SCOPES_MAX: usize = 4096;

/// A task with more bytes than this is counted only if its row matches its checksum: one wrong bit in a large number could use up a
/// limit.
const UNCHECKED_BYTES_MAX: i64 = 1 << 20;

/// The sums that all threads may read.
#[derive(Default)]
pub(super) struct StoredSums {
    /// As they were when the file was opened; set when they are counted.
    at_open: OnceLock<Counted>,
    /// The change of all since then.
    since_open: AtomicI64,
}

/// The bytes of a file.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    all: i64,
    /// By the number of the owner, see [`Usage::owner_no`].
    owners: HashMap<i64, i64, IdHash>,
}

impl StoredSums {
    pub(super) fn counted(&self, counted: Counted) {
        let _ = self.at_open.set(counted);
    }

    /// All bytes that are stored; none while they are being counted.
    pub(super) fn all(&self) -> Option<u64> {
        let at_open = self.at_open.get()?;
        Some(positive(at_open.all + self.since_open.load(Relaxed)))
    }
}

fn positive(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or_default()
}

/// What the writer knows about the bytes that are stored.
pub(super) struct Usage {
    sums: Arc<StoredSums>,
    /// The changes since the file was opened.
    all: i64,
    owners: HashMap<i64, i64, IdHash>,
    /// The owners of scopes that were asked for lately.
    owner_of: HashMap<i64, i64, IdHash>,
    undo: Vec<(i64, i64)>,
}

impl Usage {
    pub(super) fn new(sums: Arc<StoredSums>) -> Self {
        Self { sums, all: 0, owners: HashMap::default(), owner_of: HashMap::default(), undo: Vec::new() }
    }

    /// What is stored now, given the bytes of the task. While the file is being counted, that is what was stored since it was opened.
    pub(super) fn stored(&self, owner_no: i64, task: i64) -> StoredBytes {
        let owner = self.owners.get(&owner_no).copied().unwrap_or_default();
        let (owner, all) = match self.sums.at_open.get() {
            Some(counted) => {
                (owner + counted.owners.get(&owner_no).copied().unwrap_or_default(), self.all + counted.all)
            }
            None => (owner, self.all),
        };
        StoredBytes { task: positive(task), owner: positive(owner), all: positive(all) }
    }

    /// The number of the owner of a scope: that of the first scope which this owner has. Later scopes have higher numbers, so it
    /// stays.
    pub(super) fn owner_no(&mut self, connection: &Connection, scope_no: i64) -> Result<i64, Failure> {
        if let Some(known) = self.owner_of.get(&scope_no) {
            return Ok(*known);
        }
        let mut select = connection.prepare_cached(
            "SELECT min(other.scope_no) FROM scope JOIN scope AS other USING (tenant, principal) WHERE scope.scope_no = ?1",
        )?;
        // A scope that is missing is damage, which costs only its own tasks.
        let owner_no = select.query_row([scope_no], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(scope_no);
        if self.owner_of.len() >= SCOPES_MAX {
            self.owner_of.clear();
        }
        self.owner_of.insert(scope_no, owner_no);
        Ok(owner_no)
    }

    /// Counts bytes that the tasks of a scope have more, or fewer.
    pub(super) fn count(&mut self, connection: &Connection, scope_no: i64, change: i64) -> Result<(), Failure> {
        let owner_no = self.owner_no(connection, scope_no)?;
        self.add(owner_no, change);
        Ok(())
    }

    pub(super) fn add(&mut self, owner_no: i64, change: i64) {
        self.all += change;
        *self.owners.entry(owner_no).or_default() += change;
        self.undo.push((owner_no, change));
    }

    /// Called when the batch is durable.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
        self.sums.since_open.store(self.all, Relaxed);
    }

    /// The position in the batch, for [`Usage::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    /// Undoes what the batch has done since this mark.
    pub(super) fn undo_to(&mut self, mark: usize) {
        for (owner_no, change) in self.undo.split_off(mark.min(self.undo.len())) {
            self.all -= change;
            if let Some(bytes) = self.owners.get_mut(&owner_no) {
                *bytes -= change;
            }
        }
        // The scope that an entry is for may have been rolled back, too.
        self.owner_of.clear();
    }
}

/// How many bytes a commit adds to its task, which had so many webhooks before.
pub(super) fn bytes_of_commit(commit: &Commit, encoded: &Encoded, push_configs: i64) -> i64 {
    let pieces: usize = encoded.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    let content = encoded.record.len() as u64 + pieces as u64 + PIECE_BYTES * encoded.chunks.len() as u64;
    signed(content) + commit.bytes_around(u32::try_from(push_configs).unwrap_or_default())
}

/// The bytes of one row of the log.
pub(super) fn bytes_of_row(record: i64, has_key: bool) -> i64 {
    record + signed(COMMIT_BYTES) + if has_key { signed(KEY_BYTES) } else { 0 }
}

/// The bytes of one piece of content.
pub(super) fn bytes_of_piece(piece: i64) -> i64 {
    piece + signed(PIECE_BYTES)
}

/// The bytes of calls, and how many they are. A record that is damaged counts as a call alone.
const CALL_SUMS: &str = "count(*), coalesce(sum(CASE WHEN json_valid(call.record)
    THEN coalesce(octet_length(call.record ->> '$.outcome'), 0) ELSE 0 END), 0)";

/// The bytes that the calls of a task count in the sums.
pub(super) fn bytes_of_calls(connection: &Connection, task_no: i64) -> Result<i64, Failure> {
    let mut select = connection.prepare_cached(&format!("SELECT {CALL_SUMS} FROM call WHERE task_no = ?1"))?;
    let (calls, outcomes): (i64, i64) = select.query_row([task_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(signed(CALL_BYTES) * calls + outcomes)
}

/// What is stored of a task, counted from its rows. Commits that wait to be filed are not among them.
pub(super) fn bytes_of_task(connection: &Connection, task_no: i64, push_configs: i64) -> Result<i64, Failure> {
    let mut log = connection.prepare_cached(
        "SELECT count(*), coalesce(sum(octet_length(record)), 0), count(accept_expires) FROM log WHERE log_no BETWEEN ?1 AND ?2",
    )?;
    let range = [log_no(task_no, 0), log_no(task_no, signed(VERSION_MAX))];
    let numbers = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
    let (commits, records, keys) =
        log.query_row(range, |row| numbers(row).and_then(|(count, sum)| Ok((count, sum, row.get::<_, i64>(2)?))))?;
    let mut chunk = connection
        .prepare_cached("SELECT count(*), coalesce(sum(octet_length(bytes)), 0) FROM chunk WHERE task_no = ?1")?;
    let (pieces, contents) = chunk.query_row([task_no], numbers)?;
    let rows = signed(COMMIT_BYTES) * commits + signed(KEY_BYTES) * keys + signed(PIECE_BYTES) * pieces;
    Ok(signed(TASK_BYTES) + signed(WEBHOOK_BYTES) * push_configs + rows + records + contents)
}

/// Counts a file.
pub(super) fn count(connection: &Connection) -> rusqlite::Result<Counted> {
    let mut by_scope: HashMap<i64, i64, IdHash> = HashMap::default();
    let mut check = connection.prepare(&format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1"))?;
    let mut select = connection.prepare("SELECT task_no, scope_no, bytes FROM task")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (task_no, scope_no, bytes): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let is_plausible = (0..=UNCHECKED_BYTES_MAX).contains(&bytes)
            || check.query_row([task_no], |row| Ok(task_columns(row).is_ok()))?;
        if is_plausible {
            *by_scope.entry(scope_no).or_default() += bytes;
        }
    }
    let mut select = connection.prepare(
        "SELECT task.scope_no, octet_length(recent.record) FROM recent JOIN task ON task.task_no = (recent.log_no >> ?1)
          WHERE (recent.log_no & ?2) > task.version",
    )?;
    let mut rows = select.query([i64::from(VERSION_BITS), signed(VERSION_MAX)])?;
    while let Some(row) = rows.next()? {
        *by_scope.entry(row.get(0)?).or_default() += bytes_of_row(row.get(1)?, false);
    }
    let calls = format!("SELECT task.scope_no, {CALL_SUMS} FROM call JOIN task USING (task_no) GROUP BY task.scope_no");
    let mut select = connection.prepare(&calls)?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (calls, outcomes): (i64, i64) = (row.get(1)?, row.get(2)?);
        *by_scope.entry(row.get(0)?).or_default() += signed(CALL_BYTES) * calls + outcomes;
    }
    let mut counted = Counted { all: by_scope.values().sum(), owners: HashMap::default() };
    let mut select =
        connection.prepare("SELECT scope_no, min(scope_no) OVER (PARTITION BY tenant, principal) FROM scope")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(bytes) = by_scope.remove(&row.get(0)?) {
            *counted.owners.entry(row.get(1)?).or_default() += bytes;
        }
    }
    Ok(counted)
}
