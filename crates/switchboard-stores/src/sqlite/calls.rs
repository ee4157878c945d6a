//! The calls of agents to other agents. A row has its record as JSON (`record/call.rs`), and columns for what it is looked up by.

use rusqlite::{Connection, OptionalExtension, Row, params};
use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::ports::calls::{CallRow, CallStep};
use switchboard_engine::ports::store::TaskKey;

use super::deliveries::{SCOPE_COLUMN_COUNT, SCOPE_COLUMNS, scope_from};
use super::error::Failure;
use super::ledger::Ledger;
use super::rows::{mismatch, of_call};
use crate::record::{CallColumns, decode_call, encode_call, signed};

/// A call with its number and the checksum of its row.
struct Found {
    call_no: i64,
    call: CallRow,
}

fn select(condition: &str) -> String {
    format!(
        "SELECT {SCOPE_COLUMNS}, call.call_no, call.id, call.task_no, call.status, call.due_at, call.record, \
                call.checksum, task.id
           FROM call JOIN task USING (task_no) JOIN scope USING (scope_no) WHERE {condition}"
    )
}

fn found(row: &Row<'_>) -> Result<Found, Failure> {
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

fn find(connection: &Connection, id: &str) -> Result<Option<Found>, Failure> {
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

impl Ledger<'_> {
    pub(super) fn open_call(&mut self, call: &CallRow) -> Result<CallRow, Failure> {
        if let Some(known) = find(self.connection, &call.id)? {
            return Ok(known.call);
        }
        let mut next = self.connection.prepare_cached("SELECT coalesce(max(call_no), 0) + 1 FROM call")?;
        let call_no: i64 = next.query_row([], |row| row.get(0))?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO call (call_no, id, task_no, status, due_at, record, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let (record, status, due_at) = (encode_call(call), call.status.word(), call.due_at.map(Timestamp::as_ms));
        let checksum = of_call(call_no, call.parent.0, &call.id, status, due_at, &record);
        insert.execute(params![call_no, call.id, call.parent.0, status, due_at, record, checksum])?;
        self.count_rows(1, record.len());
        self.count_call(call.parent.0, signed(call.stored_bytes()))?;
        Ok(call.clone())
    }

    pub(super) fn change_call(&mut self, id: &str, step: &CallStep) -> Result<Option<CallRow>, Failure> {
        let Some(Found { call_no, mut call }) = find(self.connection, id)? else { return Ok(None) };
        let before = signed(call.stored_bytes());
        if !call.apply(step, self.now) {
            return Ok(None);
        }
        self.count_rows(1, 0);
        write_call(self.connection, call_no, &call)?;
        self.count_call(call.parent.0, signed(call.stored_bytes()) - before)?;
        Ok(Some(call))
    }

    /// Counts bytes that the calls of a task have more than before.
    fn count_call(&mut self, task_no: i64, change: i64) -> Result<(), Failure> {
        if change == 0 {
            return Ok(());
        }
        let mut select = self.connection.prepare_cached("SELECT scope_no FROM task WHERE task_no = ?1")?;
        match select.query_row([task_no], |row| row.get(0)).optional()? {
            Some(scope_no) => self.count_stored(scope_no, change),
            None => Ok(()),
        }
    }

    pub(super) fn claim_calls(
        &mut self,
        only: Option<&str>,
        limit: usize,
        claim_ms: u32,
    ) -> Result<Vec<CallRow>, Failure> {
        let sql = select("call.due_at <= ?1 AND (?3 IS NULL OR call.id = ?3) ORDER BY call.due_at LIMIT ?2");
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query(params![self.now.as_ms(), signed(limit as u64), only])?;
        let mut due = Vec::new();
        while let Some(row) = rows.next()? {
            match found(row) {
                Ok(found) => due.push(found),
                // The others are claimed all the same; `verify` reports this one.
                Err(failure) if failure.damage().is_some() => {
                    tracing::error!(error = ?failure.0, "a call cannot be read and is passed over");
                }
                Err(failure) => return Err(failure),
            }
        }
        drop(rows);
        let mut claimed = Vec::with_capacity(due.len());
        for Found { call_no, mut call } in due {
            if call.claim(self.now, claim_ms) {
                write_call(self.connection, call_no, &call)?;
                claimed.push(call);
            }
        }
        self.count_rows(claimed.len(), 0);
        Ok(claimed)
    }
}

fn write_call(connection: &Connection, call_no: i64, call: &CallRow) -> rusqlite::Result<()> {
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
