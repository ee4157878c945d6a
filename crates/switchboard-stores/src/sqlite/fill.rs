//! Changes the rows of files of older builds: adds checksums to those that were written before checksums existed, and counts the bytes
//! of tasks. Adding checksums does not find earlier damage.
//! Rows are read and written in batches, so that a file of any size needs little memory.

use rusqlite::{Connection, Row, params};

use super::error::Failure;
use super::fold::{CHUNK_COLUMNS, ChunkRow};
use super::idempotency::{ACCEPTED_COLUMNS, accepted_columns_unchecked};
use super::push_rows::{PUSH_COLUMNS, push_columns_unchecked};
use super::rows::{
    AFTER_TASK, LOG_COLUMNS, LogRow, TASK_COLUMNS, TaskColumns, mistyped, of_meta, of_push_times, of_scope,
    task_columns_unchecked,
};
use super::usage::bytes_of_task;
use crate::checksum::ContentHash;

/// How many rows are read before they are written.
const ROWS_MAX: i64 = 1024;

pub(super) fn add_checksums(connection: &Connection) -> Result<(), Failure> {
    fill_meta(connection)?;
    fill(connection, "scope.checksum", "scope_no, tenant, principal, agent", |row| {
        let text = |column: usize| -> Result<&str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
        Ok(of_scope(row.get(0)?, [text(1)?, text(2)?, text(3)?]))
    })?;
    let columns = TASK_COLUMNS.replace("task.bytes", "0");
    fill(connection, "task.checksum", &columns, |row| Ok(task_columns_unchecked(row)?.checksum_without_bytes()))?;
    fill(connection, "log.checksum", LOG_COLUMNS, |row| {
        let found = LogRow::read_unchecked(row)?;
        Ok(found.columns.checksum(ContentHash::of(found.record.as_bytes())))
    })?;
    fill(connection, "chunk.checksum", CHUNK_COLUMNS, |row| {
        let found = ChunkRow::read_unchecked(row)?;
        Ok(found.columns.checksum(ContentHash::of(found.bytes)))
    })?;
    fill(connection, "push.checksum", PUSH_COLUMNS, |row| Ok(push_columns_unchecked(row)?.checksum()))?;
    fill(connection, "push.times_checksum", "push_no, due_at, claimed_until", |row| {
        Ok(of_push_times(row.get(1)?, row.get(2)?))
    })?;
    fill_accepted(connection)
}

/// Counts the bytes of each task. A damaged row is left as it is, so that it gets no valid checksum.
pub(super) fn count_bytes(connection: &Connection) -> Result<(), Failure> {
    let columns = TASK_COLUMNS.replace("task.bytes", "0");
    let sql = format!("SELECT {columns} FROM task WHERE task_no > ?1 ORDER BY task_no LIMIT ?2");
    let mut select = connection.prepare(&sql)?;
    let mut update = connection.prepare("UPDATE task SET bytes = ?2, checksum = ?3 WHERE task_no = ?1")?;
    let mut last = i64::MIN;
    loop {
        let mut found: Vec<(i64, i64, i64)> = Vec::new();
        let before = last;
        let mut rows = select.query([last, ROWS_MAX])?;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            let Ok(old) = task_columns_unchecked(row) else { continue };
            if row.get::<_, i64>(AFTER_TASK - 1)? == old.checksum_without_bytes() {
                let bytes = bytes_of_task(connection, old.task_no, old.head.push_configs)?;
                found.push((old.task_no, bytes, TaskColumns { bytes, ..old }.checksum()));
            }
        }
        if last == before {
            return Ok(());
        }
        for (task_no, bytes, checksum) in found {
            update.execute([task_no, bytes, checksum])?;
        }
    }
}

/// Gives every row of a file of the newest schema the checksum of what it holds now.
#[cfg(test)]
pub(super) fn renew_checksums(connection: &Connection) -> Result<(), Failure> {
    add_checksums(connection)?;
    fill(connection, "task.checksum", TASK_COLUMNS, |row| Ok(task_columns_unchecked(row)?.checksum()))
}

/// Fills a column, given as `table.column`, of a table whose key is one number: the first of `columns`.
fn fill(
    connection: &Connection,
    target: &str,
    columns: &str,
    checksum: impl Fn(&Row<'_>) -> Result<i64, Failure>,
) -> Result<(), Failure> {
    let (table, column) = target.split_once('.').unwrap_or((target, "checksum"));
    let mut select = connection
        .prepare(&format!("SELECT {columns} FROM {table} WHERE {table}.rowid > ?1 ORDER BY {table}.rowid LIMIT ?2"))?;
    let mut update = connection.prepare(&format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1"))?;
    let mut last = i64::MIN;
    loop {
        let mut found: Vec<(i64, i64)> = Vec::new();
        let before = last;
        let mut rows = select.query([last, ROWS_MAX])?;
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            match checksum(row) {
                Ok(checksum) => found.push((last, checksum)),
                // The row stays without a checksum, and reading it is an error. One bad row must not prevent the
                // migration of the others.
                Err(failure) => match failure.damage() {
                    Some(reason) => tracing::warn!(table, row = last, reason, "a damaged row is given no checksum"),
                    None => return Err(failure),
                },
            }
        }
        if last == before {
            return Ok(());
        }
        for (key, checksum) in found {
            update.execute([key, checksum])?;
        }
    }
}

fn fill_meta(connection: &Connection) -> Result<(), Failure> {
    let mut select = connection.prepare("SELECT name, value FROM meta")?;
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(String, i64)> = rows.collect::<rusqlite::Result<_>>()?;
    for (name, value) in rows {
        connection.execute("UPDATE meta SET checksum = ?2 WHERE name = ?1", params![name, of_meta(&name, value)])?;
    }
    Ok(())
}

fn fill_accepted(connection: &Connection) -> Result<(), Failure> {
    let sql = format!("SELECT {ACCEPTED_COLUMNS} FROM accepted WHERE (day, key) > (?1, ?2) ORDER BY day, key LIMIT ?3");
    let mut select = connection.prepare(&sql)?;
    let mut update = connection.prepare("UPDATE accepted SET checksum = ?3 WHERE day = ?1 AND key = ?2")?;
    let mut last = (i64::MIN, Vec::new());
    loop {
        let mut found: Vec<(i64, Vec<u8>, i64)> = Vec::new();
        let mut rows = select.query(params![last.0, last.1, ROWS_MAX])?;
        while let Some(row) = rows.next()? {
            let columns = accepted_columns_unchecked(row)?;
            found.push((columns.day, columns.key.to_vec(), columns.checksum()));
        }
        let Some((day, key, _)) = found.last() else { return Ok(()) };
        last = (*day, key.clone());
        for (day, key, checksum) in found {
            update.execute(params![day, key, checksum])?;
        }
    }
}
