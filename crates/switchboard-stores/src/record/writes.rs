//! Artifact writes as they are stored, before their contents are read. They are enough to count parts and bytes, to
//! find an offset, and to describe an artifact.

use std::ops::Range;
use std::sync::Arc;

use switchboard_core::dialect::json::Base64;
use switchboard_core::model::{Artifact, Json, PartDetails};
use switchboard_engine::ports::outline::{OutlinedPart, PartKind};
use switchboard_engine::ports::store::StoreError;

use super::chunking::{ChunkSource, StoredKind};
use super::codec::parse_commit;
use super::form::{StoredArtifact, StoredCommit, StoredEvent, StoredPart, bytes_of};
use super::{CHUNK_BYTES_MAX, corrupt};

/// One write to an artifact.
pub(crate) struct Write<'r> {
    pub(crate) append: bool,
    artifact: StoredArtifact<'r>,
}

/// The artifact writes of a record, in order.
pub(crate) fn decode_writes(record: &str) -> Result<Vec<Write<'_>>, StoreError> {
    // The text is written like this by `encode`. Most records have no artifact write, and searching is faster than
    // parsing.
    if !record.contains("{\"artifact\":{\"append\":") {
        return Ok(Vec::new());
    }
    let StoredCommit { events, .. } = parse_commit(record)?;
    let write = |event| match event {
        StoredEvent::Artifact { append, artifact, .. } => Some(Write { append, artifact }),
        _ => None,
    };
    Ok(events.into_iter().filter_map(write).collect())
}

impl<'r> Write<'r> {
    pub(crate) fn artifact_id(&self) -> &str {
        &self.artifact.id.0
    }

    pub(crate) fn parts(&self) -> &[StoredPart<'r>] {
        &self.artifact.parts
    }

    pub(crate) fn into_parts(self) -> Vec<StoredPart<'r>> {
        self.artifact.parts
    }

    /// Whether its first content that is in chunks begins with this one.
    pub(crate) fn begins_with_chunk(&self, chunk_no: i64) -> bool {
        let first = self.artifact.parts.iter().find_map(|part| part.chunks.as_ref());
        first.is_some_and(|chunks| chunks.first == chunk_no)
    }

    /// The write with all contents.
    pub(crate) fn into_artifact(self, chunks: &dyn ChunkSource) -> Result<Arc<Artifact>, StoreError> {
        self.artifact.into_artifact(chunks)
    }

    /// The artifact without its parts, and the parts without large contents.
    pub(crate) fn into_outline(mut self) -> Result<(Artifact, Vec<OutlinedPart>), StoreError> {
        let parts = std::mem::take(&mut self.artifact.parts);
        let parts = parts.into_iter().map(StoredPart::into_outlined).collect::<Result<_, _>>()?;
        let bare = self.artifact.into_artifact(&NoChunks)?;
        Ok((Arc::unwrap_or_clone(bare), parts))
    }
}

impl StoredPart<'_> {
    pub(crate) fn bytes(&self) -> u64 {
        let length = match self {
            Self { text: Some(text), .. } => text.0.len(),
            Self { url: Some(url), .. } => url.0.len(),
            Self { data: Some(data), .. } => data.get().len(),
            Self { raw: Some(Base64::Bytes(bytes)), .. } => bytes.len(),
            Self { raw: Some(Base64::Encoded(raw)), .. } => {
                raw.len() / 4 * 3 - raw.bytes().rev().take(2).filter(|byte| *byte == b'=').count()
            }
            Self { chunks: Some(chunks), .. } => chunks.bytes,
            Self { .. } => 0,
        };
        length as u64
    }

    pub(crate) fn kind(&self) -> PartKind {
        match self {
            Self { text: Some(_), .. } => PartKind::Text,
            Self { url: Some(_), .. } => PartKind::Url,
            Self { data: Some(_), .. } => PartKind::Data,
            Self { chunks: Some(chunks), .. } => match chunks.of {
                StoredKind::Text => PartKind::Text,
                StoredKind::Url => PartKind::Url,
                StoredKind::Raw => PartKind::Raw,
                StoredKind::Data => PartKind::Data,
            },
            Self { .. } => PartKind::Raw,
        }
    }

    pub(crate) fn filename(&self) -> Option<&str> {
        self.filename.as_ref().map(|name| &*name.0)
    }

    pub(crate) fn media_type(&self) -> Option<&str> {
        self.media_type.as_ref().map(|media_type| &*media_type.0)
    }

    /// Adds a range of the content to `out`; only the chunks of that range are read.
    pub(crate) fn read(
        &self,
        wanted: Range<usize>,
        chunks: &dyn ChunkSource,
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let some = |bytes: &[u8]| bytes.get(wanted.clone()).map(<[u8]>::to_vec);
        let found = match self {
            Self { text: Some(text), .. } => some(text.0.as_bytes()),
            Self { url: Some(url), .. } => some(url.0.as_bytes()),
            Self { data: Some(data), .. } => some(data.get().as_bytes()),
            Self { raw: Some(raw), .. } => some(&bytes_of(raw)?),
            Self { chunks: Some(stored), .. } => {
                let first = wanted.start / CHUNK_BYTES_MAX;
                let count = wanted.end.div_ceil(CHUNK_BYTES_MAX) - first;
                let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
                let bytes = chunks.read(stored.first.saturating_add(number(first)), number(count))?;
                let skip = wanted.start - first * CHUNK_BYTES_MAX;
                bytes.get(skip..skip + wanted.len()).map(<[u8]>::to_vec)
            }
            Self { .. } => None,
        };
        let found = found.ok_or_else(|| corrupt("a part is shorter than its record says"))?;
        out.extend_from_slice(&found);
        Ok(())
    }

    /// The chunks that hold the content, if it is stored in chunks.
    #[cfg(feature = "postgres")]
    pub(crate) fn chunk_range(&self) -> Option<Range<i64>> {
        self.chunks.as_ref().map(|chunks| chunks.first..chunks.first.saturating_add(chunks.count))
    }

    /// The chunks that hold a range of the content, if it is stored in chunks.
    #[cfg(feature = "postgres")]
    pub(crate) fn chunk_range_of(&self, wanted: &Range<usize>) -> Option<Range<i64>> {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.chunks.as_ref().map(|chunks| {
            let (first, end) = (wanted.start / CHUNK_BYTES_MAX, wanted.end.div_ceil(CHUNK_BYTES_MAX));
            chunks.first.saturating_add(number(first))..chunks.first.saturating_add(number(end))
        })
    }

    fn into_outlined(self) -> Result<OutlinedPart, StoreError> {
        let kind = self.kind();
        if self.chunks.is_some() {
            let details = PartDetails {
                metadata: self.metadata.map(|metadata| Json::from_trusted(metadata.0)),
                filename: self.filename.map(String::from),
                media_type: self.media_type.map(String::from),
            };
            return Ok(OutlinedPart { kind, content: None, details });
        }
        Ok(OutlinedPart::of(&self.into_part(&NoChunks)?))
    }
}

/// A source for records that have no chunks.
struct NoChunks;

impl ChunkSource for NoChunks {
    fn read(&self, _: i64, _: i64) -> Result<Vec<u8>, StoreError> {
        Err(corrupt("a chunk where none can be"))
    }
}
