//! Large artifacts that are left out of a task's view, and their bytes for downloads. Everything is in memory already;
//! leaving them out saves the copy.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use switchboard_core::lifecycle::{Event, Folded};
use switchboard_core::model::{Artifact, ArtifactId, TaskId, content_bytes};

use super::tables::{Record, Tables};
use crate::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use crate::ports::outline::{Outline, PartKind, too_large};
use crate::ports::store::{Scope, StoreError, StoredTask, TaskKey};

/// The version of a record after its first commit.
const FIRST_VERSION: u64 = 1;

impl Record {
    /// The record, without artifact contents that do not fit into `bytes_max` bytes.
    pub(super) fn stored_within(&self, key: TaskKey, bytes_max: u64) -> StoredTask {
        let too_large = too_large(&self.head, bytes_max);
        if too_large.is_empty() {
            return self.stored(key);
        }
        let mut folded = Folded::clone(&self.folded);
        let mut outlined = Vec::new();
        for artifact in &mut Arc::make_mut(&mut folded.task).artifacts {
            if too_large.iter().any(|head| head.id == artifact.artifact_id) {
                let outline = Outline::of(artifact);
                *artifact = Arc::new(outline.bare().clone());
                outlined.push(outline);
            }
        }
        StoredTask { key, head: self.head.clone(), folded: Arc::new(folded), outlined }
    }

    /// Notes the artifacts that a commit begins or replaces.
    pub(super) fn note_begun(&mut self, version: u64, events: &[Event]) {
        for event in events {
            let Event::ArtifactWritten { artifact, append, .. } = event else { continue };
            if !append && version > FIRST_VERSION {
                self.begun.insert(artifact.artifact_id.clone(), version);
            }
        }
    }

    /// The commit that began the artifact or last replaced it.
    fn begun(&self, artifact: &ArtifactId) -> u64 {
        self.begun.get(artifact).copied().unwrap_or(FIRST_VERSION)
    }
}

impl Tables {
    pub(super) fn artifact(
        &self,
        scope: &Scope,
        id: &TaskId,
        artifact: &ArtifactId,
        part: Option<u64>,
    ) -> Option<StoredArtifact> {
        let (key, record) = self.find(scope, id)?;
        let found = record.folded.task.artifact(artifact.as_str())?;
        let number = usize::try_from(part.unwrap_or(0)).ok()?;
        let first = found.parts.get(number)?;
        let start = if part.is_some() { content_bytes(&found.parts[..number]) } else { 0 };
        let bytes = if part.is_some() { first.content_bytes() as u64 } else { content_bytes(&found.parts) };
        let media_type = || PartKind::of(&first.content).media_type().to_owned();
        Some(StoredArtifact {
            key,
            artifact: artifact.clone(),
            begun: record.begun(artifact),
            version: record.head.version,
            range: start..start + bytes,
            filename: first.filename.clone(),
            media_type: first.media_type.clone().unwrap_or_else(media_type),
            positions: [ReadPosition { at: 0, start: 0 }].into(),
        })
    }

    /// A position is the number of a part and the offset at which it begins.
    pub(super) fn read_artifact(&self, cursor: ArtifactCursor, bytes_max: usize) -> Result<ArtifactPiece, StoreError> {
        let record = self.records.get(&cursor.key).ok_or(StoreError::Pruned)?;
        if record.begun(&cursor.artifact) != cursor.begun {
            return Err(StoreError::Pruned);
        }
        let found = record.folded.task.artifact(cursor.artifact.as_str()).ok_or(StoreError::Pruned)?;
        let mut next = cursor;
        let bytes = read(found, &mut next, bytes_max);
        Ok(ArtifactPiece { bytes, next })
    }
}

fn read(artifact: &Artifact, cursor: &mut ArtifactCursor, bytes_max: usize) -> Bytes {
    let mut out = BytesMut::new();
    let first = usize::try_from(cursor.position.at).unwrap_or(usize::MAX);
    for part in artifact.parts.iter().skip(first) {
        if cursor.is_at_end() || out.len() >= bytes_max {
            break;
        }
        let content = part.content_as_bytes();
        let until = usize::try_from(cursor.until - cursor.position.start).unwrap_or(usize::MAX).min(content.len());
        let from = usize::try_from(cursor.from - cursor.position.start).unwrap_or(usize::MAX).min(until);
        let end = until.min(from.saturating_add(bytes_max - out.len()));
        out.extend_from_slice(&content[from..end]);
        cursor.from += (end - from) as u64;
        if end == content.len() {
            cursor.position =
                ReadPosition { at: cursor.position.at + 1, start: cursor.position.start + content.len() as u64 };
        }
    }
    out.freeze()
}
