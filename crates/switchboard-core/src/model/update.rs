//! What a reader of a task is shown: the task, or one step of it.

use std::sync::Arc;

use super::{Artifact, ContextId, Json, Message, Task, TaskId, TaskStatus};

/// What a reader of a task is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    Task(TaskView),
    Message(Arc<Message>),
    Status(StatusUpdate),
    Artifact(ArtifactUpdate),
}

#[derive(Clone, Debug, PartialEq)]
pub struct StatusUpdate {
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub status: TaskStatus,
    pub metadata: Option<Json>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactUpdate {
    pub task_id: TaskId,
    pub context_id: ContextId,
    pub artifact: Arc<Artifact>,
    pub append: bool,
    pub last_chunk: bool,
    pub metadata: Option<Json>,
}

/// A task and how much of it the caller asked to see. Trimming happens while encoding, so that nothing is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    pub task: Arc<Task>,
    /// At most this many of the most recent messages; none is no limit.
    pub history_length: Option<u32>,
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
