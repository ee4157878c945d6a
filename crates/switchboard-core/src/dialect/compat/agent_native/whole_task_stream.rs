//! The streams of agent-native: each event is a whole task, or an error if the agent failed. No event is sent before
//! the agent has written something, so a task that is done at once is one event, and no event repeats the one before.

use crate::dialect::compat::streamed_task::{StreamEvent, StreamedTask, TaskChange};
use crate::error::ProtocolError;
use crate::model::{FAILED_UNTOLD, Task, TaskState, TaskView, Update};

use super::task::answer;

/// Keeps the task that a stream is about, as far as it has come.
#[derive(Default)]
pub struct WholeTaskStream {
    streamed_task: StreamedTask,
}

impl WholeTaskStream {
    /// Applies an update and returns what to send for it.
    pub fn take(&mut self, update: &Update) -> StreamEvent {
        match self.streamed_task.take(update) {
            TaskChange::None => StreamEvent::Nothing,
            TaskChange::Task => {
                let is_news = self.streamed_task.task().is_some_and(|task| task.state() != TaskState::Submitted);
                if is_news { self.tell() } else { StreamEvent::Nothing }
            }
            TaskChange::Status => self.tell(),
            // The status that follows a finished artifact sends it as well: in the original one message is one event.
            TaskChange::Artifact { is_whole: true, .. } | TaskChange::Artifact { is_too_much: true, .. } => {
                StreamEvent::Nothing
            }
            TaskChange::Artifact { .. } => {
                // The note was sent already. If it stayed in the status, the next event would show it in place of the
                // growing answer.
                if let Some(task) = self.streamed_task.task_mut().filter(|task| task.state() == TaskState::Working) {
                    task.status.message = None;
                }
                StreamEvent::TaskIfNothingFollows
            }
        }
    }

    /// The task as it stands, once there is one.
    #[must_use]
    pub fn view(&self) -> Option<TaskView> {
        self.streamed_task.view()
    }

    fn tell(&self) -> StreamEvent {
        match self.streamed_task.task() {
            Some(task) if is_failure(task.state()) => StreamEvent::Failed(failed(task)),
            Some(_) => StreamEvent::Task,
            None => StreamEvent::Nothing,
        }
    }
}

/// Whether this dialect answers a task in this state with an error.
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
