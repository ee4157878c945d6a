//! Writes a commit into its stored form, and reads it back. A record that cannot be read is reported as corrupt, because
//! this crate wrote it.

use switchboard_core::dialect::json::append;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::content_bytes;
use switchboard_engine::ports::store::StoreError;

use super::FORMAT;
use super::chunks::{Chunk, ChunkSource, Chunker};
use super::form::{StoredCommit, StoredEvent};
use crate::checksum::ContentHash;

pub(crate) struct Encoded {
    pub(crate) record: String,
    pub(crate) record_hash: ContentHash,
    pub(crate) chunks: Vec<Chunk>,
}

/// Encodes a commit. `take_numbers` reserves new chunk numbers and returns the first.
pub(crate) fn encode(events: &[Event], head: &Head, take_numbers: &dyn Fn(usize) -> i64) -> Encoded {
    let mut chunker = Chunker { chunks: Vec::new(), take_numbers };
    let stored = events
        .iter()
        .enumerate()
        .map(|(at, event)| StoredEvent::of(event, &mut chunker, || written_before(events, at, head)))
        .collect();
    let mut record = Vec::with_capacity(1024);
    append(&mut record, &StoredCommit { format: FORMAT, events: stored }).expect("a commit is JSON");
    let record = String::from_utf8(record).expect("JSON is text");
    let record_hash = ContentHash::of(record.as_bytes());
    Encoded { record, record_hash, chunks: chunker.chunks }
}

/// How many parts and bytes the artifact held before the write at `at`: what it holds after the commit, less what this
/// write and later ones added.
fn written_before(events: &[Event], at: usize, head: &Head) -> (u64, u64) {
    let Event::ArtifactWritten { artifact: written, .. } = &events[at] else { return (0, 0) };
    let Some(known) = head.artifact(written.artifact_id.as_str()) else { return (0, 0) };
    let (mut parts, mut bytes) = (known.parts, known.bytes);
    for event in events[at..].iter().rev() {
        let Event::ArtifactWritten { artifact, append, .. } = event else { continue };
        if artifact.artifact_id != written.artifact_id {
            continue;
        }
        if !append {
            // A replacing write begins the content again, so nothing precedes it.
            (parts, bytes) = (artifact.parts.len() as u64, content_bytes(&artifact.parts));
        }
        parts = parts.saturating_sub(artifact.parts.len() as u64);
        bytes = bytes.saturating_sub(content_bytes(&artifact.parts));
    }
    (parts, bytes)
}

/// Which events of a record to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Everything,
    /// All events but artifact writes; the contents of those are not read.
    NoArtifacts,
}

pub(crate) fn decode(record: &str, want: Want, chunks: &dyn ChunkSource) -> Result<Vec<Event>, StoreError> {
    let stored = parse_commit(record)?;
    let wanted = |event: &StoredEvent<'_>| want == Want::Everything || !matches!(event, StoredEvent::Artifact { .. });
    stored.events.into_iter().filter(wanted).map(|event| event.into_event(chunks)).collect()
}

/// Whether a commit set the task's status. No contents are read.
pub(crate) fn sets_status(record: &str) -> Result<bool, StoreError> {
    // Most commits do not, and a text search shows that without parsing.
    if !record.contains("\"status\"") && !record.contains("\"opened\"") {
        return Ok(false);
    }
    let sets = |event: &StoredEvent<'_>| matches!(event, StoredEvent::Status { .. } | StoredEvent::Opened { .. });
    Ok(parse_commit(record)?.events.iter().any(sets))
}

/// Whether a commit contains only a checkpoint and artifact writes. The record is searched and not parsed, because a
/// commit waits for the answer. Every other event begins with one of these texts, as `encode` writes them. If a content
/// looks like one of them, the answer is no, and readers fold one more commit than necessary.
pub(crate) fn is_only_checkpoint_and_artifacts(record: &str) -> bool {
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
