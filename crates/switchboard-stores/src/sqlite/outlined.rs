//! A task whose artifacts do not all fit: those that fit are read, and the others are outlined from their records.
//! Contents in chunks are not read, and the number of writes that are examined is bounded.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_core::lifecycle::ArtifactHead;
use switchboard_core::model::{Artifact, ArtifactId};
use switchboard_engine::ports::outline::{self, Outline, OutlinedPart, PARTS_APART_MAX};
use switchboard_engine::ports::store::{StoreError, StoredTask};

use super::error::Failure;
use super::fold::{ArtifactChain, Chunks, HistoryBounds, commit_sql, fold, missing};
use super::rows::{LogRow, TaskRow, log_no};
use crate::record::{Want, Write, decode_writes, is_named};

/// How many commits, and bytes of records, are examined for one task. What is not found within them is left out.
const WRITES_MAX: usize = 65_536;
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Stands for the number of parts at an earlier moment, which is not known.
const PARTS_UNKNOWN: u64 = u64::MAX;

/// Folds a task without the contents that do not fit.
pub(super) fn fold_within(
    connection: &Connection,
    row: TaskRow,
    bytes_max: u64,
    history: HistoryBounds,
) -> Result<StoredTask, Failure> {
    let too_large = ids(outline::too_large(&row.head, bytes_max));
    fold_without(connection, row, &too_large, history)
}

/// The same from the chains of an earlier moment. An artifact that is too large now is treated as too large then.
pub(super) fn fold_earlier_within(
    connection: &Connection,
    mut row: TaskRow,
    bytes_max: u64,
) -> Result<StoredTask, Failure> {
    let too_large = ids(outline::too_large(&row.head, bytes_max));
    let unknown = |head: &ArtifactHead| ArtifactHead { parts: PARTS_UNKNOWN, ..head.clone() };
    row.head.artifacts = row.head.artifacts.iter().map(unknown).collect();
    fold_without(connection, row, &too_large, HistoryBounds::bytes(bytes_max))
}

fn ids(heads: Vec<&ArtifactHead>) -> Vec<ArtifactId> {
    heads.into_iter().map(|head| head.id.clone()).collect()
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
    let (artifacts, outlined) = artifacts(connection, &row, too_large)?;
    let mut stored = fold(connection, row, Want::NoArtifacts, history)?;
    let folded = Arc::make_mut(&mut stored.folded);
    Arc::make_mut(&mut folded.task).artifacts = artifacts;
    stored.outlined = outlined;
    Ok(stored)
}

/// The artifacts of a task in their order, and the outlines of those that have no parts here because they are too large.
fn artifacts(
    connection: &Connection,
    row: &TaskRow,
    too_large: &[ArtifactId],
) -> Result<(Vec<Arc<Artifact>>, Vec<Outline>), Failure> {
    let gathering = |head: &ArtifactHead| Gathered {
        parts_left: head.parts,
        writes: if too_large.contains(&head.id) { Writes::outlined(head) } else { Writes::Whole(Vec::new()) },
        head: head.clone(),
    };
    let mut gathered: Vec<Gathered> = row.head.artifacts.iter().map(gathering).collect();
    let mut chain = ArtifactChain::of(connection, row);
    let mut bytes = 0;
    for _ in 0..WRITES_MAX {
        if bytes > RECORD_BYTES_MAX || gathered.iter().all(|artifact| artifact.parts_left == 0) {
            break;
        }
        let Some((_, record)) = chain.next()? else { break };
        bytes += record.len();
        for write in decode_writes(&record)?.into_iter().rev() {
            if let Some(artifact) = gathered.iter_mut().find(|known| known.head.id.as_str() == write.artifact_id()) {
                artifact.take(write, connection)?;
            }
        }
    }
    gathered.retain(|artifact| !artifact.is_of_later());
    let (mut artifacts, mut outlined) = (Vec::with_capacity(gathered.len()), Vec::new());
    for artifact in gathered {
        let artifact = match artifact.finish(connection, row)? {
            Found::Whole(artifact) => artifact,
            Found::Outlined(outline) => {
                let bare = outline.bare().clone();
                outlined.push(outline);
                bare
            }
        };
        artifacts.push(Arc::new(artifact));
    }
    Ok((artifacts, outlined))
}

/// What has been found of one artifact, reading backwards in time.
struct Gathered {
    head: ArtifactHead,
    parts_left: u64,
    writes: Writes,
}

/// The result for one artifact.
enum Found {
    Whole(Artifact),
    Outlined(Outline),
}

/// The writes found so far, newest first.
enum Writes {
    Whole(Vec<Arc<Artifact>>),
    Outlined {
        /// Whether there are few enough parts to show each of them.
        show_parts: bool,
        writes: Vec<(Artifact, Vec<OutlinedPart>)>,
    },
}

impl Writes {
    fn outlined(head: &ArtifactHead) -> Self {
        Self::Outlined { show_parts: head.parts <= PARTS_APART_MAX, writes: Vec::new() }
    }
}

impl Gathered {
    /// Whether nothing had been written to it at the requested moment.
    fn is_of_later(&self) -> bool {
        let has_writes = match &self.writes {
            Writes::Whole(writes) => !writes.is_empty(),
            Writes::Outlined { writes, .. } => !writes.is_empty(),
        };
        self.head.parts == PARTS_UNKNOWN && !has_writes
    }

    fn take(&mut self, write: Write<'_>, connection: &Connection) -> Result<(), Failure> {
        if self.parts_left == 0 {
            return Ok(());
        }
        let begins = !write.append;
        self.parts_left = self.parts_left.saturating_sub(write.parts().len() as u64);
        match &mut self.writes {
            Writes::Whole(writes) => writes.push(write.into_artifact(&Chunks(connection))?),
            Writes::Outlined { show_parts, writes } => {
                let (bare, mut parts) = write.into_outline()?;
                if !*show_parts {
                    parts.truncate(1);
                    // Of many pieces only the first matters, and those that set a name, description or metadata.
                    if writes.last().is_some_and(|(bare, _)| !is_named(bare)) {
                        writes.pop();
                    }
                }
                writes.push((bare, parts));
            }
        }
        if begins {
            self.parts_left = 0;
        }
        Ok(())
    }

    fn finish(self, connection: &Connection, row: &TaskRow) -> Result<Found, Failure> {
        let Self { head, parts_left, writes } = self;
        let (show_parts, mut writes) = match writes {
            Writes::Whole(writes) if parts_left == 0 => {
                let mut oldest_first = writes.into_iter().rev();
                let first =
                    oldest_first.next().map_or_else(|| Artifact::new(head.id, Vec::new()), Arc::unwrap_or_clone);
                return Ok(Found::Whole(oldest_first.fold(first, |mut artifact, chunk| {
                    artifact.append(&chunk);
                    artifact
                })));
            }
            Writes::Whole(writes) => {
                let bare = |artifact: Arc<Artifact>| Artifact { parts: Vec::new(), ..Arc::unwrap_or_clone(artifact) };
                (false, writes.into_iter().map(|artifact| (bare(artifact), Vec::new())).collect())
            }
            Writes::Outlined { show_parts, writes } => (show_parts, writes),
        };
        if parts_left > 0
            && let Some(begin) = begin(connection, row, &head)?
        {
            writes.push(begin);
        }
        let mut oldest_first = writes.into_iter().rev();
        let (bare, parts) = oldest_first.next().unwrap_or_else(|| (Artifact::new(head.id, Vec::new()), Vec::new()));
        let mut outline = Outline::new(bare);
        parts.into_iter().for_each(|part| outline.add(part));
        for (bare, parts) in oldest_first {
            outline.append(&bare);
            parts.into_iter().for_each(|part| outline.add(part));
        }
        if !show_parts || parts_left > 0 {
            outline.leave_out_the_rest();
        }
        Ok(Found::Outlined(outline))
    }
}

/// The outline of the write that began an artifact, if its content begins with a chunk: then an index finds that write.
fn begin(
    connection: &Connection,
    row: &TaskRow,
    head: &ArtifactHead,
) -> Result<Option<(Artifact, Vec<OutlinedPart>)>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT version, chunk_no FROM chunk
          WHERE task_no = ?1 AND artifact_id = ?2 AND start = 0 ORDER BY chunk_no DESC LIMIT 1",
    )?;
    let found = select.query_row(params![row.task_no, head.id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((version, chunk_no)) = found.optional()? else { return Ok(None) };
    let mut select = connection.prepare_cached(&commit_sql())?;
    let mut rows = select.query([log_no(row.task_no, version)])?;
    let commit = LogRow::read(rows.next()?.ok_or_else(|| missing(row.task_no, version))?)?;
    let mut writes = decode_writes(commit.record)?.into_iter().rev();
    let begin = writes.find(|write| write.artifact_id() == head.id.as_str() && write.begins_with_chunk(chunk_no));
    // The chunk's bytes and checksum are not read, because the commit shows whether it is the right chunk.
    let unlike = || StoreError::Corrupt(format!("commit {version} does not begin with piece of content {chunk_no}"));
    Ok(Some(begin.ok_or_else(unlike)?.into_outline()?))
}
