//! Prunes the store. A reader searches the task table for candidates, one range at a time, so that commits need not
//! maintain an index for this; the writer checks each candidate again and removes it. Active records are never removed,
//! nor is anything that a delivery still needs. Large tasks are removed in slices, so that no commit waits long.

use rusqlite::{Connection, params};
use switchboard_core::lifecycle::Phase;
use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::ports::store::Retention;

use super::{Effect, LAST_TASK_NO, Ledger};
use crate::record::{phase_from_number, phase_number, signed, state_from_number};
use crate::sqlite::error::Failure;
use crate::sqlite::idempotency::forget_accepted;
use crate::sqlite::meta::write_meta;
use crate::sqlite::quarantine::Quarantined;
use crate::sqlite::rows::{AFTER_TASK, TASK_COLUMNS, TaskColumns, VERSION_MAX, log_no, task_columns, version_of};
use crate::sqlite::totals::{CountChange, Totals};
use crate::sqlite::usage::{bytes_of_calls, bytes_of_piece, bytes_of_row};

/// How many tasks are examined at once.
const EXAMINED_MAX: i64 = 10_000;
/// How many log rows and chunks of one task are removed at once.
const LOG_ROWS_SLICE: i64 = 4096;
const CHUNKS_SLICE: i64 = 64;

/// The candidates that a reader has found.
pub(crate) struct Candidates {
    /// The oldest closed tasks, as many as exceed the limit.
    too_many: Vec<i64>,
    /// Tasks whose retention has passed or whose log can be compacted.
    old: Vec<i64>,
    /// Where the next search begins.
    pub(crate) next: i64,
    /// Whether this search reached the end of the table.
    pub(crate) at_end: bool,
}

/// Searches a range of tasks that begins after `after` and wraps around to the start.
pub(crate) fn candidates(
    connection: &Connection,
    totals: &Totals,
    quarantine: &Quarantined,
    retention: &Retention,
    after: i64,
    limit: usize,
) -> Result<Candidates, Failure> {
    let too_many = above_max(connection, totals, quarantine, retention, limit)?;
    let limit = limit - too_many.len();
    let mut old = Vec::new();
    let mut select = connection.prepare_cached(
        "SELECT task_no, phase, closed_at, floor_version < version FROM task
          WHERE task_no > ?1 ORDER BY task_no LIMIT ?2",
    )?;
    let mut next = after;
    let mut left = EXAMINED_MAX;
    let mut gone_round = false;
    while left > 0 && old.len() < limit {
        let mut rows = select.query([next, left])?;
        let mut seen = 0;
        while let Some(row) = rows.next()? {
            seen += 1;
            next = row.get(0)?;
            if gone_round && next > after {
                return Ok(Candidates { too_many, old, next, at_end: true });
            }
            let closed_at: Option<i64> = row.get(2)?;
            let Some(closed_at) = closed_at.map(Timestamp::from_ms) else { continue };
            let expired = is_outlived(row.get(1)?, closed_at, retention);
            let compactable = row.get::<_, bool>(3)? && retention.now.ms_since(closed_at) >= retention.events_ms;
            if expired || compactable {
                old.push(next);
                if old.len() >= limit {
                    break;
                }
            }
        }
        left -= seen;
        if seen == 0 {
            if gone_round || after == 0 {
                return Ok(Candidates { too_many, old, next: 0, at_end: true });
            }
            gone_round = true;
            next = 0;
        }
    }
    Ok(Candidates { too_many, old, next, at_end: gone_round })
}

fn above_max(
    connection: &Connection,
    totals: &Totals,
    quarantine: &Quarantined,
    retention: &Retention,
    limit: usize,
) -> Result<Vec<i64>, Failure> {
    let count = match totals.records() {
        Some(count) => count,
        None => {
            let generation = totals.generation();
            let count = connection.prepare_cached("SELECT count(*) FROM task")?.query_row([], |row| row.get(0))?;
            totals.counted_records(generation, count);
            count
        }
    };
    let excess = signed(retention.too_many(u64::try_from(count).unwrap_or_default()).min(limit as u64));
    if excess <= 0 {
        return Ok(Vec::new());
    }
    let mut select = connection.prepare_cached(
        "SELECT task_no FROM task
          WHERE closed_at IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM push WHERE push.task_no = task.task_no AND due_at IS NOT NULL)
          ORDER BY task_no LIMIT ?1",
    )?;
    let found = select.query_map([excess + signed(quarantine.tasks() as u64)], |row| row.get(0))?;
    let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
    let readable = found.into_iter().filter(|task_no| !quarantine.has_task(*task_no));
    Ok(readable.take(usize::try_from(excess).unwrap_or(usize::MAX)).collect())
}

fn is_outlived(phase: i64, closed_at: Timestamp, retention: &Retention) -> bool {
    let kept_ms = if phase == phase_number(Phase::Live) { retention.tasks_ms } else { retention.replies_ms };
    retention.now.ms_since(closed_at) >= kept_ms
}

struct Closed {
    id: String,
    scope_no: i64,
    state: i64,
    phase: i64,
    closed_at: Timestamp,
    version: i64,
    seq: i64,
    floor_seq: i64,
    floor_version: i64,
    status_version: i64,
    bytes: i64,
    /// Whether a delivery waits or is under way, and whether any has updates left, including dead letters.
    due: bool,
    behind: bool,
}

impl Ledger<'_> {
    /// Removes or compacts tasks by the retention policy, at most `limit` of them.
    pub(crate) fn prune(
        &mut self,
        retention: &Retention,
        candidates: &Candidates,
        limit: usize,
    ) -> Result<usize, Failure> {
        let mut done = self.remove_leftovers(limit)?;
        done += forget_accepted(self.connection, retention.now, limit.saturating_sub(done))?;
        let too_many = candidates.too_many.iter().map(|task_no| (*task_no, true));
        let old = candidates.old.iter().map(|task_no| (*task_no, false));
        for (task_no, too_many) in too_many.chain(old) {
            if done >= limit {
                break;
            }
            if self.quarantine.has_task(task_no) {
                continue;
            }
            match self.in_savepoint(|ledger| ledger.prune_one(task_no, too_many, retention))? {
                Ok(pruned) => done += usize::from(pruned),
                Err(reason) => self.quarantine_task(task_no, &reason),
            }
        }
        Ok(done)
    }

    /// Removes or compacts one task, and returns whether there was anything to do.
    fn prune_one(&mut self, task_no: i64, too_many: bool, retention: &Retention) -> Result<bool, Failure> {
        let Some(closed) = self.closed(task_no)? else { return Ok(false) };
        // A task that cannot be read is not removed, because an operator may be able to repair it.
        phase_from_number(closed.phase)?;
        state_from_number(closed.state)?;
        if !closed.due && (too_many || is_outlived(closed.phase, closed.closed_at, retention)) {
            self.remove(task_no, closed)?;
            return Ok(true);
        }
        let is_compactable = !closed.behind
            && closed.floor_version < closed.version
            && retention.now.ms_since(closed.closed_at) >= retention.events_ms;
        if is_compactable {
            self.compact(task_no, &closed)?;
        }
        Ok(is_compactable)
    }

    /// An ended task, if it exists.
    fn closed(&self, task_no: i64) -> Result<Option<Closed>, Failure> {
        let sql = format!(
            "SELECT {TASK_COLUMNS},
                    EXISTS (SELECT 1 FROM push WHERE push.task_no = task.task_no AND due_at IS NOT NULL),
                    EXISTS (SELECT 1 FROM push WHERE push.task_no = task.task_no AND delivered_seq < task.seq)
               FROM task WHERE task_no = ?1"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([task_no])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let columns = task_columns(row)?;
        let Some(closed_at) = columns.closed_at.map(Timestamp::from_ms) else { return Ok(None) };
        Ok(Some(Closed {
            id: columns.head.id.to_owned(),
            phase: columns.head.phase,
            closed_at,
            version: columns.head.version,
            seq: columns.head.seq,
            floor_seq: columns.floor_seq,
            floor_version: columns.floor_version,
            status_version: columns.status_version,
            bytes: columns.bytes,
            due: row.get(AFTER_TASK)?,
            behind: row.get(AFTER_TASK + 1)?,
            scope_no: columns.scope_no,
            state: columns.head.state,
        }))
    }

    /// Removes the task's row at once. Its log and chunks are removed now if they are few, and in slices otherwise.
    fn remove(&mut self, task_no: i64, closed: Closed) -> Result<(), Failure> {
        let bytes = closed.bytes + bytes_of_calls(self.connection, task_no)?;
        let run = |sql: &str| self.connection.prepare_cached(sql)?.execute([task_no]);
        let rows = run("DELETE FROM task WHERE task_no = ?1")?
            + run("DELETE FROM push WHERE task_no = ?1")?
            + run("DELETE FROM call WHERE task_no = ?1")?;
        self.count_rows(rows, 0);
        if task_no == self.last_task_no {
            // Idempotency keys refer to their task by number even after it is removed, so the number must not be
            // reused.
            write_meta(self.connection, LAST_TASK_NO, task_no)?;
        }
        let from = (closed.phase == phase_number(Phase::Live)).then_some(closed.state);
        self.count_changes.push(CountChange { scope_no: closed.scope_no, from, to: None, records: -1 });
        self.usage.count(self.connection, closed.scope_no, -bytes)?;
        self.effects.push(Effect::Removed(TaskId::from(closed.id)));
        if !self.remove_slice(task_no)? {
            self.connection.prepare_cached("INSERT INTO removal (task_no) VALUES (?1)")?.execute([task_no])?;
        }
        Ok(())
    }

    /// Removes some of the log and chunks of a removed task, and returns whether that was all.
    fn remove_slice(&mut self, task_no: i64) -> Result<bool, Failure> {
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM log WHERE log_no IN (SELECT log_no FROM log WHERE log_no BETWEEN ?1 AND ?2 LIMIT ?3)",
        )?;
        let last = log_no(task_no, signed(VERSION_MAX));
        let log_rows = delete.execute(params![log_no(task_no, 0), last, LOG_ROWS_SLICE])?;
        let mut delete = self.connection.prepare_cached(
            "DELETE FROM chunk WHERE chunk_no IN (SELECT chunk_no FROM chunk WHERE task_no = ?1 LIMIT ?2)",
        )?;
        let chunks = delete.execute([task_no, CHUNKS_SLICE])?;
        self.count_rows(log_rows + chunks, 0);
        Ok(signed(log_rows as u64) < LOG_ROWS_SLICE && signed(chunks as u64) < CHUNKS_SLICE)
    }

    fn remove_leftovers(&mut self, limit: usize) -> Result<usize, Failure> {
        let mut select = self.connection.prepare_cached("SELECT task_no FROM removal LIMIT ?1")?;
        let found = select.query_map([signed(limit.min(8) as u64)], |row| row.get(0))?;
        let found: Vec<i64> = found.collect::<rusqlite::Result<_>>()?;
        for &task_no in &found {
            if self.remove_slice(task_no)? {
                self.connection.prepare_cached("DELETE FROM removal WHERE task_no = ?1")?.execute([task_no])?;
            }
        }
        Ok(found.len())
    }

    /// Compacts the log of a closed task to the commits that readers fold. Its single events cannot be read from then
    /// on, so the floor is raised first; the rows are removed afterwards in slices.
    fn compact(&mut self, task_no: i64, closed: &Closed) -> Result<(), Failure> {
        let until = closed.version.min(closed.floor_version + LOG_ROWS_SLICE);
        let mut select = self.connection.prepare_cached(
            "SELECT log_no, prev_story, prev_artifact, octet_length(record), accept_expires IS NOT NULL
               FROM log WHERE log_no BETWEEN ?1 AND ?2 ORDER BY log_no",
        )?;
        // A commit is on a chain if the next commit or the head points to it, so one row beyond the slice is needed.
        let first = log_no(task_no, closed.floor_version + 1);
        let mut rows = select.query([first, log_no(task_no, until + 1)])?;
        let mut unneeded = Vec::new();
        let mut freed = 0;
        // The version and the bytes of the commit before.
        let mut candidate: Option<(i64, i64)> = None;
        while let Some(row) = rows.next()? {
            let (at, story, artifact): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let needed = |version| version == story || version == artifact || version == closed.status_version;
            if let Some((version, bytes)) = candidate.filter(|(version, _)| !needed(*version)) {
                unneeded.push(version);
                freed += bytes;
            }
            let bytes = bytes_of_row(row.get(3)?, row.get(4)?);
            candidate = Some((version_of(at), bytes)).filter(|(version, _)| *version <= until);
        }
        drop(rows);
        // The newest commit has no next one to check, and it is only one row, so it stays.
        let mut delete = self.connection.prepare_cached("DELETE FROM log WHERE log_no = ?1")?;
        // All artifact writes are needed; other commits with chunks are messages.
        let mut delete_pieces = self.connection.prepare_cached(
            "DELETE FROM chunk WHERE task_no = ?1 AND artifact_id IS NULL AND version = ?2 RETURNING octet_length(bytes)",
        )?;
        for version in &unneeded {
            delete.execute([log_no(task_no, *version)])?;
            let mut deleted = delete_pieces.query([task_no, *version])?;
            while let Some(piece) = deleted.next()? {
                freed += bytes_of_piece(piece.get(0)?);
            }
        }
        self.raise_floor(task_no, closed.seq.max(closed.floor_seq), until, freed)?;
        self.usage.count(self.connection, closed.scope_no, -freed)?;
        self.count_rows(unneeded.len() + 1, 0);
        Ok(())
    }

    /// Notes that a task was compacted, which has freed so many bytes.
    fn raise_floor(&mut self, task_no: i64, floor_seq: i64, floor_version: i64, freed: i64) -> Result<(), Failure> {
        let raised = self.with_task(task_no, |columns| {
            let bytes = columns.bytes - freed;
            (bytes, TaskColumns { floor_seq, floor_version, bytes, ..columns }.checksum())
        });
        let Some((bytes, checksum)) = raised? else { return Ok(()) };
        let mut raise = self.connection.prepare_cached(
            "UPDATE task SET floor_seq = ?2, floor_version = ?3, bytes = ?4, checksum = ?5 WHERE task_no = ?1",
        )?;
        raise.execute([task_no, floor_seq, floor_version, bytes, checksum])?;
        Ok(())
    }
}
