//! A task whose artifacts do not all fit: those that fit are read, and the others are outlined from their records. Contents in
//! chunks are not read, and the number of writes that are examined is bounded.

use std::sync::Arc;

use switchboard_core::lifecycle::ArtifactHead;
use switchboard_core::model::{Artifact, ArtifactId};
use switchboard_engine::ports::outline::{self, Outline, OutlinedPart, PARTS_APART_MAX};
use switchboard_engine::ports::store::{StoreError, StoredTask};

use super::fold::{Chunks, CommitChunks, HistoryBounds, Walk, fold};
use super::rows::{Chains, TaskRow};
use super::store::Shared;
use crate::record::{StoredPart, Want, Write, decode_writes, is_named};

/// How many commits, and bytes of records, are examined for one task. What is not found within them is left out.
const WRITES_MAX: usize = 65_536;
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Stands for the number of parts at an earlier moment, which is not known.
const PARTS_UNKNOWN: u64 = u64::MAX;

/// Folds a task without the contents that do not fit.
pub(super) async fn fold_within(
    shared: &Shared,
    row: TaskRow,
    bytes_max: u64,
    history: HistoryBounds,
) -> Result<StoredTask, StoreError> {
    let too_large = ids(outline::too_large(&row.head, bytes_max));
    fold_without(shared, row, &too_large, history).await
}

/// The same from the chains of an earlier moment. An artifact that is too large now is treated as too large then.
pub(super) async fn fold_earlier_within(
    shared: &Shared,
    mut row: TaskRow,
    bytes_max: u64,
) -> Result<StoredTask, StoreError> {
    let too_large = ids(outline::too_large(&row.head, bytes_max));
    let unknown = |head: &ArtifactHead| ArtifactHead { parts: PARTS_UNKNOWN, ..head.clone() };
    row.head.artifacts = row.head.artifacts.iter().map(unknown).collect();
    fold_without(shared, row, &too_large, HistoryBounds::bytes(bytes_max)).await
}

fn ids(heads: Vec<&ArtifactHead>) -> Vec<ArtifactId> {
    heads.into_iter().map(|head| head.id.clone()).collect()
}

async fn fold_without(
    shared: &Shared,
    row: TaskRow,
    too_large: &[ArtifactId],
    history: HistoryBounds,
) -> Result<StoredTask, StoreError> {
    if too_large.is_empty() {
        return fold(shared, row, Want::Everything, history).await;
    }
    let (artifacts, outlined) = artifacts(shared, &row, too_large).await?;
    let mut stored = fold(shared, row, Want::NoArtifacts, history).await?;
    let folded = Arc::make_mut(&mut stored.folded);
    Arc::make_mut(&mut folded.task).artifacts = artifacts;
    stored.outlined = outlined;
    Ok(stored)
}

/// The artifacts of a task in their order, and the outlines of those that have no parts here because they are too large.
async fn artifacts(
    shared: &Shared,
    row: &TaskRow,
    too_large: &[ArtifactId],
) -> Result<(Vec<Arc<Artifact>>, Vec<Outline>), StoreError> {
    let gathering = |head: &ArtifactHead| Gathered {
        parts_left: head.parts,
        writes: if too_large.contains(&head.id) { Writes::outlined(head) } else { Writes::Whole(Vec::new()) },
        head: head.clone(),
    };
    let mut gathered: Vec<Gathered> = row.head.artifacts.iter().map(gathering).collect();
    let mut walk = Walk::new(shared, row.task_no, Chains { artifact: row.chains.artifact, ..Chains::default() });
    let (mut examined, mut bytes) = (0, 0);
    while examined < WRITES_MAX && bytes <= RECORD_BYTES_MAX && gathered.iter().any(|artifact| artifact.parts_left > 0)
    {
        let page = walk.page().await?;
        if page.is_empty() {
            break;
        }
        examined += page.len();
        bytes += page.iter().map(|commit| commit.record.len()).sum::<usize>();
        let is_whole = |id: &str| {
            let known = gathered.iter().find(|known| known.head.id.as_str() == id);
            known.is_some_and(|known| matches!(known.writes, Writes::Whole(_)))
        };
        let mut wanted = Vec::new();
        let mut decoded = Vec::with_capacity(page.len());
        for commit in &page {
            let writes = decode_writes(&commit.record)?;
            let whole = writes.iter().filter(|write| is_whole(write.artifact_id()));
            let ranges = whole.flat_map(Write::parts).filter_map(StoredPart::chunk_range);
            wanted.extend(ranges.map(|range| (commit.version(), range)));
            decoded.push((commit.version(), writes));
        }
        let chunks = Chunks::read(shared, row.task_no, wanted).await?;
        for (version, writes) in decoded {
            for write in writes.into_iter().rev() {
                if let Some(artifact) = gathered.iter_mut().find(|known| known.head.id.as_str() == write.artifact_id())
                {
                    artifact.take(write, &chunks.of(version))?;
                }
            }
        }
    }
    gathered.retain(|artifact| !artifact.is_of_later());
    let (mut artifacts, mut outlined) = (Vec::with_capacity(gathered.len()), Vec::new());
    for artifact in gathered {
        let artifact = match artifact.finish() {
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

    fn take(&mut self, write: Write<'_>, chunks: &CommitChunks<'_>) -> Result<(), StoreError> {
        if self.parts_left == 0 {
            return Ok(());
        }
        let begins = !write.append;
        self.parts_left = self.parts_left.saturating_sub(write.parts().len() as u64);
        match &mut self.writes {
            Writes::Whole(writes) => writes.push(write.into_artifact(chunks)?),
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

    fn finish(self) -> Found {
        let Self { head, parts_left, writes } = self;
        let (show_parts, writes) = match writes {
            Writes::Whole(writes) if parts_left == 0 => {
                let mut oldest_first = writes.into_iter().rev();
                let first =
                    oldest_first.next().map_or_else(|| Artifact::new(head.id, Vec::new()), Arc::unwrap_or_clone);
                return Found::Whole(oldest_first.fold(first, |mut artifact, chunk| {
                    artifact.append(&chunk);
                    artifact
                }));
            }
            Writes::Whole(writes) => {
                let bare = |artifact: Arc<Artifact>| Artifact { parts: Vec::new(), ..Arc::unwrap_or_clone(artifact) };
                (false, writes.into_iter().map(|artifact| (bare(artifact), Vec::new())).collect())
            }
            Writes::Outlined { show_parts, writes } => (show_parts, writes),
        };
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
        Found::Outlined(outline)
    }
}
