//! The stored form back into events. What cannot be read is corruption: the record was written by this crate.

use switchboard_core::lifecycle::Event;
use switchboard_engine::ports::store::StoreError;

use super::FORMAT;
use super::chunks::ChunkSource;
use super::form::{StoredCommit, StoredEvent};

/// How much of a record is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Everything,
    /// All but artifact writes, whose contents are then not read either.
    NoArtifacts,
}

pub(crate) fn decode(record: &str, want: Want, chunks: &dyn ChunkSource) -> Result<Vec<Event>, StoreError> {
    let stored = parse_commit(record)?;
    let wanted = |event: &StoredEvent<'_>| want == Want::Everything || !matches!(event, StoredEvent::Artifact { .. });
    stored.events.into_iter().filter(wanted).map(|event| event.into_event(chunks)).collect()
}

/// Whether a commit set the task's status, told without reading any contents.
pub(crate) fn sets_status(record: &str) -> Result<bool, StoreError> {
    // Most do not, and that can be seen without parsing them.
    if !record.contains("\"status\"") && !record.contains("\"opened\"") {
        return Ok(false);
    }
    let sets = |event: &StoredEvent<'_>| matches!(event, StoredEvent::Status { .. } | StoredEvent::Opened { .. });
    Ok(parse_commit(record)?.events.iter().any(sets))
}

/// Whether a commit that wrote a checkpoint did nothing else, except to artifacts. Told without parsing it, since this is asked
/// while a commit waits: as `encode` spells them, every other event begins with one of these. A content that looks like one
/// makes the answer no, which costs a reader one more commit to fold.
pub(crate) fn is_checkpoint_apart_from_artifacts(record: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "{\"received\":{",
        "{\"opened\":{",
        "{\"message_added\":{",
        "{\"turn_began\":{",
        "{\"turn_ended\":{",
        "{\"status\":{",
        "{\"replied\":{",
        "{\"cancel_requested\":{",
        "{\"claimed\":{",
    ];
    record.contains("{\"checkpoint\":{") && !OTHERS.iter().any(|other| record.contains(other))
}

pub(super) fn parse_commit(record: &str) -> Result<StoredCommit<'_>, StoreError> {
    let stored: StoredCommit<'_> = serde_json::from_str(record).map_err(corrupt)?;
    if stored.format != FORMAT {
        return Err(corrupt(format!("format {} is not {FORMAT}, the only one known", stored.format)));
    }
    Ok(stored)
}

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("stored record: {error}"))
}
