//! The parts of a head that are not plain columns, and the numbers that stand for states and phases. A number is never
//! reused for another meaning.

use serde::Deserialize;
use switchboard_core::dialect::json::{write_array, write_str, write_u64};
use switchboard_core::lifecycle::{ArtifactHead, AtCheckpoint, Phase};
use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::StoreError;

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

pub(crate) fn decode_artifacts(text: &str) -> Result<Vec<ArtifactHead>, StoreError> {
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
