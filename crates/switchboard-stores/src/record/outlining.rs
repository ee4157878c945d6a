//! Artifacts that do not all fit a reader, whatever store they are in: those that fit are read whole, and the others are outlined from
//! their records. A store reads the commits that wrote to artifacts, newest first, and gives what they wrote to [`Gathering`].

use std::sync::Arc;

use switchboard_core::lifecycle::{ArtifactHead, Head};
use switchboard_core::model::{Artifact, ArtifactId};
use switchboard_engine::ports::outline::{self, Outline, OutlinedPart, PARTS_APART_MAX};
use switchboard_engine::ports::store::{StoreError, StoredTask};

use super::chunking::ChunkSource;
use super::writes::Write;

/// How many commits, and bytes of records, are examined for one task. What is not found within them is left out.
const WRITES_MAX: usize = 65_536;
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Stands for the number of parts at an earlier moment, which is not known.
const PARTS_UNKNOWN: u64 = u64::MAX;

/// One write as it is outlined.
pub(crate) type OutlinedWrite = (Artifact, Vec<OutlinedPart>);

/// The artifacts that are too large for a reader.
pub(crate) fn too_large(head: &Head, bytes_max: u64) -> Vec<ArtifactId> {
    outline::too_large(head, bytes_max).into_iter().map(|head| head.id.clone()).collect()
}

/// Makes the head of a task one of an earlier moment, when its artifacts had fewer parts.
pub(crate) fn make_earlier(head: &mut Head) {
    let unknown = |head: &ArtifactHead| ArtifactHead { parts: PARTS_UNKNOWN, ..head.clone() };
    head.artifacts = head.artifacts.iter().map(unknown).collect();
}

/// The artifacts of a task in their order, as far as they were found.
pub(crate) struct Gathering {
    gathered: Vec<Gathered>,
    commits: usize,
    bytes: usize,
}

impl Gathering {
    pub(crate) fn of(head: &Head, too_large: &[ArtifactId]) -> Self {
        let gathering = |head: &ArtifactHead| Gathered {
            parts_left: head.parts,
            writes: if too_large.contains(&head.id) { Writes::outlined(head) } else { Writes::Whole(Vec::new()) },
            head: head.clone(),
        };
        Self { gathered: head.artifacts.iter().map(gathering).collect(), commits: 0, bytes: 0 }
    }

    /// Whether the next commit is wanted: something is missing, and not too much was examined.
    pub(crate) fn goes_on(&self) -> bool {
        let is_missing = self.gathered.iter().any(|artifact| artifact.parts_left > 0);
        is_missing && self.commits < WRITES_MAX && self.bytes <= RECORD_BYTES_MAX
    }

    /// Counts a commit by the length of its record.
    pub(crate) fn examine(&mut self, record_bytes: usize) {
        self.commits += 1;
        self.bytes += record_bytes;
    }

    /// Whether the contents of an artifact are wanted.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_whole(&self, id: &str) -> bool {
        let known = self.gathered.iter().find(|known| known.head.id.as_str() == id);
        known.is_some_and(|known| matches!(known.writes, Writes::Whole(_)))
    }

    /// Takes what a commit wrote.
    pub(crate) fn take(&mut self, writes: Vec<Write<'_>>, chunks: &dyn ChunkSource) -> Result<(), StoreError> {
        for write in writes.into_iter().rev() {
            let of_it = |known: &&mut Gathered| known.head.id.as_str() == write.artifact_id();
            if let Some(artifact) = self.gathered.iter_mut().find(of_it) {
                artifact.take(write, chunks)?;
            }
        }
        Ok(())
    }

    /// Puts the artifacts into a task that was folded without them. `begin` looks for the write that began an artifact which was not found.
    pub(crate) fn finish(
        mut self,
        stored: &mut StoredTask,
        mut begin: impl FnMut(&ArtifactHead) -> Result<Option<OutlinedWrite>, StoreError>,
    ) -> Result<(), StoreError> {
        self.gathered.retain(|artifact| !artifact.is_of_later());
        let (mut artifacts, mut outlined) = (Vec::with_capacity(self.gathered.len()), Vec::new());
        for artifact in self.gathered {
            let artifact = match artifact.finish(&mut begin)? {
                Found::Whole(artifact) => artifact,
                Found::Outlined(outline) => {
                    let bare = outline.bare().clone();
                    outlined.push(outline);
                    bare
                }
            };
            artifacts.push(Arc::new(artifact));
        }
        let folded = Arc::make_mut(&mut stored.folded);
        Arc::make_mut(&mut folded.task).artifacts = artifacts;
        stored.outlined = outlined;
        Ok(())
    }
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
        writes: Vec<OutlinedWrite>,
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

    fn take(&mut self, write: Write<'_>, chunks: &dyn ChunkSource) -> Result<(), StoreError> {
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
                    if writes.last().is_some_and(|(bare, _)| bare.details().is_none()) {
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

    fn finish(
        self,
        begin: impl FnOnce(&ArtifactHead) -> Result<Option<OutlinedWrite>, StoreError>,
    ) -> Result<Found, StoreError> {
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
                let bare = |artifact: &Arc<Artifact>| (artifact.copy_with_parts(Vec::new()), Vec::new());
                (false, writes.iter().map(bare).collect())
            }
            Writes::Outlined { show_parts, writes } => (show_parts, writes),
        };
        if parts_left > 0
            && let Some(begin) = begin(&head)?
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
