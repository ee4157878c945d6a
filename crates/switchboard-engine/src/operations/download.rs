//! Downloads: the bytes of one artifact. Not an operation of A2A, but what a link in a task leads to, under the same
//! rules: a foreign task is a missing task.

use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentName, ArtifactId, TaskId};

use crate::house::House;
use crate::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use crate::ports::room::PARTS_APART_MAX;
use crate::ports::store::{Scope, StoreError};

pub(crate) async fn artifact(
    house: &House,
    agent: &str,
    owner: &Owner,
    task: &TaskId,
    artifact: &ArtifactId,
    part: Option<u64>,
) -> Result<StoredArtifact, ProtocolError> {
    if part.is_some_and(|part| part >= PARTS_APART_MAX) {
        let last = PARTS_APART_MAX - 1;
        let description = format!("must be between 0 and {last}; an artifact of more parts is read as a whole");
        return Err(ProtocolError::invalid("part", description));
    }
    let scope = Scope { owner: owner.clone(), agent: AgentName::from(agent) };
    match house.store.artifact(&scope, task, artifact, part).await {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(ProtocolError::task_not_found(task)),
        Err(error) => Err(house.store_failed(&error)),
    }
}

/// Asks until there is something, or nothing more to come.
pub(crate) async fn read(
    house: &House,
    mut cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, ProtocolError> {
    loop {
        let piece = match house.store.read_artifact(cursor, bytes_max).await {
            Ok(piece) => piece,
            Err(StoreError::Pruned) => {
                let reason = "the artifact was replaced or removed while it was read; begin again".to_owned();
                return Err(ProtocolError::Unavailable { reason, retry_after_s: 1 });
            }
            Err(error) => return Err(house.store_failed(&error)),
        };
        if !piece.bytes.is_empty() || piece.next.is_at_end() {
            return Ok(piece);
        }
        cursor = piece.next;
    }
}
