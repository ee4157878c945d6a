//! Reads the bytes of one artifact (`record/downloading.rs`), one piece at a time. Of a content in chunks only the requested chunks are
//! read.

use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

use super::fold::{Chunks, Walk};
use super::read::find;
use super::rows::{LogRow, log_columns};
use super::shared::Shared;
use crate::record::{Chains, Opening, Reading, decode_writes};

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
    cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, StoreError> {
    let task_no = cursor.key.0;
    let mut reading = Reading::of(cursor, bytes_max);
    let (first, last) = reading.versions();
    let rows = shared.database.read(FORWARD, &[&task_no, &first, &last, &COMMITS_MAX]).await?;
    if rows.is_empty() && shared.database.read(EXISTS, &[&task_no]).await?.is_empty() {
        return Err(StoreError::Pruned);
    }
    let mut bytes = Vec::new();
    for row in &rows {
        if !reading.goes_on() {
            break;
        }
        let commit = LogRow::read(row)?;
        let version = commit.version();
        let parts = reading.take(version, commit.prev_artifact, &commit.record)?;
        let ranges = parts.iter().filter_map(|(part, wanted)| part.chunk_range_of(wanted));
        let chunks = Chunks::read(shared, task_no, ranges.map(|range| (version, range)).collect()).await?;
        for (part, wanted) in parts {
            part.read(wanted, &chunks.of(version), &mut bytes)?;
        }
    }
    reading.finish(bytes, !rows.is_empty())
}
