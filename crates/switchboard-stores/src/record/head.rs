//! The head of a task as columns: what every store keeps in the row of a task, and how it becomes the model's type again.
//! The numbers that stand for states and phases are part of the format: a number is never reused for another meaning.

use serde::Deserialize;
use switchboard_core::dialect::json::{write_array, write_str, write_u64};
use switchboard_core::lifecycle::{ArtifactHead, AtCheckpoint, Head, Phase};
use switchboard_core::model::{AgentName, TaskState, Timestamp};
use switchboard_engine::ports::store::StoreError;

use super::folding::{signed, unsigned};
use crate::checksum::Checksum;

/// The columns of a head. Its agent is not among them, because it belongs to the scope of the task.
#[derive(Clone, Copy)]
pub(crate) struct HeadColumns<'r> {
    pub(crate) id: &'r str,
    pub(crate) context_id: &'r str,
    pub(crate) phase: i64,
    pub(crate) state: i64,
    pub(crate) status_at: i64,
    pub(crate) version: i64,
    pub(crate) seq: i64,
    pub(crate) turns: i64,
    pub(crate) turn: i64,
    pub(crate) fence: i64,
    pub(crate) attempt: i64,
    pub(crate) running: i64,
    pub(crate) cancel_requested: i64,
    pub(crate) push_configs: i64,
    pub(crate) deadline: Option<i64>,
    /// As [`encode_artifacts`] writes them.
    pub(crate) artifacts: &'r str,
}

impl<'r> HeadColumns<'r> {
    /// `artifacts` is the stored form of the head's artifacts.
    pub(crate) fn of(head: &'r Head, artifacts: &'r str) -> Self {
        // All fields are named here, so that the compiler reports an added field.
        let Head {
            id,
            context_id,
            agent: _,
            phase,
            state,
            status_at,
            version,
            seq,
            turns,
            turn,
            fence,
            attempt,
            running,
            cancel_requested,
            push_configs,
            deadline,
            artifacts: _,
        } = head;
        Self {
            id: id.as_str(),
            context_id: context_id.as_str(),
            phase: phase_number(*phase),
            state: state_number(*state),
            status_at: status_at.as_ms(),
            version: signed(*version),
            seq: signed(*seq),
            turns: (*turns).into(),
            turn: (*turn).into(),
            fence: signed(*fence),
            attempt: (*attempt).into(),
            running: (*running).into(),
            cancel_requested: (*cancel_requested).into(),
            push_configs: (*push_configs).into(),
            deadline: deadline.map(Timestamp::as_ms),
            artifacts,
        }
    }

    /// The head, of which the agent is already known.
    pub(crate) fn into_head(self, agent: &AgentName) -> Result<Head, StoreError> {
        let small = |number: i64| {
            u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("{number} where a small count was written")))
        };
        Ok(Head {
            id: self.id.into(),
            context_id: self.context_id.into(),
            agent: agent.clone(),
            phase: phase_from_number(self.phase)?,
            state: state_from_number(self.state)?,
            status_at: Timestamp::from_ms(self.status_at),
            version: unsigned(self.version),
            seq: unsigned(self.seq),
            turns: small(self.turns)?,
            turn: small(self.turn)?,
            fence: unsigned(self.fence),
            attempt: small(self.attempt)?,
            running: self.running != 0,
            cancel_requested: self.cancel_requested != 0,
            push_configs: small(self.push_configs)?,
            deadline: self.deadline.map(Timestamp::from_ms),
            artifacts: decode_artifacts(self.artifacts)?.into(),
        })
    }

    /// Adds the numbers from the phase to the attempt to the checksum of a row. Each store adds the other columns in an order of its own.
    pub(crate) fn add_progress(&self, checksum: Checksum) -> Checksum {
        let Self { phase, state, status_at, version, seq, turns, turn, fence, attempt, .. } = *self;
        let numbers = [phase, state, status_at, version, seq, turns, turn, fence, attempt];
        numbers.into_iter().fold(checksum, Checksum::number)
    }
}

pub(crate) fn state_number(state: TaskState) -> i64 {
    match state {
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
        // No task of ours stands so, and the number of none is read as damage.
        TaskState::Unspecified => 0,
    }
}

pub(crate) fn state_from_number(number: i64) -> Result<TaskState, StoreError> {
    let known = TaskState::ALL.into_iter().find(|state| state_number(*state) == number);
    known.ok_or_else(|| StoreError::Corrupt(format!("task state {number} is unknown")))
}

pub(crate) fn phase_number(phase: Phase) -> i64 {
    match phase {
        Phase::Unborn => 0,
        Phase::Live => 1,
        Phase::Replied => 2,
    }
}

pub(crate) fn phase_from_number(number: i64) -> Result<Phase, StoreError> {
    let known = [Phase::Unborn, Phase::Live, Phase::Replied].into_iter().find(|phase| phase_number(*phase) == number);
    known.ok_or_else(|| StoreError::Corrupt(format!("phase {number} is unknown")))
}

/// One row per artifact: id, parts, bytes, and the turn, attempt and fence that wrote last; then, if a checkpoint recorded
/// them, its parts, bytes, the task's last event then, and whether (1) or not (0) it is unchanged since. Rows that end
/// with the attempt were written before the fence was recorded.
pub(crate) fn encode_artifacts(artifacts: &[ArtifactHead]) -> String {
    let mut out = Vec::with_capacity(2 + artifacts.len() * 64);
    write_array(&mut out, artifacts, |out, artifact| {
        out.push(b'[');
        write_str(out, artifact.id.as_str());
        let written = [artifact.parts, artifact.bytes, artifact.turn.into(), artifact.attempt.into()];
        let has_fence = artifact.fence > 0 || artifact.checkpoint.is_some();
        let recorded = artifact
            .checkpoint
            .map(|AtCheckpoint { parts, bytes, seq, unchanged }| [parts, bytes, seq, unchanged.into()]);
        let fence = has_fence.then_some(artifact.fence);
        for number in written.into_iter().chain(fence).chain(recorded.into_iter().flatten()) {
            out.push(b',');
            write_u64(out, number);
        }
        out.push(b']');
    });
    String::from_utf8(out).expect("JSON is text")
}

pub(super) fn decode_artifacts(text: &str) -> Result<Vec<ArtifactHead>, StoreError> {
    #[derive(Deserialize)]
    struct Row(
        String,
        u64,
        u64,
        u32,
        u32,
        #[serde(default)] u64,
        #[serde(default)] Option<u64>,
        #[serde(default)] u64,
        #[serde(default)] u64,
        #[serde(default)] u8,
    );

    if text == "[]" {
        return Ok(Vec::new());
    }
    let rows: Vec<Row> =
        serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("artifact heads: {error}")))?;
    let head = |Row(id, parts, bytes, turn, attempt, fence, then_parts, then_bytes, seq, unchanged)| {
        let at_checkpoint = |parts| AtCheckpoint { parts, bytes: then_bytes, seq, unchanged: unchanged != 0 };
        let checkpoint = then_parts.map(at_checkpoint);
        ArtifactHead { id: String::into(id), parts, bytes, turn, attempt, fence, checkpoint }
    };
    Ok(rows.into_iter().map(head).collect())
}
