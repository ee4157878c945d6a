//! The parts of a head that are not plain columns, and the numbers that stand for closed sets. A number once given is
//! never given to anything else.

use serde::Deserialize;
use switchboard_core::lifecycle::{ArtifactHead, Phase};
use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::StoreError;

use super::json::JsonText;

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

/// One row per artifact: id, parts, bytes, turn, attempt.
pub(crate) fn encode_artifacts(artifacts: &[ArtifactHead]) -> String {
    let mut json = JsonText::with_capacity(2 + artifacts.len() * 64);
    json.open('[');
    for artifact in artifacts {
        json.open('[').string(artifact.id.as_str()).number(artifact.parts).number(artifact.bytes);
        json.number(artifact.turn.into()).number(artifact.attempt.into()).close(']');
    }
    json.close(']');
    json.finish()
}

pub(crate) fn decode_artifacts(text: &str) -> Result<Vec<ArtifactHead>, StoreError> {
    #[derive(Deserialize)]
    struct Row(String, u64, u64, u32, u32);

    if text == "[]" {
        return Ok(Vec::new());
    }
    let rows: Vec<Row> =
        serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("artifact heads: {error}")))?;
    let head = |Row(id, parts, bytes, turn, attempt)| ArtifactHead { id: id.into(), parts, bytes, turn, attempt };
    Ok(rows.into_iter().map(head).collect())
}
