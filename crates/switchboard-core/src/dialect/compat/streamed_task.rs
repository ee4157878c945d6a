//! Turns a stream of updates into whole tasks, for dialects whose streams carry nothing else. Each dialect decides what
//! it sends, and when: [`super::agent_native::WholeTaskStream`], [`super::nexus::WholeTaskStream`].

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{Part, Task, TaskState, TaskView, Update};

/// What a stream sends after an update.
#[derive(Debug, PartialEq)]
pub enum StreamEvent {
    Nothing,
    /// The task as it stands.
    Task,
    /// The same, but only an artifact has grown: if another update is available already, its event includes this one.
    TaskIfNothingFollows,
    Failed(ProtocolError),
}

/// Each event holds everything that was written so far. Above this size, the pieces of an artifact are not repeated
/// with every event but sent once, at its end.
const REPEATED_BYTES_MAX: usize = 256 << 10;

/// The task that a stream is about, as far as it has come.
#[derive(Default)]
pub(super) struct StreamedTask {
    task: Option<Arc<Task>>,
    /// Bytes of artifacts so far.
    bytes: usize,
}

/// What an update changed.
pub(super) enum TaskChange {
    /// Nothing that belongs to a task.
    None,
    /// The task itself.
    Task,
    Status,
    /// An artifact, or more of one.
    Artifact {
        /// It was written in one piece: nothing more of it follows.
        is_whole: bool,
        /// The artifact is too large to be repeated with every piece.
        is_too_much: bool,
    },
}

impl StreamedTask {
    /// Applies an update.
    pub(super) fn take(&mut self, update: &Update) -> TaskChange {
        match (update, &mut self.task) {
            (Update::Task(view), task) => {
                *task = Some(view.task.clone());
                TaskChange::Task
            }
            (Update::Status(update), Some(task)) => {
                Arc::make_mut(task).take_status(update.status.clone());
                TaskChange::Status
            }
            (Update::Artifact(update), Some(task)) => {
                let task = Arc::make_mut(task);
                self.bytes += update.artifact.parts.iter().map(Part::content_bytes).sum::<usize>();
                task.take_artifact(&update.artifact, update.append);
                if task.state() == TaskState::Submitted {
                    task.status.state = TaskState::Working;
                }
                let is_whole = update.last_chunk && !update.append;
                TaskChange::Artifact { is_whole, is_too_much: self.bytes > REPEATED_BYTES_MAX }
            }
            (Update::Status(_) | Update::Artifact(_), None) | (Update::Message(_), _) => TaskChange::None,
        }
    }

    pub(super) fn task(&self) -> Option<&Arc<Task>> {
        self.task.as_ref()
    }

    /// The task, for a dialect that changes it before it is sent.
    pub(super) fn task_mut(&mut self) -> Option<&mut Task> {
        self.task.as_mut().map(Arc::make_mut)
    }

    /// The task as it stands, once there is one.
    pub(super) fn view(&self) -> Option<TaskView> {
        self.task.clone().map(TaskView::whole)
    }
}
