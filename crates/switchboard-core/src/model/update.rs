//! What a reader of a task is shown: the task, or one step of it.

use std::sync::Arc;

use super::artifact::Artifact;
use super::ids::{ContextId, TaskId};
use super::json::Json;
use super::message::Message;
use super::task::{Task, TaskStatus};

/// What a reader of a task is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// The task as a whole: the first frame of most streams, and a snapshot for a reader too far behind.
    Task(TaskView),
    /// The agent's direct answer; there is no task.
    Message(Arc<Message>),
    /// The task stands otherwise than before.
    Status(StatusUpdate),
    /// An artifact was written, or a chunk of one.
    Artifact(ArtifactUpdate),
}

/// A change of a task's status.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    /// The task.
    pub task_id: TaskId,
    /// The conversation the task belongs to.
    pub context_id: ContextId,
    /// Where it stands now.
    pub status: TaskStatus,
    /// Free-form JSON about the change, an object.
    pub metadata: Option<Json>,
}

/// A write to an artifact of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    /// The task.
    pub task_id: TaskId,
    /// The conversation the task belongs to.
    pub context_id: ContextId,
    /// What was written: the whole artifact, or the chunk alone if `append`.
    pub artifact: Arc<Artifact>,
    /// Whether it is added to the artifact of the same id; otherwise it replaces that.
    pub append: bool,
    /// Whether it was known to be the last chunk. False does not mean that more follows.
    pub last_chunk: bool,
    /// Free-form JSON about the write, an object.
    pub metadata: Option<Json>,
}

/// A task and how much of it the caller asked to see. Trimming happens while encoding, so that nothing is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// The whole task.
    pub task: Arc<Task>,
    /// At most this many of the most recent messages; none is no limit.
    pub history_length: Option<u32>,
    /// Whether the artifacts are shown.
    pub artifacts: ArtifactView,
}

/// Whether a task's artifacts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactView {
    /// Shown if there are any.
    Shown,
    /// Shown, as an empty list if there are none (ListTasks with includeArtifacts).
    AlwaysListed,
    /// Left out altogether.
    Omitted,
}

impl TaskView {
    /// A view that leaves nothing out.
    #[must_use]
    pub fn whole(task: Arc<Task>) -> Self {
        Self { task, history_length: None, artifacts: ArtifactView::Shown }
    }

    /// The messages to show: the most recent ones, oldest first.
    #[must_use]
    pub fn history(&self) -> &[Arc<Message>] {
        let all = self.task.history.as_slice();
        let shown = self.history_length.map_or(all.len(), |n| all.len().min(n as usize));
        &all[all.len() - shown..]
    }
}
