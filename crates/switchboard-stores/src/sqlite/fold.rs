//! Folds a task from the commits that a reader must fold. They are found by following two chains back from the head:
//! one of messages and status changes (columns named `story`), one of artifact writes. Commits that only report
//! progress are on neither chain, so a task with a million of them is read as quickly as one without.

use rusqlite::{Connection, Row, params};
use switchboard_core::lifecycle::Event;
use switchboard_engine::ports::store::{StoreError, StoredTask, TaskKey};

use super::error::Failure;
use super::rows::{ChunkColumns, LOG_COLUMNS, LogRow, TaskRow, log_no, mismatch, mistyped};
use crate::checksum::ContentHash;
use crate::record::{
    Chains, ChunkSource, Folding, HistoryBounds, ParsedCommit, Want, is_only_checkpoint_and_artifacts, missing,
};

/// Folds the commits on the chains, oldest first. Of messages beyond the bounds the contents are not read.
pub(super) fn fold(
    connection: &Connection,
    row: TaskRow,
    want: Want,
    bounds: HistoryBounds,
) -> Result<StoredTask, Failure> {
    let chunks = Chunks(connection);
    let mut folding = Folding::of(&row.head, row.chains.status, bounds);
    let mut commits = Vec::new();
    walk(connection, row.task_no, row.chains, want, |version, record| {
        let commit = ParsedCommit::of(record)?;
        let contents = folding.wants(version, &commit);
        commits.push((version, commit.into_events(want, contents, &chunks)?));
        Ok(())
    })?;
    Ok(folding.finish(TaskKey(row.task_no), row.head, &commits))
}

/// The commits that wrote to artifacts, newest first.
pub(super) struct ArtifactChain<'c> {
    connection: &'c Connection,
    task_no: i64,
    next: i64,
}

impl<'c> ArtifactChain<'c> {
    pub(super) fn of(connection: &'c Connection, row: &TaskRow) -> Self {
        Self { connection, task_no: row.task_no, next: row.chains.artifact }
    }

    /// The next commit's version and record; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<(i64, String)>, Failure> {
        let version = self.next;
        if version == 0 {
            return Ok(None);
        }
        let mut select = self.connection.prepare_cached(&commit_sql())?;
        let mut rows = select.query([log_no(self.task_no, version)])?;
        let found = LogRow::read(rows.next()?.ok_or_else(|| missing(self.task_no, version))?)?;
        self.next = found.columns.prev_artifact;
        Ok(Some((version, found.record.to_owned())))
    }
}

/// The records on the chains, newest first.
#[cfg(test)]
pub(super) fn records_to_fold(
    connection: &Connection,
    task_no: i64,
    chains: Chains,
    want: Want,
) -> Result<Vec<String>, Failure> {
    let mut records = Vec::new();
    walk(connection, task_no, chains, want, |_, record| {
        records.push(record.to_owned());
        Ok(())
    })?;
    Ok(records)
}

/// Reads the records on the chains, newest first. The commit that set the present status is read, too, even if it only
/// reports progress.
fn walk(
    connection: &Connection,
    task_no: i64,
    chains: Chains,
    want: Want,
    mut take: impl FnMut(i64, &str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut select = connection.prepare_cached(&commit_sql())?;
    let Chains { mut story, mut artifact, mut status } = chains;
    if want == Want::NoArtifacts {
        artifact = 0;
    }
    loop {
        let version = story.max(artifact).max(status);
        if version == 0 {
            return Ok(());
        }
        let mut rows = select.query([log_no(task_no, version)])?;
        let found = LogRow::read(rows.next()?.ok_or_else(|| missing(task_no, version))?)?;
        take(version, found.record)?;
        if story == version {
            story = found.columns.prev_story;
        }
        if artifact == version {
            artifact = found.columns.prev_artifact;
        }
        if status == version {
            status = 0;
        }
    }
}

/// Reads one commit.
pub(super) fn commit_sql() -> String {
    format!("SELECT {LOG_COLUMNS} FROM log WHERE log_no = ?1")
}

/// The commit that readers fold next after this checkpoint. A checkpoint replaces the one before it, so readers
/// skip that one, and a task with a million checkpoints is read as quickly as a task with one. If the skipped
/// commit also wrote artifacts, readers find it on the chain of artifact writes.
pub(super) fn story_below_checkpoint(connection: &Connection, task_no: i64, story: i64) -> Result<i64, Failure> {
    let mut select = connection.prepare_cached(&commit_sql())?;
    let mut rows = select.query([log_no(task_no, story)])?;
    let Some(row) = rows.next()? else { return Ok(story) };
    let LogRow { columns, record } = LogRow::read(row)?;
    Ok(if is_only_checkpoint_and_artifacts(record) { columns.prev_story } else { story })
}

/// Whether these events are only a checkpoint and artifact writes, as far as readers need them.
pub(super) fn replaces_checkpoint(events: &[Event]) -> bool {
    let is_checkpoint = |event: &Event| matches!(event, Event::Checkpoint { .. });
    let is_artifact = |event: &Event| matches!(event, Event::ArtifactWritten { .. });
    events.iter().any(is_checkpoint) && events.iter().all(|event| is_checkpoint(event) || is_artifact(event))
}

/// Reads chunks for records that refer to them.
pub(super) struct Chunks<'c>(pub(super) &'c Connection);

impl ChunkSource for Chunks<'_> {
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError> {
        let read = || -> Result<Vec<u8>, Failure> {
            let mut select = self.0.prepare_cached(&format!(
                "SELECT {CHUNK_COLUMNS} FROM chunk WHERE chunk_no >= ?1 AND chunk_no < ?2 ORDER BY chunk_no"
            ))?;
            let end = first.saturating_add(count);
            let mut rows = select.query([first, end])?;
            let mut bytes = Vec::new();
            let mut next = first;
            while let Some(row) = rows.next()? {
                let chunk = ChunkRow::read(row)?;
                if chunk.columns.chunk_no != next {
                    break;
                }
                next += 1;
                bytes.extend_from_slice(chunk.bytes);
            }
            match next == end {
                true => Ok(bytes),
                false => Err(StoreError::Corrupt(format!("piece of content {next} is missing")).into()),
            }
        };
        read().map_err(|failure| failure.0)
    }
}

/// The columns of a chunk, in the order [`ChunkRow::read`] reads them.
pub(super) const CHUNK_COLUMNS: &str = "chunk_no, task_no, version, artifact_id, part, start, checksum, bytes";

/// A chunk as it is stored.
pub(super) struct ChunkRow<'r> {
    pub(super) columns: ChunkColumns<'r>,
    pub(super) bytes: &'r [u8],
}

impl<'r> ChunkRow<'r> {
    /// Reads a row, if it matches its checksum.
    pub(super) fn read(row: &'r Row<'_>) -> Result<Self, Failure> {
        let found = Self::read_unchecked(row)?;
        match row.get::<_, i64>(6)? == found.columns.checksum(ContentHash::of(found.bytes)) {
            true => Ok(found),
            false => Err(mismatch(format_args!("piece of content {}", found.columns.chunk_no))),
        }
    }

    /// Writes the row. `hash` is that of the bytes.
    pub(super) fn insert(&self, connection: &Connection, hash: ContentHash) -> Result<(), Failure> {
        let ChunkColumns { chunk_no, task_no, version, artifact_id, part, start } = self.columns;
        let checksum = self.columns.checksum(hash);
        let mut insert = connection.prepare_cached(
            "INSERT INTO chunk (chunk_no, task_no, version, artifact_id, part, start, checksum, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        insert.execute(params![chunk_no, task_no, version, artifact_id, part, start, checksum, self.bytes])?;
        Ok(())
    }

    pub(super) fn read_unchecked(row: &'r Row<'_>) -> Result<Self, Failure> {
        let columns = ChunkColumns {
            chunk_no: row.get(0)?,
            task_no: row.get(1)?,
            version: row.get(2)?,
            artifact_id: row.get_ref(3)?.as_str_or_null().map_err(mistyped)?,
            part: row.get(4)?,
            start: row.get(5)?,
        };
        Ok(Self { columns, bytes: row.get_ref(7)?.as_blob().map_err(mistyped)? })
    }
}
