//! A stream as agent-native tells it: a whole task at each event, and an error where the agent failed. Nothing is said
//! before the agent says something, so a task that is done at once is one event.

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{FAILED_UNTOLD, Part, Task, TaskState, TaskView, Update};

use super::answer::answer;

/// Keeps the task that a stream is about, as far as it has come.
#[derive(Default)]
pub struct Narrator {
    task: Option<Arc<Task>>,
    /// Bytes of artifacts so far.
    bytes: usize,
}

/// What there is to say after an update.
#[derive(Debug, PartialEq)]
pub enum Told {
    Nothing,
    /// The task as it stands.
    Task,
    /// The same, but only an artifact has grown: if more is at hand, what comes next says this as well.
    TaskIfNothingFollows,
    Failed(ProtocolError),
}

/// Each event holds all that was written so far; beyond this the pieces of a large artifact are told once, at its end.
const RETOLD_BYTES_MAX: usize = 256 << 10;

impl Narrator {
    pub fn take(&mut self, update: &Update) -> Told {
        match update {
            Update::Task(view) => {
                self.task = Some(view.task.clone());
                let is_news = view.task.state() != TaskState::Submitted;
                if is_news { self.tell() } else { Told::Nothing }
            }
            Update::Status(update) => {
                let Some(task) = &mut self.task else { return Told::Nothing };
                let task = Arc::make_mut(task);
                task.take_status(update.status.clone());
                self.tell()
            }
            Update::Artifact(update) => {
                let Some(task) = &mut self.task else { return Told::Nothing };
                let task = Arc::make_mut(task);
                self.bytes += update.artifact.parts.iter().map(Part::content_bytes).sum::<usize>();
                task.take_artifact(&update.artifact, update.append);
                if task.state() == TaskState::Submitted {
                    task.status.state = TaskState::Working;
                }
                if self.bytes > RETOLD_BYTES_MAX { Told::Nothing } else { Told::TaskIfNothingFollows }
            }
            Update::Message(_) => Told::Nothing,
        }
    }

    /// The task as it stands, once there is one.
    #[must_use]
    pub fn view(&self) -> Option<TaskView> {
        self.task.clone().map(TaskView::whole)
    }

    fn tell(&self) -> Told {
        match &self.task {
            Some(task) if is_failure(task.state()) => Told::Failed(failed(task)),
            Some(_) => Told::Task,
            None => Told::Nothing,
        }
    }
}

/// Whether a task ended in what this dialect answers with an error.
#[must_use]
pub fn is_failure(state: TaskState) -> bool {
    matches!(state, TaskState::Failed | TaskState::Rejected)
}

/// The error that a failed task is.
#[must_use]
pub fn failed(task: &Task) -> ProtocolError {
    let reason = answer(task).map(|message| message.text()).filter(|text| !text.is_empty());
    ProtocolError::AgentFailed { reason: reason.unwrap_or(FAILED_UNTOLD.to_owned()) }
}
