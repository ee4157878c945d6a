//! Where contents can be had that no reply has room for. Whoever serves them says so to the engine; stores know no address.

use switchboard_core::model::{ArtifactId, TaskId};

use super::keys::Scope;

/// Where the bytes of an artifact can be had.
pub trait Links: Send + Sync {
    /// The address of a whole artifact, or of one of its parts.
    fn artifact(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String;

    /// The address of what one update of the task wrote to an artifact, or of one part of that.
    fn update(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, seq: u64, part: Option<u64>) -> String {
        let url = self.artifact(scope, task, artifact, part);
        let mark = if url.contains('?') { '&' } else { '?' };
        format!("{url}{mark}update={seq}")
    }
}

/// Addresses relative to the agent's own, for an engine that nobody serves.
pub struct NoLinks;

impl Links for NoLinks {
    fn artifact(&self, _: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String {
        let part = part.map(|part| format!("?part={part}")).unwrap_or_default();
        format!("tasks/{task}/artifacts/{artifact}{part}")
    }
}
