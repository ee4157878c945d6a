//! The bytes of one artifact, whatever store they are in. Opening it goes through its writes once, newest first, and records positions; reading goes
//! forward from the nearest position.

use std::ops::Range;

use switchboard_core::lifecycle::ArtifactHead;
use switchboard_core::model::ArtifactId;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use switchboard_engine::ports::store::{StoreError, TaskKey};

use super::folding::{missing, signed, unsigned};
use super::form::StoredPart;
use super::writes::{Write, decode_writes};

/// How many positions are recorded of one artifact, and how far apart they are at least.
const PLACES_MAX: u64 = 1024;
const PLACE_BYTES_MIN: u64 = 64 << 10;

/// An artifact, or one part of it, whose writes are looked through.
pub(crate) struct Opening {
    artifact: ArtifactId,
    part: Option<u64>,
    bytes: u64,
    parts_left: u64,
    bytes_left: u64,
    step: u64,
    positions: Vec<ReadPosition>,
    found: Option<FoundPart>,
    begun: i64,
}

impl Opening {
    /// None if the artifact has no such part.
    pub(crate) fn of(head: &ArtifactHead, part: Option<u64>) -> Option<Self> {
        (part.unwrap_or(0) < head.parts).then(|| Self {
            artifact: head.id.clone(),
            part,
            bytes: head.bytes,
            parts_left: head.parts,
            bytes_left: head.bytes,
            step: (head.bytes / PLACES_MAX).max(PLACE_BYTES_MIN),
            positions: Vec::new(),
            found: None,
            begun: 0,
        })
    }

    /// Whether the writes of an earlier commit are needed.
    pub(crate) fn goes_on(&self) -> bool {
        self.parts_left > 0
    }

    /// Takes what a commit wrote; commits come newest first.
    pub(crate) fn take(&mut self, version: i64, writes: Vec<Write<'_>>) {
        let (writes, begins) = from_last_begin(writes, &self.artifact);
        if writes.is_empty() {
            return;
        }
        let parts = || writes.iter().flat_map(Write::parts);
        self.parts_left = self.parts_left.saturating_sub(parts().count() as u64);
        self.bytes_left = self.bytes_left.saturating_sub(parts().map(StoredPart::bytes).sum());
        self.begun = version;
        let position = ReadPosition { at: unsigned(version), start: self.bytes_left };
        if self.positions.last().is_none_or(|last| last.start - position.start >= self.step) {
            self.positions.push(position);
        }
        let wanted = self.part.unwrap_or(0);
        if self.found.is_none() && wanted >= self.parts_left {
            self.found = FoundPart::find(parts(), wanted - self.parts_left, self.bytes_left);
        }
        if begins {
            self.parts_left = 0;
        }
    }

    /// The artifact of a task that is at this version; none if the part was not found.
    pub(crate) fn finish(mut self, key: TaskKey, version: u64) -> Option<StoredArtifact> {
        let asked = self.found?;
        self.positions.push(ReadPosition { at: unsigned(self.begun), start: 0 });
        self.positions.reverse();
        Some(StoredArtifact {
            key,
            artifact: self.artifact,
            begun: unsigned(self.begun),
            version,
            range: if self.part.is_some() { asked.start..asked.start + asked.bytes } else { 0..self.bytes },
            filename: asked.filename,
            media_type: asked.media_type,
            positions: self.positions.into(),
        })
    }
}

/// The part that was asked for, or the first.
struct FoundPart {
    start: u64,
    bytes: u64,
    filename: Option<String>,
    media_type: String,
}

impl FoundPart {
    /// The part numbered `number` among those of a commit whose bytes begin at `start`.
    fn find<'p, 'r: 'p>(parts: impl Iterator<Item = &'p StoredPart<'r>>, number: u64, start: u64) -> Option<Self> {
        let mut start = start;
        for (at, part) in (0..).zip(parts) {
            if at == number {
                let media_type = part.media_type().unwrap_or_else(|| part.kind().media_type()).to_owned();
                let filename = part.filename().map(str::to_owned);
                return Some(Self { start, bytes: part.bytes(), filename, media_type });
            }
            start += part.bytes();
        }
        None
    }
}

/// A download that reads on from its cursor, one commit after the other.
pub(crate) struct Reading {
    cursor: ArtifactCursor,
    begin: i64,
    /// The last commit that wrote to artifacts.
    before: Option<i64>,
    bytes_left: usize,
}

impl Reading {
    pub(crate) fn of(cursor: ArtifactCursor, bytes_max: usize) -> Self {
        let begin = signed(cursor.position.at);
        Self { cursor, begin, before: None, bytes_left: bytes_max }
    }

    /// The commits to read: the first and the last of them.
    pub(crate) fn versions(&self) -> (i64, i64) {
        (self.begin, signed(self.cursor.version))
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.cursor.is_at_end() && self.bytes_left > 0
    }

    /// The parts of the next commit that are wanted, and which bytes of them. Commits that write to artifacts are linked. A missing one
    /// would shift the offsets of all later bytes, so it is an error.
    pub(crate) fn take<'r>(
        &mut self,
        version: i64,
        prev_artifact: i64,
        record: &'r str,
    ) -> Result<Vec<(StoredPart<'r>, Range<usize>)>, StoreError> {
        let writes = decode_writes(record)?;
        if !writes.is_empty() {
            if !self.before.map_or(prev_artifact < self.begin, |before| prev_artifact == before) {
                return Err(missing(self.cursor.key.0, prev_artifact));
            }
            self.before = Some(version);
        }
        let (writes, _) = from_last_begin(writes, &self.cursor.artifact);
        let mut start = self.cursor.position.start;
        let mut wanted = Vec::new();
        for part in writes.into_iter().flat_map(Write::into_parts) {
            let end = start + part.bytes();
            if let Some(range) = wanted_of(&part, start, &mut self.cursor, self.bytes_left) {
                self.bytes_left -= range.len();
                wanted.push((part, range));
            }
            start = end;
        }
        // The next call reads a commit again that was not read to its end.
        if self.cursor.from >= start {
            self.cursor.position = ReadPosition { at: unsigned(version) + 1, start };
        }
        Ok(wanted)
    }

    /// The piece, of which these are the bytes. `found` says whether there was any commit to read.
    pub(crate) fn finish(self, bytes: Vec<u8>, found: bool) -> Result<ArtifactPiece, StoreError> {
        let Self { cursor, .. } = self;
        if !found && !cursor.is_at_end() {
            let (artifact, task_no) = (&cursor.artifact, cursor.key.0);
            let reason = format!("artifact {artifact} of task number {task_no} ends before its end");
            return Err(StoreError::Corrupt(reason));
        }
        Ok(ArtifactPiece { bytes: bytes.into(), next: cursor })
    }
}

/// What a commit wrote to an artifact, beginning with the last write that replaced it, and whether there is such a write.
fn from_last_begin<'r>(mut writes: Vec<Write<'r>>, artifact: &ArtifactId) -> (Vec<Write<'r>>, bool) {
    writes.retain(|write| write.artifact_id() == artifact.as_str());
    let begins = writes.iter().rposition(|write| !write.append);
    if let Some(begin) = begins {
        writes.drain(..begin);
    }
    (writes, begins.is_some())
}

/// The bytes at the cursor of a part that begins at `start`, if the cursor has reached it. The cursor moves behind them.
fn wanted_of(
    part: &StoredPart<'_>,
    start: u64,
    cursor: &mut ArtifactCursor,
    bytes_left: usize,
) -> Option<Range<usize>> {
    let end = (start + part.bytes()).min(cursor.until);
    if cursor.from < start || cursor.from >= end || bytes_left == 0 {
        return None;
    }
    let from = cursor.from;
    cursor.from += (end - from).min(bytes_left as u64);
    let within = |position: u64| usize::try_from(position - start).unwrap_or(usize::MAX);
    Some(within(from)..within(cursor.from))
}
