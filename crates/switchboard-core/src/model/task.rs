//! A task as the outside sees it: the fold of its log.

use std::sync::Arc;

use super::{Artifact, ContextId, Dialect, Json, Message, TaskId, Timestamp};

/// What a client is told of a failure whose cause is not for them.
pub const FAILED_UNTOLD: &str = "The agent failed";

/// What a client is told, with or without more behind it, when an agent took too long.
pub const TIMED_OUT: &str = "Task timed out";

/// Where a task stands. "Unspecified" is a spelling, not a state, so it is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    InputRequired,
    Rejected,
    AuthRequired,
}

impl TaskState {
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// Terminal states are final: nothing about the task changes afterwards.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Interrupted states wait for someone outside.
    #[must_use]
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Terminal or interrupted: what a blocking send waits for.
    #[must_use]
    pub fn is_settled(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }

    /// The word for people and logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::InputRequired => "input-required",
            Self::Rejected => "rejected",
            Self::AuthRequired => "auth-required",
        }
    }

    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    pub state: TaskState,
    pub message: Option<Arc<Message>>,
    pub timestamp: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    pub context_id: ContextId,
    pub status: TaskStatus,
    /// Shared, because what an agent wrote in one piece stands in its task as it was written.
    pub artifacts: Vec<Arc<Artifact>>,
    pub history: Vec<Arc<Message>>,
    pub metadata: Option<Json>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// The dialect it was begun in. Not shown; a reader who says nothing about their own is answered with it in mind.
    pub dialect: Dialect,
}

impl Task {
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.status.state
    }

    /// Takes a new status in. A question that was open has been answered, or has become moot: it is part of the
    /// conversation now.
    pub fn take_status(&mut self, status: TaskStatus) {
        if self.status.state.is_interrupted() {
            self.history.extend(self.status.message.take());
        }
        self.status = status;
    }

    /// Takes a write in: a chunk extends the artifact of its id, anything else replaces it.
    pub fn take_artifact(&mut self, written: &Arc<Artifact>, append: bool) {
        match self.artifacts.iter_mut().find(|known| known.artifact_id == written.artifact_id) {
            Some(known) if append => Arc::make_mut(known).append(written),
            Some(known) => known.clone_from(written),
            None => push_lean(&mut self.artifacts, written.clone()),
        }
    }

    #[must_use]
    pub fn artifact(&self, id: &str) -> Option<&Artifact> {
        self.artifacts.iter().map(Arc::as_ref).find(|artifact| artifact.artifact_id.as_str() == id)
    }
}

/// Most tasks have one message, one turn and one artifact, and many tasks are kept: the first takes no more room than it
/// needs.
pub(crate) fn push_lean<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}
