//! Idempotency keys. They are stored by the day on which they expire. A look-up needs one query for each day on which a
//! valid key can expire (two for the usual window), and expired days are removed as adjacent rows.

use rusqlite::{Connection, Row, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::{Accepted, StoreError};

use super::error::Failure;
use super::meta::{read_meta, write_meta};
use super::rows::{AcceptedColumns, TASK_COLUMNS, mistyped, task_columns};
use crate::record::{signed, unsigned};

const MS_PER_DAY: i64 = 86_400_000;

pub(super) fn day_of(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(MS_PER_DAY)
}

/// The latest day on which a stored key expires.
pub(super) fn last_accepted_day(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT coalesce(max(day), 0) FROM accepted")?.query_row([], |row| row.get(0))
}

/// The columns of a key, in the order [`accepted_columns`] reads them.
pub(super) const ACCEPTED_COLUMNS: &str = "accepted.day, accepted.key, accepted.task_no, accepted.digest, \
     accepted.turn, accepted.after_seq, accepted.expires, accepted.version, accepted.checksum";

/// A row of the table of keys, if it matches its checksum.
pub(super) fn accepted_columns<'r>(row: &'r Row<'_>) -> Result<AcceptedColumns<'r>, Failure> {
    let columns = accepted_columns_unchecked(row)?;
    match row.get::<_, i64>(8)? == columns.checksum() {
        true => Ok(columns),
        // The damage affects only a client that repeats this message.
        false => {
            let what = format!("an idempotency key of task number {} does not match its checksum", columns.task_no);
            Err(Failure(StoreError::Damaged(what)))
        }
    }
}

pub(super) fn accepted_columns_unchecked<'r>(row: &'r Row<'_>) -> Result<AcceptedColumns<'r>, Failure> {
    let bytes = |column: usize| -> Result<&'r [u8], Failure> { row.get_ref(column)?.as_blob().map_err(mistyped) };
    Ok(AcceptedColumns {
        day: row.get(0)?,
        key: bytes(1)?,
        task_no: row.get(2)?,
        digest: bytes(3)?,
        turn: row.get(4)?,
        after_seq: row.get(5)?,
        expires: row.get(6)?,
        version: row.get(7)?,
    })
}

/// The time that decides whether keys have expired. It is the present, unless ages are ignored. Then every stored key
/// is valid, so it is the earliest day on which a key expires.
pub(super) fn known_as_of(
    connection: &Connection,
    now: Timestamp,
    held_until: Option<Timestamp>,
) -> rusqlite::Result<Timestamp> {
    if held_until.is_none_or(|until| until <= now) {
        return Ok(now);
    }
    let mut select = connection.prepare_cached("SELECT coalesce(min(day), 0) FROM accepted")?;
    let day: i64 = select.query_row([], |row| row.get(0))?;
    Ok(now.min(Timestamp::from_ms(day.saturating_mul(MS_PER_DAY))))
}

/// The accepted message of a key, if the key has not expired and its task still exists.
pub(super) fn find_accepted(
    connection: &Connection,
    key: &[u8; 32],
    now: Timestamp,
    last_day: i64,
) -> Result<Option<Accepted>, Failure> {
    let mut select =
        connection.prepare_cached(&format!("SELECT {ACCEPTED_COLUMNS} FROM accepted WHERE day = ?1 AND key = ?2"))?;
    let mut select_task = connection.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1"))?;
    for day in day_of(now)..=last_day {
        let mut rows = select.query(params![day, key])?;
        let Some(row) = rows.next()? else { continue };
        let columns = accepted_columns(row)?;
        if columns.expires <= now.as_ms() {
            continue;
        }
        let mut tasks = select_task.query([columns.task_no])?;
        let Some(task) = tasks.next()? else { continue };
        let unreadable = || StoreError::Corrupt("an idempotency key cannot be read".to_owned());
        return Ok(Some(Accepted {
            // A damaged task affects only clients that repeat a message to it.
            task_id: task_columns(task).map_err(Failure::into_damage)?.head.id.into(),
            digest: columns.digest.try_into().map_err(|_| unreadable())?,
            turn: u32::try_from(columns.turn).map_err(|_| unreadable())?,
            after_seq: unsigned(columns.after_seq),
        }));
    }
    Ok(None)
}

/// Removes keys that expired on an earlier day, at most `limit`.
pub(super) fn forget_accepted(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize, Failure> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM accepted WHERE (day, key) IN (SELECT day, key FROM accepted WHERE day < ?1 LIMIT ?2)",
    )?;
    let forgotten = delete.execute(params![day_of(now), signed(limit as u64)])?;
    // Recorded for `verify`, which reports a missing key unless this shows that it may have been removed.
    if forgotten > 0 && read_meta(connection, FORGOTTEN_DAY)?.unwrap_or(0) < day_of(now) {
        write_meta(connection, FORGOTTEN_DAY, day_of(now))?;
    }
    Ok(forgotten)
}

/// Keys that expired before this day may have been removed.
pub(super) const FORGOTTEN_DAY: &str = "forgotten_day";
