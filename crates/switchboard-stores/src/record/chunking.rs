//! Contents that are too large for a record: they are cut into chunks when a commit is written, and joined when it is
//! read.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use switchboard_core::model::{ArtifactId, Json, Part, PartContent};
use switchboard_engine::ports::store::StoreError;

use super::{CHUNK_BYTES_MAX, INLINE_BYTES_MAX, corrupt};
use crate::checksum::ContentHash;

/// A content that is stored in chunks outside the record.
#[derive(Deserialize, Serialize)]
pub(super) struct StoredChunks {
    pub(super) of: StoredKind,
    pub(super) first: i64,
    pub(super) count: i64,
    pub(super) bytes: usize,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredKind {
    Text,
    Url,
    Raw,
    Data,
}

/// Where chunks are read from.
pub(crate) trait ChunkSource {
    /// The bytes of `count` chunks, beginning with the one numbered `first`.
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError>;
}

impl StoredChunks {
    pub(super) fn into_content(self, chunks: &dyn ChunkSource) -> Result<PartContent, StoreError> {
        let bytes = chunks.read(self.first, self.count)?;
        if bytes.len() != self.bytes {
            return Err(corrupt(format!("{} bytes in chunks where {} were written", bytes.len(), self.bytes)));
        }
        let text = |bytes| String::from_utf8(bytes).map_err(corrupt);
        Ok(match self.of {
            StoredKind::Text => PartContent::Text(text(bytes)?),
            StoredKind::Url => PartContent::Url(text(bytes)?),
            StoredKind::Raw => PartContent::Raw(bytes.into()),
            StoredKind::Data => PartContent::Data(Json::from_trusted(text(bytes)?)),
        })
    }
}

/// A piece of a large content, and where it belongs.
pub(crate) struct Chunk {
    pub(crate) number: i64,
    /// None for the part of a message.
    pub(crate) artifact_id: Option<ArtifactId>,
    /// Which part of the artifact or message.
    pub(crate) part: u64,
    /// Where in the artifact's content, all parts taken together, this piece begins.
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
    pub(crate) hash: ContentHash,
}

/// Cuts the large contents of one commit.
pub(super) struct Chunker<'n> {
    pub(super) chunks: Vec<Chunk>,
    /// Reserves this many new chunk numbers and returns the first.
    pub(super) take_numbers: &'n dyn Fn(usize) -> i64,
}

/// The position of a part, for its chunks.
pub(super) struct ContentPosition<'c, 'n> {
    chunker: &'c mut Chunker<'n>,
    artifact_id: Option<&'c ArtifactId>,
    part: u64,
    start: u64,
}

impl<'n> Chunker<'n> {
    pub(super) fn is_large(part: &Part) -> bool {
        part.content_bytes() > INLINE_BYTES_MAX
    }

    pub(super) fn at<'c>(
        &'c mut self,
        artifact_id: Option<&'c ArtifactId>,
        part: u64,
        start: u64,
    ) -> ContentPosition<'c, 'n> {
        ContentPosition { chunker: self, artifact_id, part, start }
    }
}

impl ContentPosition<'_, '_> {
    pub(super) fn chunked(&mut self, content: &PartContent) -> StoredChunks {
        let (of, content) = match content {
            PartContent::Text(text) => (StoredKind::Text, Bytes::copy_from_slice(text.as_bytes())),
            PartContent::Url(url) => (StoredKind::Url, Bytes::copy_from_slice(url.as_bytes())),
            PartContent::Data(json) => (StoredKind::Data, Bytes::copy_from_slice(json.as_str().as_bytes())),
            PartContent::Raw(bytes) => (StoredKind::Raw, bytes.clone()),
        };
        let count = content.len().div_ceil(CHUNK_BYTES_MAX);
        let first = (self.chunker.take_numbers)(count);
        for (number, at) in (first..).zip((0..content.len()).step_by(CHUNK_BYTES_MAX)) {
            let bytes = content.slice(at..content.len().min(at + CHUNK_BYTES_MAX));
            let start = self.start + at as u64;
            let (artifact_id, hash) = (self.artifact_id.cloned(), ContentHash::of(&bytes));
            self.chunker.chunks.push(Chunk { number, artifact_id, part: self.part, start, bytes, hash });
        }
        StoredChunks { of, first, count: i64::try_from(count).unwrap_or(i64::MAX), bytes: content.len() }
    }
}
