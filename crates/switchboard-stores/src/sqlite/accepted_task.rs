//! A task as it was when a message was accepted. Every log row contains the heads of the chains before it, so the
//! commits to fold are found as for the present task, and later commits are not read.

use rusqlite::Connection;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::{Accepted, AcceptedTask, Scope, StoreError};

use super::error::Failure;
use super::fold::{Chunks, commit_sql};
use super::outlined::fold_earlier_within;
use super::read::{at_once, find, first_version_after};
use super::rows::{LOG_COLUMNS, LogColumns, LogRow, TaskRow, log_no};
use crate::record::{Accepting, Want, decode, missing, sets_status, signed, unsigned};

/// How many commits, and bytes of records, are searched for the status of that time.
const COMMITS_MAX: usize = 65_536;
const RECORD_BYTES_MAX: usize = 64 << 20;

pub(super) fn task_as_accepted(
    connection: &Connection,
    scope: &Scope,
    accepted: &Accepted,
    bytes_max: u64,
) -> Result<Option<AcceptedTask>, Failure> {
    at_once(connection, || {
        let Some(row) = find(connection, scope, &accepted.task_id)? else { return Ok(None) };
        let (accepting, floor_version) = find_accepting(connection, &row, accepted)?;
        let status = status_at(connection, row.task_no, accepting.version, floor_version)?;
        let row = TaskRow { chains: accepting.chains(status), ..row };
        Ok(Some(accepting.finish(fold_earlier_within(connection, row, bytes_max)?, status)))
    })
}

/// A message that ended a pause is in the first commit after `after_seq`. A message that had to wait is in an
/// earlier commit on the chain of commits that readers fold; only other waiting messages are in between. With it comes the version up to which
/// commits may have been removed.
fn find_accepting(connection: &Connection, row: &TaskRow, accepted: &Accepted) -> Result<(Accepting, i64), Failure> {
    let (task_no, after_seq) = (row.task_no, signed(accepted.after_seq));
    let mut floor = connection.prepare_cached("SELECT floor_seq, floor_version FROM task WHERE task_no = ?1")?;
    let (floor_seq, floor_version): (i64, i64) = floor.query_row([task_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if after_seq < floor_seq {
        return Err(StoreError::Pruned.into());
    }
    let mut version = match accepted.after_seq < row.head.seq {
        true => first_version_after(connection, task_no, after_seq, floor_version + 1..=signed(row.head.version))?,
        false => row.chains.story,
    };
    let mut select = connection.prepare_cached(&commit_sql())?;
    while version > 0 {
        let mut rows = select.query([log_no(task_no, version)])?;
        let found = LogRow::read(rows.next()?.ok_or_else(|| missing(task_no, version))?)?;
        let LogColumns { last_seq: seq, prev_story, prev_artifact, at, .. } = found.columns;
        if seq < after_seq {
            break;
        }
        if let Some(waited) = accepted.waited_in(&decode(found.record, Want::NoArtifacts, &Chunks(connection))?) {
            let (seq, at) = (unsigned(seq), Timestamp::from_ms(at));
            return Ok((Accepting { version, prev_artifact, seq, at, waited }, floor_version));
        }
        version = prev_story;
    }
    Err(Accepting::missing(task_no, accepted).into())
}

/// The commit that had set the status at that time; none if it is too far back. Between the two are only artifact
/// writes, which a reader folds anyway, and commits that readers need not fold.
fn status_at(connection: &Connection, task_no: i64, version: i64, floor_version: i64) -> Result<Option<i64>, Failure> {
    let sql = format!("SELECT {LOG_COLUMNS} FROM log WHERE log_no BETWEEN ?1 AND ?2 ORDER BY log_no DESC");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([log_no(task_no, 1), log_no(task_no, version)])?;
    let (mut bytes, mut next) = (0, version);
    for _ in 0..COMMITS_MAX {
        let Some(row) = rows.next()?.filter(|_| bytes <= RECORD_BYTES_MAX) else { break };
        let found = LogRow::read(row)?;
        if found.version() != next && next > floor_version {
            return Err(missing(task_no, next).into());
        }
        if sets_status(found.record)? {
            return Ok(Some(found.version()));
        }
        next = found.version() - 1;
        bytes += found.record.len();
    }
    Ok(None)
}
