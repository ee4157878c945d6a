//! Converts rows to the model's types and back. Rows that are read here have passed their checksums.

use rusqlite::Row;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::store::StoreError;

use super::checksums::{LogColumns, TaskColumns, mismatch, mistyped};
use super::error::Failure;
use super::schema::VERSION_BITS;
use super::unindexed::phase_of;
use crate::checksum::ContentHash;
use crate::record::{Chains, decode_artifacts, phase_from_number, signed, state_from_number, unsigned};

/// The columns of a task, in the order [`task_columns`] reads them.
pub(super) const TASK_COLUMNS: &str = "task.task_no, task.id, task.scope_no, task.context_id, task.phase, task.state, \
     task.status_at, task.version, task.seq, task.turns, task.turn, task.fence, task.attempt, task.cancel_requested, \
     task.push_configs, task.deadline, task.artifacts, task.story_version, task.artifact_version, task.status_version, \
     task.floor_seq, task.floor_version, task.running, task.holder, task.lease_until, task.run_at, task.created_at, \
     task.updated_at, task.closed_at, task.bytes, task.checksum";

/// The first column after the task's.
pub(super) const AFTER_TASK: usize = 31;

/// A row of the task table, if it matches its checksum.
pub(super) fn task_columns<'r>(row: &'r Row<'_>) -> Result<TaskColumns<'r>, Failure> {
    let columns = task_columns_unchecked(row)?;
    match row.get::<_, i64>(AFTER_TASK - 1)? == columns.checksum() {
        true => Ok(columns),
        false => Err(mismatch("its row")),
    }
}

pub(super) fn task_columns_unchecked<'r>(row: &'r Row<'_>) -> Result<TaskColumns<'r>, Failure> {
    let text = |column: usize| -> Result<&'r str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
    Ok(TaskColumns {
        task_no: row.get(0)?,
        id: text(1)?,
        scope_no: row.get(2)?,
        context_id: text(3)?,
        phase: row.get(4)?,
        state: row.get(5)?,
        status_at: row.get(6)?,
        version: row.get(7)?,
        seq: row.get(8)?,
        turns: row.get(9)?,
        turn: row.get(10)?,
        fence: row.get(11)?,
        attempt: row.get(12)?,
        cancel_requested: row.get(13)?,
        push_configs: row.get(14)?,
        deadline: row.get(15)?,
        artifacts: text(16)?,
        story_version: row.get(17)?,
        artifact_version: row.get(18)?,
        status_version: row.get(19)?,
        floor_seq: row.get(20)?,
        floor_version: row.get(21)?,
        running: row.get(22)?,
        holder: row.get(23)?,
        lease_until: row.get(24)?,
        run_at: row.get(25)?,
        created_at: row.get(26)?,
        updated_at: row.get(27)?,
        closed_at: row.get(28)?,
        bytes: row.get(29)?,
    })
}

pub(super) struct TaskRow {
    pub(super) task_no: i64,
    pub(super) head: Head,
    pub(super) chains: Chains,
}

/// The columns of a commit, given the chains before it, apart from its idempotency key.
pub(super) fn log_columns(task_no: i64, head: &Head, events: &[Event], before: Chains, at: Timestamp) -> LogColumns {
    let visible = events.iter().filter(|event| event.is_visible()).count();
    LogColumns {
        log_no: log_no(task_no, signed(head.version)),
        last_seq: signed(head.seq),
        visible: signed(visible as u64),
        prev_story: before.story,
        prev_artifact: before.artifact,
        at: at.as_ms(),
        accept_expires: None,
    }
}

/// The heads of the chains, as the row of a task has them.
pub(super) fn chains_of(columns: &TaskColumns<'_>) -> Chains {
    let TaskColumns { story_version, artifact_version, status_version, .. } = *columns;
    Chains { story: story_version, artifact: artifact_version, status: status_version }
}

/// Reads a task whose agent is already known.
pub(super) fn task_row(columns: &TaskColumns<'_>, agent: &AgentName) -> Result<TaskRow, Failure> {
    let small = |number: i64| {
        u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("{number} where a small count was written")))
    };
    let head = Head {
        id: columns.id.into(),
        context_id: columns.context_id.into(),
        agent: agent.clone(),
        phase: phase_from_number(phase_of(columns))?,
        state: state_from_number(columns.state)?,
        status_at: Timestamp::from_ms(columns.status_at),
        version: unsigned(columns.version),
        seq: unsigned(columns.seq),
        turns: small(columns.turns)?,
        turn: small(columns.turn)?,
        fence: unsigned(columns.fence),
        attempt: small(columns.attempt)?,
        running: columns.running != 0,
        cancel_requested: columns.cancel_requested != 0,
        push_configs: small(columns.push_configs)?,
        deadline: columns.deadline.map(Timestamp::from_ms),
        artifacts: decode_artifacts(columns.artifacts)?.into(),
    };
    Ok(TaskRow { task_no: columns.task_no, head, chains: chains_of(columns) })
}

/// The columns of a commit, in the order [`LogRow::read`] reads them.
pub(super) const LOG_COLUMNS: &str =
    "log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires, checksum, record";

/// The same for a commit that waits to be filed, with the checksum that it will have in the log. Such commits have no
/// idempotency key.
pub(super) const RECENT_COLUMNS: &str = "log_no, last_seq, visible, prev_story, prev_artifact, at, NULL, \
     (checksum | recent_no) & ~(checksum & recent_no), record";

/// A commit as it is stored.
pub(super) struct LogRow<'r> {
    pub(super) columns: LogColumns,
    pub(super) record: &'r str,
}

impl<'r> LogRow<'r> {
    /// Reads a row, if it matches its checksum.
    pub(super) fn read(row: &'r Row<'_>) -> Result<Self, Failure> {
        let found = Self::read_unchecked(row)?;
        let checksum = found.columns.checksum(ContentHash::of(found.record.as_bytes()));
        match row.get::<_, i64>(7)? == checksum {
            true => Ok(found),
            false => Err(mismatch(format_args!("commit {}", found.version()))),
        }
    }

    pub(super) fn read_unchecked(row: &'r Row<'_>) -> Result<Self, Failure> {
        let columns = LogColumns {
            log_no: row.get(0)?,
            last_seq: row.get(1)?,
            visible: row.get(2)?,
            prev_story: row.get(3)?,
            prev_artifact: row.get(4)?,
            at: row.get(5)?,
            accept_expires: row.get(6)?,
        };
        Ok(Self { columns, record: row.get_ref(8)?.as_str().map_err(mistyped)? })
    }

    pub(super) fn version(&self) -> i64 {
        version_of(self.columns.log_no)
    }
}

pub(super) fn log_no(task_no: i64, version: i64) -> i64 {
    task_no << VERSION_BITS | version
}

pub(super) fn version_of(log_no: i64) -> i64 {
    log_no & ((1 << VERSION_BITS) - 1)
}
