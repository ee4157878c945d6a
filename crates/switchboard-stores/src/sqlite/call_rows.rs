//! The rows of calls of agents to other agents. A row has its record as JSON (`record/call.rs`), and columns for what it is looked up by.

use rusqlite::{Connection, OptionalExtension, Row, params};
use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::ports::calls::CallRow;
use switchboard_engine::ports::store::TaskKey;

use super::error::Failure;
use super::rows::{SCOPE_COLUMN_COUNT, SCOPE_COLUMNS, mismatch, of_call, scope_from};
use crate::record::{CallColumns, decode_call, encode_call};

/// A call with its number and the checksum of its row.
pub(super) struct Found {
    pub(super) call_no: i64,
    pub(super) call: CallRow,
}

pub(super) fn select(condition: &str) -> String {
    format!(
        "SELECT {SCOPE_COLUMNS}, call.call_no, call.id, call.task_no, call.status, call.due_at, call.record, \
                call.checksum, task.id
           FROM call JOIN task USING (task_no) JOIN scope USING (scope_no) WHERE {condition}"
    )
}

pub(super) fn found(row: &Row<'_>) -> Result<Found, Failure> {
    const AT: usize = SCOPE_COLUMN_COUNT;
    let call_no = row.get(AT)?;
    let columns = CallColumns {
        scope: scope_from(row, 0)?,
        id: row.get(AT + 1)?,
        parent: TaskKey(row.get(AT + 2)?),
        status: row.get(AT + 3)?,
        due_at: row.get(AT + 4)?,
        parent_id: TaskId::from(row.get::<_, String>(AT + 7)?),
    };
    let record: String = row.get(AT + 5)?;
    let checksum = of_call(call_no, columns.parent.0, &columns.id, &columns.status, columns.due_at, &record);
    if checksum != row.get::<_, i64>(AT + 6)? {
        return Err(mismatch(format_args!("call {}", columns.id)));
    }
    Ok(Found { call_no, call: decode_call(columns, &record)? })
}

pub(super) fn call(connection: &Connection, id: &str) -> Result<Option<CallRow>, Failure> {
    Ok(find(connection, id)?.map(|found| found.call))
}

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Found>, Failure> {
    connection.prepare_cached(&select("call.id = ?1"))?.query_row([id], |row| Ok(found(row))).optional()?.transpose()
}

pub(super) fn calls_of(connection: &Connection, parent: TaskKey) -> Result<Vec<CallRow>, Failure> {
    let mut select = connection.prepare_cached(&select("call.task_no = ?1 ORDER BY call.call_no"))?;
    let mut rows = select.query([parent.0])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        calls.push(found(row)?.call);
    }
    Ok(calls)
}

/// Calls with their numbers, in the order of them.
#[cfg(feature = "postgres")]
pub(super) fn calls_after(connection: &Connection, after: i64, limit: i64) -> Result<Vec<(i64, CallRow)>, Failure> {
    let mut select = connection.prepare_cached(&select("call.call_no > ?1 ORDER BY call.call_no LIMIT ?2"))?;
    let mut rows = select.query([after, limit])?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        let Found { call_no, call } = found(row)?;
        calls.push((call_no, call));
    }
    Ok(calls)
}

/// When the next call is due.
pub(super) fn next_call_at(connection: &Connection) -> Result<Option<Timestamp>, Failure> {
    let mut select = connection.prepare_cached("SELECT min(due_at) FROM call WHERE due_at IS NOT NULL")?;
    let next: Option<i64> = select.query_row([], |row| row.get(0))?;
    Ok(next.map(Timestamp::from_ms))
}

pub(super) fn write_call(connection: &Connection, call_no: i64, call: &CallRow) -> rusqlite::Result<()> {
    let mut update = connection
        .prepare_cached("UPDATE call SET status = ?2, due_at = ?3, record = ?4, checksum = ?5 WHERE call_no = ?1")?;
    let (record, status, due_at) = (encode_call(call), call.status.word(), call.due_at.map(Timestamp::as_ms));
    let checksum = of_call(call_no, call.parent.0, &call.id, status, due_at, &record);
    update.execute(params![call_no, status, due_at, record, checksum])?;
    Ok(())
}

/// Changes all calls that are due at some time. A damaged row stays as it is.
fn change_due(connection: &Connection, change: impl Fn(&mut CallRow) -> bool) -> rusqlite::Result<usize> {
    let mut select = connection.prepare_cached(&select("call.due_at IS NOT NULL"))?;
    let mut rows = select.query([])?;
    let mut changed = Vec::new();
    while let Some(row) = rows.next()? {
        let Ok(Found { call_no, mut call }) = found(row) else { continue };
        if change(&mut call) {
            changed.push((call_no, call));
        }
    }
    drop(rows);
    for (call_no, call) in &changed {
        write_call(connection, *call_no, call)?;
    }
    Ok(changed.len())
}

/// The process that has claimed calls is gone.
pub(super) fn void_claims(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    change_due(connection, |call| call.void_claim(now)).map(drop)
}

/// Shifts the times of calls that wait after the clock was set back.
pub(super) fn set_calls_back(connection: &Connection, back_ms: i64) -> rusqlite::Result<usize> {
    change_due(connection, |call| call.set_back(back_ms))
}

/// Checks all calls, and reports each that is damaged. Returns how many there are.
pub(super) fn check_calls(connection: &Connection, report: &mut dyn FnMut(String)) -> Result<u64, Failure> {
    let mut select = connection.prepare(&select("TRUE"))?;
    let mut rows = select.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        if let Err(failure) = found(row) {
            let Some(reason) = failure.damage() else { return Err(failure) };
            report(reason.to_owned());
        }
    }
    Ok(count)
}
