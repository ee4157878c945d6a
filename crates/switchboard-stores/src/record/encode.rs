//! A commit into its stored form.

use switchboard_core::dialect::json::append;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::content_bytes;

use super::FORMAT;
use super::chunks::{Chunk, Chunker};
use super::form::{StoredCommit, StoredEvent};
use crate::checksum::ContentHash;

pub(crate) struct Encoded {
    pub(crate) record: String,
    pub(crate) record_hash: ContentHash,
    pub(crate) chunks: Vec<Chunk>,
}

/// Encodes a commit. `take_numbers` gives the first of so many fresh chunk numbers.
pub(crate) fn encode(events: &[Event], head: &Head, take_numbers: &dyn Fn(usize) -> i64) -> Encoded {
    let mut chunker = Chunker { chunks: Vec::new(), take_numbers };
    let stored = events
        .iter()
        .enumerate()
        .map(|(at, event)| StoredEvent::of(event, &mut chunker, || written_before(events, at, head)))
        .collect();
    let mut record = Vec::with_capacity(1024);
    append(&mut record, &StoredCommit { format: FORMAT, events: stored }).expect("a commit is JSON");
    let record = String::from_utf8(record).expect("JSON is text");
    let record_hash = ContentHash::of(record.as_bytes());
    Encoded { record, record_hash, chunks: chunker.chunks }
}

/// How many parts and bytes the artifact held before the write at `at`: what it holds after the commit, less what this
/// write and later ones added.
fn written_before(events: &[Event], at: usize, head: &Head) -> (u64, u64) {
    let Event::ArtifactWritten { artifact: written, .. } = &events[at] else { return (0, 0) };
    let Some(known) = head.artifact(written.artifact_id.as_str()) else { return (0, 0) };
    let (mut parts, mut bytes) = (known.parts, known.bytes);
    for event in events[at..].iter().rev() {
        let Event::ArtifactWritten { artifact, append, .. } = event else { continue };
        if artifact.artifact_id != written.artifact_id {
            continue;
        }
        if !append {
            // Whatever came before a replacing write, that write and its part of the content begin at nothing.
            (parts, bytes) = (artifact.parts.len() as u64, content_bytes(&artifact.parts));
        }
        parts = parts.saturating_sub(artifact.parts.len() as u64);
        bytes = bytes.saturating_sub(content_bytes(&artifact.parts));
    }
    (parts, bytes)
}
