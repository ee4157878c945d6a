//! Reads the bytes of one artifact (`record/downloading.rs`), one piece at a time. Of a content in chunks only the requested chunks are
//! read.

use rusqlite::{Connection, params};
use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

use super::error::Failure;
use super::fold::{ArtifactChain, Chunks};
use super::read::{at_once, find};
use super::rows::{LOG_COLUMNS, LogRow, log_no};
use crate::record::{Opening, Write, decode_writes, from_last_begin, missing, signed, unsigned, wanted_of};

/// How many commits are examined in one call, whether they write to the artifact or not.
const COMMITS_MAX: i64 = 4096;

pub(super) fn open(
    connection: &Connection,
    scope: &Scope,
    id: &TaskId,
    artifact: &ArtifactId,
    part: Option<u64>,
) -> Result<Option<StoredArtifact>, Failure> {
    at_once(connection, || {
        let Some(row) = find(connection, scope, id)? else { return Ok(None) };
        let Some(head) = row.head.artifact(artifact.as_str()) else { return Ok(None) };
        let Some(mut opening) = Opening::of(head, part) else { return Ok(None) };
        let mut chain = ArtifactChain::of(connection, &row);
        while opening.goes_on() {
            let Some((version, record)) = chain.next()? else { break };
            opening.take(version, decode_writes(&record)?);
        }
        Ok(opening.finish(TaskKey(row.task_no), row.head.version))
    })
}

pub(super) fn read(
    connection: &Connection,
    mut cursor: ArtifactCursor,
    bytes_max: usize,
) -> Result<ArtifactPiece, Failure> {
    at_once(connection, || {
        let task_no = cursor.key.0;
        let mut exists = connection.prepare_cached("SELECT 1 FROM task WHERE task_no = ?1")?;
        if !exists.exists([task_no])? {
            return Err(StoreError::Pruned.into());
        }
        let sql = format!("SELECT {LOG_COLUMNS} FROM log WHERE log_no BETWEEN ?1 AND ?2 ORDER BY log_no LIMIT ?3");
        let mut select = connection.prepare_cached(&sql)?;
        let begin = signed(cursor.position.at);
        let first = log_no(task_no, begin);
        let last = log_no(task_no, signed(cursor.version));
        let mut rows = select.query(params![first, last, COMMITS_MAX])?;
        let mut out = Vec::new();
        let mut seen = false;
        let mut before = None;
        while let Some(row) = rows.next()?.filter(|_| !cursor.is_at_end() && out.len() < bytes_max) {
            seen = true;
            let commit = LogRow::read(row)?;
            // Commits that write to artifacts are linked. A missing one would shift the offsets of all later bytes, so
            // it is an error.
            let writes = decode_writes(commit.record)?;
            if !writes.is_empty() {
                let prev = commit.columns.prev_artifact;
                if !before.map_or(prev < begin, |before| prev == before) {
                    return Err(missing(task_no, prev).into());
                }
                before = Some(commit.version());
            }
            let (writes, _) = from_last_begin(writes, &cursor.artifact);
            let mut start = cursor.position.start;
            for part in writes.iter().flat_map(Write::parts) {
                if let Some(wanted) = wanted_of(part, start, &mut cursor, bytes_max.saturating_sub(out.len())) {
                    part.read(wanted, &Chunks(connection), &mut out)?;
                }
                start += part.bytes();
            }
            // The next call reads a commit again that was not read to its end.
            if cursor.from >= start {
                cursor.position = ReadPosition { at: unsigned(commit.version()) + 1, start };
            }
        }
        if !seen && !cursor.is_at_end() {
            let reason = format!("artifact {} of task number {task_no} ends before its end", cursor.artifact);
            return Err(StoreError::Corrupt(reason).into());
        }
        Ok(ArtifactPiece { bytes: out.into(), next: cursor })
    })
}
