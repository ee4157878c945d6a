//! What the file remembers of the wall clock: when a process last wrote here, so that the next one can tell whether the
//! clock was set meanwhile. And what a clock that was set back does to what waits: it goes on waiting for as long as it
//! would have.

use rusqlite::{Connection, OptionalExtension};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::clock::{ClockRecord, SET_BACK_MS_MIN};

/// The time of a recent commit.
const SEEN: &str = "clock_seen";
/// Until when nothing is removed because of its age.
const HELD_UNTIL: &str = "clock_held_until";

/// How often the time is written down; a crash makes it older by this much.
pub(super) const SEEN_EVERY_MS: i64 = 60_000;

pub(super) fn read(connection: &Connection) -> rusqlite::Result<ClockRecord> {
    let last_seen = match read_one(connection, SEEN)? {
        Some(seen) => Some(seen),
        // Written by a build that did not keep it: the last task that was opened is at least that old.
        None => connection
            .query_row("SELECT updated_at FROM task ORDER BY task_no DESC LIMIT 1", [], |row| row.get(0))
            .optional()?
            .map(Timestamp::from_ms),
    };
    Ok(ClockRecord { last_seen, held_until: read_one(connection, HELD_UNTIL)? })
}

fn read_one(connection: &Connection, name: &str) -> rusqlite::Result<Option<Timestamp>> {
    let value = connection.query_row("SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0));
    Ok(value.optional()?.map(Timestamp::from_ms))
}

pub(super) fn write_seen(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    write(connection, SEEN, now)
}

pub(super) fn write_held_until(connection: &Connection, until: Timestamp) -> rusqlite::Result<()> {
    write(connection, HELD_UNTIL, until)
}

fn write(connection: &Connection, name: &str, at: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
    connection.prepare_cached(sql)?.execute(rusqlite::params![name, at.as_ms()])?;
    Ok(())
}

/// By how much the clock was set back between two moments, at least.
pub(super) fn set_back_ms(before: Timestamp, now: Timestamp) -> Option<i64> {
    Some(before.ms_since(now)).filter(|back_ms| *back_ms >= SET_BACK_MS_MIN)
}

/// Moves what waits along with a clock that was set back to `now`. The time that names the claim of a delivery stays as it
/// is: the process that holds the claim knows it by that.
pub(super) fn set_back(connection: &Connection, back_ms: i64, now: Timestamp) -> rusqlite::Result<()> {
    let move_all = |sql: &str| connection.prepare_cached(sql)?.execute([back_ms, now.as_ms()]);
    let runs = move_all("UPDATE task SET run_at = run_at - ?1 WHERE running = 1 AND holder = 0 AND run_at > ?2")?;
    let deliveries = move_all("UPDATE push SET due_at = due_at - ?1 WHERE due_at > ?2")?;
    tracing::warn!(
        back_ms,
        runs,
        deliveries,
        "the wall clock was set back; what waits goes on waiting as long as before"
    );
    Ok(())
}
