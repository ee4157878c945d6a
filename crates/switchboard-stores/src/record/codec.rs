//! Writes a commit into its stored form, and reads it back. A record that cannot be read is reported as corrupt, because
//! this crate wrote it.

use switchboard_core::dialect::json::append;
use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::content_bytes;
use switchboard_engine::ports::store::StoreError;

use super::chunking::{Chunk, ChunkSource, Chunker};
#[cfg(feature = "postgres")]
use super::form::StoredPart;
use super::form::{StoredCommit, StoredEvent, StoredMessage};
use super::{FORMAT, corrupt};
use crate::checksum::ContentHash;

pub(crate) struct Encoded {
    pub(crate) record: String,
    pub(crate) record_hash: ContentHash,
    pub(crate) chunks: Vec<Chunk>,
}

/// Encodes a commit. `take_numbers` reserves new chunk numbers and returns the first.
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
            // A replacing write begins the content again, so nothing precedes it.
            (parts, bytes) = (artifact.parts.len() as u64, content_bytes(&artifact.parts));
        }
        parts = parts.saturating_sub(artifact.parts.len() as u64);
        bytes = bytes.saturating_sub(content_bytes(&artifact.parts));
    }
    (parts, bytes)
}

/// Which events of a record to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Everything,
    /// All events but artifact writes; the contents of those are not read.
    NoArtifacts,
}

pub(crate) fn decode(record: &str, want: Want, chunks: &dyn ChunkSource) -> Result<Vec<Event>, StoreError> {
    let stored = parse_commit(record)?;
    let wanted = |event: &StoredEvent<'_>| want == Want::Everything || !matches!(event, StoredEvent::Artifact { .. });
    stored.events.into_iter().filter(wanted).map(|event| event.into_event(chunks)).collect()
}

/// A commit that a reader may need without the contents of its messages.
pub(crate) struct ParsedCommit<'a> {
    stored: StoredCommit<'a>,
}

impl<'a> ParsedCommit<'a> {
    pub(crate) fn of(record: &'a str) -> Result<Self, StoreError> {
        Ok(Self { stored: parse_commit(record)? })
    }

    /// How many messages the commit adds to the history at least, and about how many bytes all its messages have. A status has a
    /// message that may get into the history later.
    pub(crate) fn messages(&self) -> (u32, u64) {
        let events = &self.stored.events;
        let bytes: usize = events.iter().filter_map(StoredEvent::message).map(StoredMessage::content_bytes).sum();
        let in_history =
            |event: &&StoredEvent<'_>| event.turn().is_some() || matches!(event, StoredEvent::Noted { .. });
        (u32::try_from(events.iter().filter(in_history).count()).unwrap_or(u32::MAX), bytes as u64)
    }

    /// The events, with the contents of messages only if they are wanted.
    pub(crate) fn into_events(
        mut self,
        want: Want,
        contents: Contents,
        chunks: &dyn ChunkSource,
    ) -> Result<Vec<Event>, StoreError> {
        self.restrict(want, contents);
        self.stored.events.into_iter().map(|event| event.into_event(chunks)).collect()
    }

    /// Drops the events and contents that are not wanted, so that their chunks are not read.
    pub(crate) fn restrict(&mut self, want: Want, contents: Contents) {
        let is_wanted =
            |event: &StoredEvent<'_>| want == Want::Everything || !matches!(event, StoredEvent::Artifact { .. });
        self.stored.events.retain(is_wanted);
        if let Contents::Only { turn, status } = contents {
            let is_kept = |event: &StoredEvent<'_>| match event {
                StoredEvent::Status { .. } => status,
                event => turn.is_some() && event.turn() == turn,
            };
            let others = self.stored.events.iter_mut().filter(|event| !is_kept(event));
            others.filter_map(StoredEvent::message_mut).for_each(|message| message.parts.clear());
        }
    }

    /// The chunks that the commit refers to, for a store that reads them before it decodes.
    #[cfg(feature = "postgres")]
    pub(crate) fn chunk_ranges(&self) -> Vec<std::ops::Range<i64>> {
        let parts = self.stored.events.iter().flat_map(|event| match event {
            StoredEvent::Artifact { artifact, .. } => &*artifact.parts,
            StoredEvent::Replied { message } => &*message.parts,
            event => event.message().map_or(&[][..], |message| &message.parts),
        });
        parts.filter_map(StoredPart::chunk_range).collect()
    }
}

/// A record with other numbers for its chunks; none if it has no chunks. `number` is told the numbers of one content, in
/// the order of the record, and gives the first of the new ones.
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub(crate) fn renumber(
    record: &str,
    number: &mut dyn FnMut(std::ops::Range<i64>) -> i64,
) -> Result<Option<String>, StoreError> {
    // The text is written like this by `encode`, and most records have none. Contents that look like it cost a parse.
    if !record.contains("\"chunks\":{") {
        return Ok(None);
    }
    let mut stored = parse_commit(record)?;
    let mut has_chunks = false;
    for event in &mut stored.events {
        let parts = match event {
            StoredEvent::Artifact { artifact, .. } => &mut artifact.parts,
            StoredEvent::Replied { message } => &mut message.parts,
            event => match event.message_mut() {
                Some(message) => &mut message.parts,
                None => continue,
            },
        };
        for chunks in parts.iter_mut().filter_map(|part| part.chunks.as_mut()) {
            has_chunks = true;
            chunks.first = number(chunks.first..chunks.first.saturating_add(chunks.count));
        }
    }
    if !has_chunks {
        return Ok(None);
    }
    let mut record = Vec::with_capacity(record.len() + 16);
    append(&mut record, &stored).map_err(corrupt)?;
    String::from_utf8(record).map(Some).map_err(corrupt)
}

/// Which messages of a commit are read with their contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    All,
    /// Only that of the message that began this turn, if any, and those of statuses if they are wanted.
    Only {
        turn: Option<u32>,
        status: bool,
    },
}

/// Whether a commit set the task's status. No contents are read.
pub(crate) fn sets_status(record: &str) -> Result<bool, StoreError> {
    // Most commits do not, and a text search shows that without parsing.
    if !record.contains("\"status\"") && !record.contains("\"opened\"") {
        return Ok(false);
    }
    let sets = |event: &StoredEvent<'_>| matches!(event, StoredEvent::Status { .. } | StoredEvent::Opened { .. });
    Ok(parse_commit(record)?.events.iter().any(sets))
}

/// Whether a commit contains only a checkpoint and artifact writes. The record is searched and not parsed, because a
/// commit waits for the answer. Every other event begins with one of these texts, as `encode` writes them. If a content
/// looks like one of them, the answer is no, and readers fold one more commit than necessary.
pub(crate) fn is_only_checkpoint_and_artifacts(record: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "{\"received\":{",
        "{\"opened\":{",
        "{\"message_added\":{",
        "{\"turn_began\":{",
        "{\"turn_ended\":{",
        "{\"status\":{",
        "{\"replied\":{",
        "{\"cancel_requested\":{",
        "{\"claimed\":{",
    ];
    record.contains("{\"checkpoint\":{") && !OTHERS.iter().any(|other| record.contains(other))
}

pub(super) fn parse_commit(record: &str) -> Result<StoredCommit<'_>, StoreError> {
    let stored: StoredCommit<'_> = serde_json::from_str(record).map_err(corrupt)?;
    if stored.format != FORMAT {
        return Err(corrupt(format!("format {} is not {FORMAT}, the only one known", stored.format)));
    }
    Ok(stored)
}
