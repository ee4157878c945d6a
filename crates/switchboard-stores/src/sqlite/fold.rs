//! A task, folded from the commits that matter, which are found by following two chains back from the head: one of what was
//! said, one of artifact writes. Commits of mere progress are on neither, so a task with a million of them is read as
//! quickly as one without.

use rusqlite::{Connection, OptionalExtension};
use switchboard_core::lifecycle::Folded;
use switchboard_engine::ports::store::{StoreError, StoredTask, TaskKey};

use super::error::Failure;
use super::rows::{Chains, TaskRow, log_no};
use crate::record::{ChunkSource, Want, decode};

/// Folds the commits that matter, oldest first.
pub(super) fn fold(connection: &Connection, row: TaskRow, want: Want) -> Result<StoredTask, Failure> {
    let mut folded = Folded::empty(row.head.id.clone(), row.head.context_id.clone());
    for record in records_to_fold(connection, row.task_no, row.chains, want)?.iter().rev() {
        folded.apply_all(&decode(record, want, &Chunks(connection))?);
    }
    Ok(StoredTask { key: TaskKey(row.task_no), head: row.head.into(), folded: folded.into() })
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
        let mut select = self.connection.prepare_cached("SELECT prev_artifact, record FROM log WHERE log_no = ?1")?;
        let found = select.query_row([log_no(self.task_no, version)], |row| Ok((row.get(0)?, row.get(1)?)));
        let (next, record) = found.optional()?.ok_or_else(|| missing(self.task_no, version))?;
        self.next = next;
        Ok(Some((version, record)))
    }
}

/// The records on the chains, newest first. The commit that set the status is read too: it may be mere progress, but
/// nothing has replaced it yet.
pub(super) fn records_to_fold(
    connection: &Connection,
    task_no: i64,
    chains: Chains,
    want: Want,
) -> Result<Vec<String>, Failure> {
    let mut select =
        connection.prepare_cached("SELECT prev_story, prev_artifact, record FROM log WHERE log_no = ?1")?;
    let Chains { mut story, mut artifact, mut status } = chains;
    if want == Want::NoArtifacts {
        artifact = 0;
    }
    let mut records = Vec::new();
    loop {
        let version = story.max(artifact).max(status);
        if version == 0 {
            return Ok(records);
        }
        let (prev_story, prev_artifact, record) = select
            .query_row([log_no(task_no, version)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?
            .ok_or_else(|| missing(task_no, version))?;
        records.push(record);
        if story == version {
            story = prev_story;
        }
        if artifact == version {
            artifact = prev_artifact;
        }
        if status == version {
            status = 0;
        }
    }
}

pub(super) fn missing(task_no: i64, version: i64) -> StoreError {
    StoreError::Corrupt(format!("commit {version} of task number {task_no} is missing"))
}

/// Reads chunks for records that refer to them.
pub(super) struct Chunks<'c>(pub(super) &'c Connection);

impl ChunkSource for Chunks<'_> {
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError> {
        let read = || -> Result<Vec<u8>, Failure> {
            let mut select = self
                .0
                .prepare_cached("SELECT bytes FROM chunk WHERE chunk_no >= ?1 AND chunk_no < ?2 ORDER BY chunk_no")?;
            let mut rows = select.query([first, first.saturating_add(count)])?;
            let mut bytes = Vec::new();
            while let Some(row) = rows.next()? {
                bytes.extend_from_slice(
                    row.get_ref(0)?.as_blob().map_err(|error| StoreError::Corrupt(error.to_string()))?,
                );
            }
            Ok(bytes)
        };
        read().map_err(|failure| failure.0)
    }
}
