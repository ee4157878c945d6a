//! Downloads of one artifact's bytes. This is no A2A operation, but what a link in a task leads to. The same rules
//! apply: another owner's task is reported as not found.

use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Phase, updates};
use switchboard_core::model::{AgentName, ArtifactId, TaskId, Update};

use crate::engine_state::EngineState;
use crate::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use crate::ports::outline::PARTS_APART_MAX;
use crate::ports::store::{Scope, StoreError};

pub(crate) async fn artifact(
    engine: &EngineState,
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
    match engine.store.artifact(&scope, task, artifact, part).await {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) => Err(ProtocolError::task_not_found(task)),
        Err(error) => Err(engine.store_failed(&error)),
    }
}

/// What one update of a task wrote to an artifact, whole or one part of it. The whole write is held in memory while it
/// is sent; a write is never larger than a reply.
pub(crate) async fn update(
    engine: &EngineState,
    agent: &str,
    owner: &Owner,
    task: &TaskId,
    artifact: &ArtifactId,
    seq: u64,
    part: Option<u64>,
) -> Result<WrittenUpdate, ProtocolError> {
    let scope = Scope { owner: owner.clone(), agent: AgentName::from(agent) };
    let missing = || ProtocolError::task_not_found(task);
    let stored = engine.store.head(&scope, task).await.map_err(|error| engine.store_failed(&error))?;
    let stored = stored.filter(|stored| stored.head.phase == Phase::Live).ok_or_else(missing)?;
    let after = seq.checked_sub(1).filter(|after| *after < stored.head.seq).ok_or_else(missing)?;
    let page = match engine.store.log(stored.key, after, 1).await {
        Ok(page) => page,
        Err(StoreError::Pruned) => {
            let reason = "is no longer kept by itself; fetch the artifact without it";
            return Err(ProtocolError::invalid("update", reason));
        }
        Err(error) => return Err(engine.store_failed(&error)),
    };
    let written = page.commits.iter().find_map(|commit| {
        let mut updates = updates(task, &stored.head.context_id, commit.first_seq, &commit.events);
        updates.find(|(number, _)| *number == seq)
    });
    match written {
        Some((_, Update::Artifact(update))) if update.artifact.artifact_id == *artifact => {
            WrittenUpdate::of(seq, &update.artifact, part).ok_or_else(missing)
        }
        Some(_) | None => Err(missing()),
    }
}

/// Reads until there are bytes, or the end is reached.
pub(crate) async fn read(
    engine: &EngineState,
    mut cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, ProtocolError> {
    loop {
        let piece = match engine.store.read_artifact(cursor, bytes_max).await {
            Ok(piece) => piece,
            Err(StoreError::Pruned) => {
                let reason = "the artifact was replaced or removed while it was read; begin again".to_owned();
                return Err(ProtocolError::Unavailable { reason, retry_after_s: 1 });
            }
            Err(error) => return Err(engine.store_failed(&error)),
        };
        if !piece.bytes.is_empty() || piece.next.is_at_end() {
            return Ok(piece);
        }
        cursor = piece.next;
    }
}
