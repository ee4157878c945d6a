//! Reads the bytes of one artifact (`record/downloading.rs`), one piece at a time. Of a content in chunks only the requested chunks are
//! read.

use rusqlite::{Connection, params};
use switchboard_core::model::{ArtifactId, TaskId};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::store::{Scope, StoreError, TaskKey};

use super::error::Failure;
use super::fold::{ArtifactChain, Chunks};
use super::read::{at_once, find};
use super::rows::{LOG_COLUMNS, LogRow, log_no};
use crate::record::{Opening, Reading, decode_writes};

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
    cursor: ArtifactCursor,
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
        let mut reading = Reading::of(cursor, bytes_max);
        let (first, last) = reading.versions();
        let mut rows = select.query(params![log_no(task_no, first), log_no(task_no, last), COMMITS_MAX])?;
        let (mut bytes, mut found) = (Vec::new(), false);
        while let Some(row) = rows.next()?.filter(|_| reading.goes_on()) {
            found = true;
            let commit = LogRow::read(row)?;
            for (part, wanted) in reading.take(commit.version(), commit.columns.prev_artifact, commit.record)? {
                part.read(wanted, &Chunks(connection), &mut bytes)?;
            }
        }
        Ok(reading.finish(bytes, found)?)
    })
}
