//! What the file records about the wall clock: when a process last wrote, so that the next one can tell whether the
//! clock was set meanwhile. It also shifts waiting times when the clock was set back, so that each keeps its length.

use rusqlite::{Connection, OptionalExtension};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::system::{ClockRecord, SET_BACK_MS_MIN};

use super::call_rows::set_calls_back;
use super::meta::{read_meta, write_meta};
use super::rows::{TASK_COLUMNS, TaskColumns, of_push_times, task_columns};

/// The time of a recent commit.
pub(super) const SEEN: &str = "clock_seen";
/// Until when ages are ignored.
pub(super) const HELD_UNTIL: &str = "clock_held_until";

/// How often the time is stored; after a crash it may be out of date by this much.
pub(super) const SEEN_EVERY_MS: i64 = 60_000;

pub(super) fn read(connection: &Connection) -> rusqlite::Result<ClockRecord> {
    let last_seen = match read_one(connection, SEEN)? {
        Some(seen) => Some(seen),
        // The file was written by a build that did not store the time. The newest task gives an earlier bound.
        None => connection
            .query_row("SELECT updated_at FROM task ORDER BY task_no DESC LIMIT 1", [], |row| row.get(0))
            .optional()?
            .map(Timestamp::from_ms),
    };
    Ok(ClockRecord { last_seen, held_until: read_one(connection, HELD_UNTIL)? })
}

/// A damaged time is treated as none, so that the store can start; the next commit stores a good one.
fn read_one(connection: &Connection, name: &str) -> rusqlite::Result<Option<Timestamp>> {
    match read_meta(connection, name) {
        Ok(value) => Ok(value.map(Timestamp::from_ms)),
        Err(rusqlite::Error::FromSqlConversionFailure(..)) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn write_seen(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    write_meta(connection, SEEN, now.as_ms())
}

pub(super) fn write_held_until(connection: &Connection, until: Timestamp) -> rusqlite::Result<()> {
    write_meta(connection, HELD_UNTIL, until.as_ms())
}

/// By how much at least the clock was set back between two readings.
pub(super) fn set_back_ms(before: Timestamp, now: Timestamp) -> Option<i64> {
    Some(before.ms_since(now)).filter(|back_ms| *back_ms >= SET_BACK_MS_MIN)
}

/// Shifts waiting times after the clock was set back to `now`. The time that identifies the claim of a delivery is not
/// shifted, because the process that holds the claim identifies it by that time.
pub(super) fn set_back(connection: &Connection, back_ms: i64, now: Timestamp) -> rusqlite::Result<()> {
    let runs = set_runs_back(connection, back_ms, now)?;
    let deliveries = set_deliveries_back(connection, back_ms, now)?;
    let calls = set_calls_back(connection, back_ms)?;
    tracing::warn!(
        back_ms,
        runs,
        deliveries,
        calls,
        "the wall clock was set back; what waits goes on waiting as long as before"
    );
    Ok(())
}

/// A damaged row is not changed, because its next state would get a valid checksum.
fn set_runs_back(connection: &Connection, back_ms: i64, now: Timestamp) -> rusqlite::Result<usize> {
    let sql =
        format!("SELECT {TASK_COLUMNS} FROM task WHERE running = 1 AND holder = 0 AND run_at > ?1 ORDER BY task_no");
    let mut select = connection.prepare_cached(&sql)?;
    let mut moved: Vec<[i64; 3]> = Vec::new();
    let mut rows = select.query([now.as_ms()])?;
    while let Some(row) = rows.next()? {
        let Ok(columns) = task_columns(row) else { continue };
        let run_at = columns.run_at.map(|run_at| run_at - back_ms);
        let checksum = TaskColumns { run_at, ..columns }.checksum();
        moved.extend(run_at.map(|run_at| [columns.task_no, run_at, checksum]));
    }
    let mut update = connection.prepare_cached("UPDATE task SET run_at = ?2, checksum = ?3 WHERE task_no = ?1")?;
    for run in &moved {
        update.execute(*run)?;
    }
    Ok(moved.len())
}

fn set_deliveries_back(connection: &Connection, back_ms: i64, now: Timestamp) -> rusqlite::Result<usize> {
    let mut select = connection
        .prepare_cached("SELECT push_no, due_at, claimed_until, times_checksum FROM push WHERE due_at > ?1")?;
    let mut moved: Vec<[i64; 3]> = Vec::new();
    let mut rows = select.query([now.as_ms()])?;
    while let Some(row) = rows.next()? {
        let (due_at, claimed_until): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
        if row.get::<_, i64>(3)? == of_push_times(Some(due_at), claimed_until) {
            let due_at = due_at - back_ms;
            moved.push([row.get(0)?, due_at, of_push_times(Some(due_at), claimed_until)]);
        }
    }
    let mut update =
        connection.prepare_cached("UPDATE push SET due_at = ?2, times_checksum = ?3 WHERE push_no = ?1")?;
    for delivery in &moved {
        update.execute(*delivery)?;
    }
    Ok(moved.len())
}
