//! What a server asks of its host, which keeps the tasks of its agents, beside calls: what operators see and may do, the bytes of
//! artifacts, and the work that posts of the server to itself are for. `host` implements these traits over the engine.

use switchboard_core::call::{BoxFuture, Owner};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ArtifactId, TaskId, TaskView};
use switchboard_engine::Readiness;
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use switchboard_engine::push::OutboxAdmin;

/// What a host that keeps tasks shows its operators, and lets them do. A server without one is ready while it is not stopping, has
/// nothing to tell, and its outbox is empty.
pub(crate) trait Operations: Send + Sync {
    /// Whether the process should be given work.
    fn readiness(&self) -> Readiness;

    /// What an operator should know although the process is ready, one line each.
    fn notices(&self) -> Vec<String>;

    /// The webhook deliveries of all callers.
    fn outbox(&self) -> OutboxAdmin;

    /// What the host counts, in Prometheus' text form; webhook endpoints by name only if asked for.
    fn metrics(&self, with_endpoints: bool) -> BoxFuture<'_, String>;

    /// Adds an entry to the audit log.
    fn record_audit(&self, entry: AuditEntry);

    /// Adds the entry of a refusal to the audit log, or counts it if there are too many.
    fn record_refusal(&self, reason: &'static str, entry: &mut dyn FnMut() -> AuditEntry);
}

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

/// Does what an internal route is for.
pub(crate) trait Processor: Send + Sync {
    /// Works on the row. If another request or process has done so already, that is no error.
    fn process<'a>(&'a self, row: &'a str) -> BoxFuture<'a, Result<(), ProtocolError>>;
}
