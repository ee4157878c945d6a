//! What the outside may see of a commit, and where a reader's stream ends.

use crate::model::{ArtifactUpdate, ContextId, StatusUpdate, TaskId, TaskState, TaskStatus, TaskView, Update};

use super::{Event, Folded};

/// The visible updates of one commit with their numbers, the first of which is `first_seq`.
pub fn updates<'a>(
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    first_seq: u64,
    events: &'a [Event],
) -> impl Iterator<Item = (u64, Update)> + 'a {
    (first_seq..).zip(events.iter().filter_map(move |event| update(task_id, context_id, event)))
}

fn update(task_id: &TaskId, context_id: &ContextId, event: &Event) -> Option<Update> {
    match event {
        Event::Opened { .. } => {
            let mut opened = Folded::empty(task_id.clone(), context_id.clone());
            opened.apply(event);
            Some(Update::Task(TaskView::whole(opened.task)))
        }
        Event::StatusChanged { state, message, metadata, at } => Some(Update::Status(StatusUpdate {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            status: TaskStatus { state: *state, message: message.clone(), timestamp: *at },
            metadata: metadata.clone(),
        })),
        Event::ArtifactWritten { artifact, append, last_chunk, metadata, .. } => {
            Some(Update::Artifact(ArtifactUpdate {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                artifact: artifact.clone(),
                append: *append,
                last_chunk: *last_chunk,
                metadata: metadata.clone(),
            }))
        }
        Event::Received { .. }
        | Event::MessageAdded { .. }
        | Event::TurnBegan { .. }
        | Event::TurnEnded
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::CancelRequested { .. }
        | Event::Claimed { .. }
        | Event::Checkpoint { .. } => None,
    }
}

/// How a stream was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// By sending a message.
    Send,
    /// By subscribing to a task.
    Subscribe,
}

/// What a stream does after it has shown a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    Follow,
    Close,
}

/// Whether a stream goes on after showing `state`. Spec 3.1.2 closes streams at terminal states only; 11.7 says
/// terminal or interrupted. A send's stream closes at input-required, since nothing more can come before the next
/// message; it stays open at auth-required, since credentials may arrive out of band (7.6.1). A subscriber stays.
#[must_use]
pub fn after_state(kind: StreamKind, state: TaskState) -> StreamEnd {
    match (kind, state) {
        (_, TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected)
        | (StreamKind::Send, TaskState::InputRequired) => StreamEnd::Close,
        (StreamKind::Subscribe, TaskState::InputRequired)
        | (_, TaskState::Submitted | TaskState::Working | TaskState::AuthRequired) => StreamEnd::Follow,
    }
}
