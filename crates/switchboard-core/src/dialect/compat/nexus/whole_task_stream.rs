//! The streams of NEXUS: the whole task, first as it was accepted and then after each change, until it waits for the
//! user or ends.

use crate::dialect::compat::streamed_task::{StreamEvent, StreamedTask, TaskChange};
use crate::model::{TaskView, Update};

/// Keeps the task that a stream is about, as far as it has come.
#[derive(Default)]
pub struct WholeTaskStream {
    streamed_task: StreamedTask,
}

impl WholeTaskStream {
    /// Applies an update and returns what to send for it.
    pub fn take(&mut self, update: &Update) -> StreamEvent {
        match self.streamed_task.take(update) {
            TaskChange::None | TaskChange::Artifact { is_too_much: true, .. } => StreamEvent::Nothing,
            TaskChange::Task | TaskChange::Status => StreamEvent::Task,
            TaskChange::Artifact { .. } => StreamEvent::TaskIfNothingFollows,
        }
    }

    /// The task as it stands, once there is one.
    #[must_use]
    pub fn view(&self) -> Option<TaskView> {
        self.streamed_task.view()
    }
}

/// Whether a stream ends with this update: at the end of the task, and where it waits for the user.
#[must_use]
pub fn ends_stream(update: &Update) -> bool {
    match update {
        Update::Task(view) => view.task.state().is_settled(),
        Update::Status(update) => update.status.state.is_settled(),
        Update::Message(_) => true,
        Update::Artifact(_) => false,
    }
}
