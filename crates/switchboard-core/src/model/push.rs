//! Where a task's updates are to be posted.

use super::ids::{ConfigId, TaskId};

/// One webhook of one task.
#[derive(Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Empty until the server has assigned one.
    pub id: ConfigId,
    /// The task whose updates are posted.
    pub task_id: TaskId,
    /// Where they are posted. Addresses inside the server's own network are refused unless they are allowed.
    pub url: String,
    /// Sent along in `X-A2A-Notification-Token`, so that the receiver knows the call. A secret: `Debug` leaves it out.
    pub token: Option<String>,
    /// What the receiver wants in `Authorization`; none is no such header.
    pub authentication: Option<AuthenticationInfo>,
}

/// What to put into the `Authorization` header of a webhook call.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthenticationInfo {
    /// The scheme, such as `Bearer`.
    pub scheme: String,
    /// What follows the scheme. A secret: `Debug` leaves it out.
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
