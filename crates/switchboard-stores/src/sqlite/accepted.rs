//! Idempotency keys. They are filed under the day they expire, so a look-up asks once per day that a live key can
//! expire on (two for the usual window), and forgetting a day removes rows that lie together.

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::Accepted;

use super::error::Failure;
use super::rows::{signed, unsigned};

const MS_PER_DAY: i64 = 86_400_000;

pub(super) fn day_of(at: Timestamp) -> i64 {
    at.as_ms().div_euclid(MS_PER_DAY)
}

/// The last day on which a known key expires.
pub(super) fn last_accepted_day(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT coalesce(max(day), 0) FROM accepted")?.query_row([], |row| row.get(0))
}

/// The moment as of which keys have expired or not: now, unless ages do not count. Then every key that is still there is
/// known, as of the first day that one expires on.
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

/// What a key stands for, if it has not expired and its task is still there.
pub(super) fn find_accepted(
    connection: &Connection,
    key: &[u8; 32],
    now: Timestamp,
    last_day: i64,
) -> Result<Option<Accepted>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT task.id, digest, accepted.turn, after_seq FROM accepted JOIN task USING (task_no)
          WHERE day = ?1 AND key = ?2 AND expires > ?3",
    )?;
    for day in day_of(now)..=last_day {
        let found = select
            .query_row(params![day, key, now.as_ms()], |row| {
                Ok(Accepted {
                    task_id: row.get::<_, String>(0)?.into(),
                    digest: row.get(1)?,
                    turn: row.get(2)?,
                    after_seq: unsigned(row.get(3)?),
                })
            })
            .optional()?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Forgets keys that expired on an earlier day, at most `limit`.
pub(super) fn forget_accepted(connection: &Connection, now: Timestamp, limit: usize) -> Result<usize, Failure> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM accepted WHERE (day, key) IN (SELECT day, key FROM accepted WHERE day < ?1 LIMIT ?2)",
    )?;
    Ok(delete.execute(params![day_of(now), signed(limit as u64)])?)
}
