//! Where a task's updates are to be posted.

use super::{ConfigId, TaskId};

/// One webhook of one task.
#[derive(Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Empty until the server has assigned one.
    pub id: ConfigId,
    pub task_id: TaskId,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<AuthenticationInfo>,
}

/// What to put into the `Authorization` header of a webhook call.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthenticationInfo {
    pub scheme: String,
    pub credentials: Option<String>,
}

// Secrets must not reach a log through a stray `{:?}`.
impl std::fmt::Debug for PushConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushConfig").field("id", &self.id).field("task_id", &self.task_id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AuthenticationInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticationInfo").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
