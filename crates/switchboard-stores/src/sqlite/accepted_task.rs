//! A task as it was when a message was accepted. Every log row contains the heads of the chains before it, so the
//! commits to fold are found as for the present task, and later commits are not read.

use std::sync::Arc;

use rusqlite::Connection;
use switchboard_core::model::{TaskState, TaskStatus, Timestamp};
use switchboard_engine::ports::store::{Accepted, AcceptedTask, Scope, StoreError, StoredTask};

use super::checksums::LogColumns;
use super::error::Failure;
use super::fold::{Chunks, commit_sql};
use super::outlined::fold_earlier_within;
use super::read::{at_once, find, first_version_after};
use super::rows::{LOG_COLUMNS, LogRow, TaskRow, log_no};
use crate::record::{Chains, Want, decode, missing, sets_status, signed, unsigned};

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
        let accepting = Accepting::find(connection, &row, accepted)?;
        let status = status_at(connection, row.task_no, accepting.version, accepting.floor_version)?;
        let chains =
            Chains { story: accepting.version, artifact: accepting.prev_artifact, status: status.unwrap_or_default() };
        let StoredTask { folded, outlined, .. } =
            fold_earlier_within(connection, TaskRow { chains, ..row }, bytes_max)?;
        let mut task = folded.task.clone();
        if status.is_none() {
            // The status is too far back because the agent has only written artifacts since, so the task is working.
            let status = TaskStatus { state: TaskState::Working, message: None, timestamp: accepting.at };
            Arc::make_mut(&mut task).status = status;
        }
        Ok(Some(AcceptedTask { task, outlined, seq: accepting.seq, waited: accepting.waited }))
    })
}

/// The commit that accepted a message.
struct Accepting {
    version: i64,
    prev_artifact: i64,
    seq: u64,
    at: Timestamp,
    waited: bool,
    /// Commits up to this version may have been removed.
    floor_version: i64,
}

impl Accepting {
    /// A message that ended a pause is in the first commit after `after_seq`. A message that had to wait is in an
    /// earlier commit on the chain of commits that readers fold; only other waiting messages are in between.
    fn find(connection: &Connection, row: &TaskRow, accepted: &Accepted) -> Result<Self, Failure> {
        let (task_no, after_seq) = (row.task_no, signed(accepted.after_seq));
        let mut floor = connection.prepare_cached("SELECT floor_seq, floor_version FROM task WHERE task_no = ?1")?;
        let (floor_seq, floor_version): (i64, i64) =
            floor.query_row([task_no], |row| Ok((row.get(0)?, row.get(1)?)))?;
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
                return Ok(Self { version, prev_artifact, seq, at, waited, floor_version });
            }
            version = prev_story;
        }
        let reason = format!("no commit of task number {task_no} accepted the message of turn {}", accepted.turn);
        Err(StoreError::Corrupt(reason).into())
    }
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
