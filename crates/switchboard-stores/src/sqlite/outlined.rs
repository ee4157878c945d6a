//! A task whose artifacts do not all fit: those that fit are read, and the others are outlined from their records.
//! Contents in chunks are not read.

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_core::lifecycle::ArtifactHead;
use switchboard_core::model::ArtifactId;
use switchboard_engine::ports::store::{StoreError, StoredTask};

use super::error::Failure;
use super::fold::{ArtifactChain, Chunks, commit_sql, fold};
use super::rows::{LogRow, TaskRow, log_no};
use crate::record::{Gathering, HistoryBounds, OutlinedWrite, Want, decode_writes, make_earlier, missing, too_large};

/// Folds a task without the contents that do not fit.
pub(super) fn fold_within(
    connection: &Connection,
    row: TaskRow,
    bytes_max: u64,
    history: HistoryBounds,
) -> Result<StoredTask, Failure> {
    let too_large = too_large(&row.head, bytes_max);
    fold_without(connection, row, &too_large, history)
}

/// The same from the chains of an earlier moment. An artifact that is too large now is treated as too large then.
pub(super) fn fold_earlier_within(
    connection: &Connection,
    mut row: TaskRow,
    bytes_max: u64,
) -> Result<StoredTask, Failure> {
    let too_large = too_large(&row.head, bytes_max);
    make_earlier(&mut row.head);
    fold_without(connection, row, &too_large, HistoryBounds::bytes(bytes_max))
}

fn fold_without(
    connection: &Connection,
    row: TaskRow,
    too_large: &[ArtifactId],
    history: HistoryBounds,
) -> Result<StoredTask, Failure> {
    if too_large.is_empty() {
        return fold(connection, row, Want::Everything, history);
    }
    let mut gathering = Gathering::of(&row.head, too_large);
    let mut chain = ArtifactChain::of(connection, &row);
    while gathering.goes_on() {
        let Some((_, record)) = chain.next()? else { break };
        gathering.examine(record.len());
        gathering.take(decode_writes(&record)?, &Chunks(connection))?;
    }
    let task_no = row.task_no;
    let mut stored = fold(connection, row, Want::NoArtifacts, history)?;
    gathering.finish(&mut stored, |head| begin(connection, task_no, head).map_err(|failure| failure.0))?;
    Ok(stored)
}

/// The outline of the write that began an artifact, if its content begins with a chunk: then an index finds that write.
fn begin(connection: &Connection, task_no: i64, head: &ArtifactHead) -> Result<Option<OutlinedWrite>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT version, chunk_no FROM chunk
          WHERE task_no = ?1 AND artifact_id = ?2 AND start = 0 ORDER BY chunk_no DESC LIMIT 1",
    )?;
    let found = select.query_row(params![task_no, head.id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((version, chunk_no)) = found.optional()? else { return Ok(None) };
    let mut select = connection.prepare_cached(&commit_sql())?;
    let mut rows = select.query([log_no(task_no, version)])?;
    let commit = LogRow::read(rows.next()?.ok_or_else(|| missing(task_no, version))?)?;
    let mut writes = decode_writes(commit.record)?.into_iter().rev();
    let begin = writes.find(|write| write.artifact_id() == head.id.as_str() && write.begins_with_chunk(chunk_no));
    // The chunk's bytes and checksum are not read, because the commit shows whether it is the right chunk.
    let unlike = || StoreError::Corrupt(format!("commit {version} does not begin with piece of content {chunk_no}"));
    Ok(Some(begin.ok_or_else(unlike)?.into_outline()?))
}
