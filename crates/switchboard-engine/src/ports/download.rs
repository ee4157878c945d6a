//! Reading the bytes of one artifact piece by piece, and the addresses under which clients download them. A reader sees
//! the artifact as it was when the reader opened it. Later writes do not change that, and a slow reader holds only a
//! cursor.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use switchboard_core::model::{Artifact, ArtifactId, Part, PartContent, TaskId};

use super::common::{Scope, TaskKey};
use super::outline::PartKind;

/// An artifact, or one part of it, as it was when a reader opened it.
#[derive(Clone, Debug)]
pub struct StoredArtifact {
    pub key: TaskKey,
    pub artifact: ArtifactId,
    /// The commit that began the artifact's content; a later number means that the artifact was replaced.
    pub begun: u64,
    /// The task's version when the reader opened the artifact.
    pub version: u64,
    /// The range of the content within all bytes of the artifact.
    pub range: Range<u64>,
    /// Taken from the first part that was requested.
    pub filename: Option<String>,
    pub media_type: String,
    /// Commits to read from, sorted by the offset at which their bytes begin; the first is at the start. The store
    /// chooses how many there are.
    pub positions: Arc<[ReadPosition]>,
}

/// What one update wrote to an artifact, or one part of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenUpdate {
    /// The number of the update.
    pub seq: u64,
    pub bytes: Bytes,
    /// Taken from the first part that was requested.
    pub filename: Option<String>,
    pub media_type: String,
}

impl WrittenUpdate {
    /// The contents of a write's parts, one after the other, or of the part with this number; none if it has no such part.
    #[must_use]
    pub fn of(seq: u64, written: &Artifact, part: Option<u64>) -> Option<Self> {
        let parts = match part {
            None => written.parts.as_slice(),
            Some(part) => std::slice::from_ref(written.parts.get(usize::try_from(part).ok()?)?),
        };
        let first = parts.first()?;
        let bytes = match parts {
            [Part { content: PartContent::Raw(bytes), .. }] => bytes.clone(),
            parts => {
                let mut all = BytesMut::new();
                parts.iter().for_each(|part| all.extend_from_slice(part.content_as_bytes()));
                all.freeze()
            }
        };
        let kind = PartKind::of(&first.content);
        let media_type = first.media_type().unwrap_or_else(|| kind.media_type()).to_owned();
        Some(Self { seq, bytes, filename: first.filename().map(str::to_owned), media_type })
    }
}

/// Where reading continues. Only the store interprets the other numbers; `start` is never beyond the next byte to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPosition {
    pub at: u64,
    pub start: u64,
}

impl StoredArtifact {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// A cursor over a range of the content, counted from the start of the content.
    #[must_use]
    pub fn cursor(&self, wanted: Range<u64>) -> ArtifactCursor {
        let from = self.range.start.saturating_add(wanted.start).min(self.range.end);
        let until = self.range.start.saturating_add(wanted.end).min(self.range.end);
        let next = self.positions.partition_point(|position| position.start <= from);
        let position =
            self.positions.get(next.saturating_sub(1)).copied().unwrap_or(ReadPosition { at: self.begun, start: 0 });
        let (artifact, version) = (self.artifact.clone(), self.version);
        ArtifactCursor { key: self.key, artifact, begun: self.begun, version, position, from, until }
    }
}

/// The progress of a reader.
#[derive(Clone, Debug)]
pub struct ArtifactCursor {
    pub key: TaskKey,
    pub artifact: ArtifactId,
    pub begun: u64,
    pub version: u64,
    pub position: ReadPosition,
    /// The next byte to read and the end, as offsets within all bytes of the artifact.
    pub from: u64,
    pub until: u64,
}

impl ArtifactCursor {
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.from >= self.until
    }
}

/// Some bytes, and where reading continues. There may be no bytes although the end is not reached: the store limits how
/// much it searches per call, so the caller asks again.
#[derive(Clone, Debug)]
pub struct ArtifactPiece {
    pub bytes: Bytes,
    pub next: ArtifactCursor,
}

/// Makes the addresses under which clients download the bytes of artifacts. The server provides it; stores know no
/// addresses.
pub trait Links: Send + Sync {
    /// The address of a whole artifact, or of one of its parts.
    fn artifact(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String;

    /// The address of what one update of the task wrote to an artifact, or of one part of that.
    fn update(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, seq: u64, part: Option<u64>) -> String {
        let url = self.artifact(scope, task, artifact, part);
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}update={seq}")
    }
}

/// Addresses relative to the agent's own, for an engine without a server.
pub struct NoLinks;

impl Links for NoLinks {
    fn artifact(&self, _: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String {
        let part = part.map(|part| format!("?part={part}")).unwrap_or_default();
        format!("tasks/{task}/artifacts/{artifact}{part}")
    }
}
