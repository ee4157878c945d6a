//! Downloads: what the link in place of a large artifact leads to. They are not part of A2A, so a request needs no
//! version; the caller is authenticated as everywhere. `serve` answers a request, piece by piece if it is large (`body`).

pub(crate) mod body;
pub(crate) mod serve;

use switchboard_core::model::{ArtifactId, TaskId};

use crate::server::uri::decode;

/// `/tasks/{task}/artifacts/{artifact}`, where the bytes of one artifact are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArtifactPath {
    pub(crate) tenant: Option<String>,
    pub(crate) task: TaskId,
    pub(crate) artifact: ArtifactId,
}

impl ArtifactPath {
    /// Of the segments behind `tasks` and behind `artifacts`.
    pub(crate) fn new(tenant: Option<String>, task: &str, artifact: &str) -> Option<Self> {
        let (task, artifact) = (decode(task)?.as_ref().into(), decode(artifact)?.as_ref().into());
        Some(Self { tenant, task, artifact })
    }
}
