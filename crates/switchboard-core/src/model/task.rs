//! A task as the outside sees it: the fold of its log.

use std::sync::Arc;

use super::artifact::Artifact;
use super::dialect::Dialect;
use super::ids::{ContextId, TaskId};
use super::json::Json;
use super::message::Message;
use super::timestamp::Timestamp;

/// The text for clients if the cause of a failure must not be shown.
pub const FAILED_UNTOLD: &str = "The agent failed";

/// The text for clients, or its beginning, if an agent took too long.
pub const TIMED_OUT: &str = "Task timed out";

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskState {
    /// The server has accepted the task, and no agent works on it yet.
    Submitted,
    /// The agent is at work.
    Working,
    /// The agent has done it. Final.
    Completed,
    /// The agent could not do it; the status message has the reason. Final.
    Failed,
    /// Stopped on the caller's request. Final.
    Canceled,
    /// The agent has asked something and waits for the next message.
    InputRequired,
    /// The agent declined to do it. Final.
    Rejected,
    /// The user must authorize something before the agent can go on.
    AuthRequired,
    /// A remote agent does not say where its task stands. No task of ours stands so.
    Unspecified,
}

impl TaskState {
    /// Every state that a task of ours can have.
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
            Self::Unspecified => "unspecified",
        }
    }

    /// The state of this [word](Self::word).
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// Where a task stands, since when, and what the agent said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStatus {
    /// The state itself.
    pub state: TaskState,
    /// What the agent said with it: a note, a question, the reason of a failure.
    pub message: Option<Arc<Message>>,
    /// When the task came to stand so, by the server's clock.
    pub timestamp: Timestamp,
}

/// One piece of work, from the message that began it to its results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name in every later request.
    pub id: TaskId,
    /// The conversation it belongs to.
    pub context_id: ContextId,
    /// Where it stands.
    pub status: TaskStatus,
    /// Shared, because what an agent wrote in one piece stands in its task as it was written.
    pub artifacts: Vec<Arc<Artifact>>,
    /// What was said, oldest first.
    pub history: Vec<Arc<Message>>,
    /// Free-form JSON about it, an object.
    pub metadata: Option<Json>,
    /// When it was begun.
    pub created_at: Timestamp,
    /// The dialect it was begun in. Not shown; a reader who says nothing about their own is answered with it in mind.
    pub dialect: Dialect,
}

impl Task {
    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.status.state
    }

    /// What the agent answered in words: the text of the artifacts, else of the message of the status.
    #[must_use]
    pub fn answer_text(&self) -> String {
        let written: Vec<String> = self.artifacts.iter().map(|artifact| artifact.text()).collect();
        let written = written.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        match &self.status.message {
            Some(message) if written.is_empty() => message.text(),
            Some(_) | None => written,
        }
    }

    /// Replaces the status. If the old status asked a question, its message moves into the history.
    pub fn take_status(&mut self, status: TaskStatus) {
        if self.status.state.is_interrupted() {
            self.history.extend(self.status.message.take());
        }
        self.status = status;
    }

    /// Applies a write: a chunk extends the artifact of its id, any other write replaces it.
    pub fn take_artifact(&mut self, written: &Arc<Artifact>, append: bool) {
        match self.artifacts.iter_mut().find(|known| known.artifact_id == written.artifact_id) {
            Some(known) if append => Arc::make_mut(known).append(written),
            Some(known) => known.clone_from(written),
            None => push_exact(&mut self.artifacts, written.clone()),
        }
    }

    /// The artifact of this id, if there is one.
    #[must_use]
    pub fn artifact(&self, id: &str) -> Option<&Artifact> {
        self.artifacts.iter().map(Arc::as_ref).find(|artifact| artifact.artifact_id.as_str() == id)
    }
}

/// Most tasks have one message, one turn and one artifact, and many tasks are kept in memory, so the first item is
/// allocated without spare capacity.
pub(crate) fn push_exact<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}
