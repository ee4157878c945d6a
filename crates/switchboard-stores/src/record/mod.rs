//! The stored form of a commit: JSON with a format number, readable in a database shell. No client sees this form, so a
//! dialect can change without changing what is stored. Contents over [`INLINE_BYTES_MAX`] are not in the JSON: they are
//! cut into chunks that the record refers to, so that a large file is written once and never copied.

mod call;
mod chunking;
mod codec;
mod downloading;
mod folding;
mod form;
mod head;
mod outlining;
mod paging;
mod writes;

use switchboard_engine::ports::store::StoreError;

pub(crate) use call::{CallColumns, decode_call, encode_call};
#[cfg(feature = "postgres")]
pub(crate) use chunking::Chunk as StoredChunk;
pub(crate) use chunking::ChunkSource;
#[cfg(feature = "postgres")]
pub(crate) use codec::Contents;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub(crate) use codec::renumber;
pub(crate) use codec::{Encoded, ParsedCommit, Want, decode, encode, is_only_checkpoint_and_artifacts, sets_status};
pub(crate) use downloading::{Opening, Reading};
#[cfg(feature = "postgres")]
pub(crate) use folding::OnChains;
pub(crate) use folding::{Accepting, Chains, Folding, HistoryBounds, missing, signed, unsigned};
#[cfg(feature = "postgres")]
pub(crate) use form::StoredPart;
pub(crate) use head::{
    HeadColumns, encode_artifacts, phase_from_number, phase_number, state_from_number, state_number,
};
pub(crate) use outlining::{Gathering, OutlinedWrite, make_earlier, too_large};
pub(crate) use paging::{ListPaging, Paging};
#[cfg(feature = "postgres")]
pub(crate) use writes::Write;
pub(crate) use writes::decode_writes;

/// The number of the form that is written. A reader refuses numbers it does not know.
pub(crate) const FORMAT: u32 = 1;

/// Content above this size is stored in chunks beside the record.
pub(crate) const INLINE_BYTES_MAX: usize = 32 * 1024;

/// The most one chunk holds; a ranged read touches only the chunks it needs.
pub(crate) const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// The error for a record that is not as this crate writes it.
fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("stored record: {error}"))
}

#[cfg(test)]
mod tests;
