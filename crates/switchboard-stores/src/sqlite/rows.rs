//! Rows of the task table as the model's types, and back.

use rusqlite::Row;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::store::StoreError;

use super::error::Failure;
use super::schema::VERSION_BITS;
use crate::record::{decode_artifacts, phase_from_number, state_from_number};

/// The columns of a head, in the order [`head_from`] reads them; then where its log is to be read.
pub(super) const HEAD_COLUMNS: &str = "task.task_no, task.id, task.context_id, task.phase, task.state, task.status_at, \
     task.version, task.seq, task.turns, task.turn, task.fence, task.attempt, task.running, task.cancel_requested, \
     task.push_configs, task.deadline, task.artifacts, task.story_version, task.artifact_version, task.status_version";

/// The first column after the head's.
pub(super) const AFTER_HEAD: usize = 20;

pub(super) struct TaskRow {
    pub(super) task_no: i64,
    pub(super) head: Head,
    pub(super) chains: Chains,
}

/// Where the commits that a reader must fold begin, newest first. Each log row says where its chain goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chains {
    pub(super) story: i64,
    pub(super) artifact: i64,
    pub(super) status: i64,
}

impl Chains {
    /// Where reading starts after one more commit.
    pub(super) fn after(self, version: i64, events: &[Event], folds: bool) -> Self {
        let writes_artifact = |event: &Event| matches!(event, Event::ArtifactWritten { .. });
        let sets_status = |event: &Event| matches!(event, Event::Opened { .. } | Event::StatusChanged { .. });
        let mut after = self;
        if events.iter().any(writes_artifact) {
            after.artifact = version;
        }
        if folds && !events.iter().all(writes_artifact) {
            after.story = version;
        }
        if events.iter().any(sets_status) {
            after.status = version;
        }
        after
    }
}

pub(super) fn head_from(row: &Row<'_>, agent: &AgentName) -> Result<TaskRow, Failure> {
    let text = |column: usize| -> Result<&str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
    let head = Head {
        id: text(1)?.into(),
        context_id: text(2)?.into(),
        agent: agent.clone(),
        phase: phase_from_number(row.get(3)?)?,
        state: state_from_number(row.get(4)?)?,
        status_at: Timestamp::from_ms(row.get(5)?),
        version: unsigned(row.get(6)?),
        seq: unsigned(row.get(7)?),
        turns: row.get(8)?,
        turn: row.get(9)?,
        fence: unsigned(row.get(10)?),
        attempt: row.get(11)?,
        running: row.get(12)?,
        cancel_requested: row.get(13)?,
        push_configs: row.get(14)?,
        deadline: row.get::<_, Option<i64>>(15)?.map(Timestamp::from_ms),
        artifacts: decode_artifacts(text(16)?)?.into(),
    };
    let chains = Chains { story: row.get(17)?, artifact: row.get(18)?, status: row.get(19)? };
    Ok(TaskRow { task_no: row.get(0)?, head, chains })
}

fn mistyped(error: rusqlite::types::FromSqlError) -> Failure {
    Failure(StoreError::Corrupt(error.to_string()))
}

/// SQLite's numbers end at 2^63; no count of ours gets there.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn log_no(task_no: i64, version: i64) -> i64 {
    task_no << VERSION_BITS | version
}

pub(super) fn version_of(log_no: i64) -> i64 {
    log_no & ((1 << VERSION_BITS) - 1)
}
