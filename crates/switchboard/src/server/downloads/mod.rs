//! Downloads: what the link in place of a large artifact leads to. They are not part of A2A, so a request needs no
//! version; the caller is authenticated as everywhere. `serve` answers a request, piece by piece if it is large (`body`).

pub(crate) mod body;
pub(crate) mod serve;

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ArtifactId, TaskId, TaskView};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};

/// The bytes of an agent's artifacts, beside its [`Endpoint`](switchboard_core::call::Endpoint): what a reply has no place for.
pub(crate) trait Downloads: Send + Sync {
    /// An artifact of a task, or one part of it. What there is not looks the same as what is not the owner's.
    fn artifact<'a>(
        &'a self,
        owner: &'a Owner,
        wanted: &'a WantedArtifact,
    ) -> BoxFuture<'a, Result<StoredArtifact, ProtocolError>>;

    /// What the update with this number wrote to an artifact, or one part of that.
    fn update<'a>(
        &'a self,
        owner: &'a Owner,
        wanted: &'a WantedArtifact,
        seq: u64,
    ) -> BoxFuture<'a, Result<WrittenUpdate, ProtocolError>>;

    /// The bytes at a cursor, about `bytes_max` of them at most.
    fn read(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'static, Result<ArtifactPiece, ProtocolError>>;

    /// As much of a task as fits into one frame of a stream, with links to the rest.
    fn fitted_to_frame(&self, owner: &Owner, view: TaskView) -> TaskView;
}

/// An artifact, or one part of it.
pub(crate) struct WantedArtifact {
    pub(crate) task: TaskId,
    pub(crate) artifact: ArtifactId,
    pub(crate) part: Option<u64>,
}
