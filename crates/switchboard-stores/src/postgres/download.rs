//! Reads the bytes of one artifact. Opening it reads its writes once, newest first, and records positions; reading goes forward
//! from the nearest position, one piece at a time. Of a content in chunks only the requested chunks are read.

use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

use super::error::corrupt;
use super::fold::{Chunks, Walk};
use super::read::find;
use super::rows::{Chains, LogRow, log_columns, missing, signed, unsigned};
use super::store::Shared;
use crate::record::{StoredPart, Write, decode_writes};

/// How many positions are recorded at most, and the smallest distance between them.
const PLACES_MAX: u64 = 1024;
const PLACE_BYTES_MIN: u64 = 64 << 10;

/// How many commits are examined in one call, whether they write to the artifact or not.
const COMMITS_MAX: i64 = 64;

pub(super) async fn open(
    shared: &Shared,
    scope: &Scope,
    id: &TaskId,
    artifact: &ArtifactId,
    part: Option<u64>,
) -> Result<Option<StoredArtifact>, StoreError> {
    let Some(row) = find(shared, scope, id).await? else { return Ok(None) };
    let Some(head) = row.head.artifact(artifact.as_str()) else { return Ok(None) };
    let wanted = part.unwrap_or(0);
    let (mut parts_left, mut bytes_left) = (head.parts, head.bytes);
    if wanted >= parts_left {
        return Ok(None);
    }
    let step = (head.bytes / PLACES_MAX).max(PLACE_BYTES_MIN);
    let mut positions: Vec<ReadPosition> = Vec::new();
    let mut found = None;
    let mut walk = Walk::new(shared, row.task_no, Chains { artifact: row.chains.artifact, ..Chains::default() });
    let mut begun = 0;
    while parts_left > 0 {
        let page = walk.page().await?;
        if page.is_empty() {
            break;
        }
        for commit in &page {
            if parts_left == 0 {
                break;
            }
            let (writes, begins) = from_last_begin(decode_writes(&commit.record)?, artifact);
            if writes.is_empty() {
                continue;
            }
            let parts = || writes.iter().flat_map(Write::parts);
            parts_left = parts_left.saturating_sub(parts().count() as u64);
            bytes_left = bytes_left.saturating_sub(parts().map(StoredPart::bytes).sum());
            begun = commit.version();
            let position = ReadPosition { at: unsigned(begun), start: bytes_left };
            if positions.last().is_none_or(|last| last.start - position.start >= step) {
                positions.push(position);
            }
            if found.is_none() && wanted >= parts_left {
                found = FoundPart::find(parts(), wanted - parts_left, bytes_left);
            }
            if begins {
                parts_left = 0;
            }
        }
    }
    let Some(asked) = found else { return Ok(None) };
    positions.push(ReadPosition { at: unsigned(begun), start: 0 });
    positions.reverse();
    Ok(Some(StoredArtifact {
        key: TaskKey(row.task_no),
        artifact: artifact.clone(),
        begun: unsigned(begun),
        version: row.head.version,
        range: if part.is_some() { asked.start..asked.start + asked.bytes } else { 0..head.bytes },
        filename: asked.filename,
        media_type: asked.media_type,
        positions: positions.into(),
    }))
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

/// What a commit wrote to an artifact, beginning with the last write that replaced it, and whether there is such a write.
fn from_last_begin<'r>(mut writes: Vec<Write<'r>>, artifact: &ArtifactId) -> (Vec<Write<'r>>, bool) {
    writes.retain(|write| write.artifact_id() == artifact.as_str());
    let begins = writes.iter().rposition(|write| !write.append);
    if let Some(begin) = begins {
        writes.drain(..begin);
    }
    (writes, begins.is_some())
}

/// Joined with the task, because the rest of a task that was removed may still be there.
const FORWARD: &str = concat!(
    "select ",
    log_columns!(),
    " from task t join log l using (task_no)
      where t.task_no = $1::bigint and l.version between $2::bigint and $3::bigint order by l.version limit $4::bigint"
);
const EXISTS: &str = "select 1 from task where task_no = $1::bigint";

pub(super) async fn read(
    shared: &Shared,
    mut cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, StoreError> {
    let task_no = cursor.key.0;
    let begin = signed(cursor.position.at);
    let rows = shared.read(FORWARD, &[&task_no, &begin, &signed(cursor.version), &COMMITS_MAX]).await?;
    if rows.is_empty() && shared.read(EXISTS, &[&task_no]).await?.is_empty() {
        return Err(StoreError::Pruned);
    }
    if rows.is_empty() && !cursor.is_at_end() {
        return Err(corrupt(format_args!("artifact {} of task number {task_no} ends before its end", cursor.artifact)));
    }
    let mut out = Vec::new();
    let mut before = None;
    for row in &rows {
        if cursor.is_at_end() || out.len() >= bytes_max {
            break;
        }
        let commit = LogRow::read(row)?;
        // Commits that write to artifacts are linked. A missing one would shift the offsets of all later bytes, so it is an
        // error.
        let writes = decode_writes(&commit.record)?;
        if !writes.is_empty() {
            let prev = commit.prev_artifact;
            if !before.map_or(prev < begin, |before| prev == before) {
                return Err(missing(task_no, prev));
            }
            before = Some(commit.version());
        }
        let (writes, _) = from_last_begin(writes, &cursor.artifact);
        let mut start = cursor.position.start;
        for part in writes.iter().flat_map(Write::parts) {
            take(shared, &commit, part, start, &mut cursor, bytes_max, &mut out).await?;
            start += part.bytes();
        }
        // The next call reads a commit again that was not read to its end.
        if cursor.from >= start {
            cursor.position = ReadPosition { at: unsigned(commit.version()) + 1, start };
        }
    }
    Ok(ArtifactPiece { bytes: out.into(), next: cursor })
}

/// Takes the bytes at the cursor from a part that begins at `start`, if the cursor has reached it.
async fn take(
    shared: &Shared,
    commit: &LogRow,
    part: &StoredPart<'_>,
    start: u64,
    cursor: &mut ArtifactCursor,
    bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let end = (start + part.bytes()).min(cursor.until);
    if cursor.from < start || cursor.from >= end || out.len() >= bytes_max {
        return Ok(());
    }
    let length = (end - cursor.from).min((bytes_max - out.len()) as u64);
    let within = |position: u64| usize::try_from(position - start).unwrap_or(usize::MAX);
    let wanted = within(cursor.from)..within(cursor.from + length);
    let ranges = part.chunk_range_of(&wanted).map(|range| (commit.version(), range));
    let chunks = Chunks::read(shared, commit.columns.task_no, ranges.into_iter().collect()).await?;
    part.read(wanted, &chunks.of(commit.version()), out)?;
    cursor.from += length;
    Ok(())
}
