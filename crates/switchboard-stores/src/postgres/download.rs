//! Reads the bytes of one artifact (`record/downloading.rs`), one piece at a time. Of a content in chunks only the requested chunks are
//! read.

use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

use super::error::corrupt;
use super::fold::{Chunks, Walk};
use super::read::find;
use super::rows::{LogRow, log_columns};
use super::store::Shared;
use crate::record::{Chains, Opening, Write, decode_writes, from_last_begin, missing, signed, unsigned, wanted_of};

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
    let Some(mut opening) = Opening::of(head, part) else { return Ok(None) };
    let mut walk = Walk::new(shared, row.task_no, Chains { artifact: row.chains.artifact, ..Chains::default() });
    while opening.goes_on() {
        let page = walk.page().await?;
        if page.is_empty() {
            break;
        }
        for commit in &page {
            // What came before the write that began the artifact is not part of it.
            if opening.goes_on() {
                opening.take(commit.version(), decode_writes(&commit.record)?);
            }
        }
    }
    Ok(opening.finish(TaskKey(row.task_no), row.head.version))
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
            if let Some(wanted) = wanted_of(part, start, &mut cursor, bytes_max.saturating_sub(out.len())) {
                let ranges = part.chunk_range_of(&wanted).map(|range| (commit.version(), range));
                let chunks = Chunks::read(shared, task_no, ranges.into_iter().collect()).await?;
                part.read(wanted, &chunks.of(commit.version()), &mut out)?;
            }
            start += part.bytes();
        }
        // The next call reads a commit again that was not read to its end.
        if cursor.from >= start {
            cursor.position = ReadPosition { at: unsigned(commit.version()) + 1, start };
        }
    }
    Ok(ArtifactPiece { bytes: out.into(), next: cursor })
}
