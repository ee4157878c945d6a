//! The calls of agents to other agents, as the writer changes them.

use rusqlite::{OptionalExtension, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::calls::{CallRow, CallStep};

use super::Ledger;
use crate::record::{encode_call, signed};
use crate::sqlite::call_rows::{Found, find, found, select, write_call};
use crate::sqlite::error::Failure;
use crate::sqlite::rows::of_call;

impl Ledger<'_> {
    pub(crate) fn open_call(&mut self, call: &CallRow) -> Result<CallRow, Failure> {
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

    pub(crate) fn change_call(&mut self, id: &str, step: &CallStep) -> Result<Option<CallRow>, Failure> {
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
            Some(scope_no) => self.usage.count(self.connection, scope_no, change),
            None => Ok(()),
        }
    }

    pub(crate) fn claim_calls(
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
