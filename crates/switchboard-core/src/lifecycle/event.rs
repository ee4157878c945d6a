//! What can have happened to a task. Several events that happened together are one commit. Those that the outside may
//! see take a number (`seq`) and are shown as updates; the others are part of the record all the same. How a stream was
//! asked for decides after which state it ends.

use std::sync::Arc;

use super::Folded;
use crate::model::{
    Artifact, ArtifactUpdate, ContextId, Dialect, Json, Message, StatusUpdate, TaskId, TaskState, TaskStatus, TaskView,
    Timestamp, Update,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message was accepted for an agent that may answer it directly; callers do not see a task yet. Internal.
    Received { inbound: Arc<Inbound>, context_id: ContextId },
    /// The task exists, submitted. Visible as the task itself.
    Opened { inbound: Arc<Inbound>, context_id: ContextId, at: Timestamp },
    /// A further message arrived and waits as the next turn. Internal.
    MessageAdded { inbound: Arc<Inbound> },
    /// Work began on the next waiting message, under a new fence. Internal; acceptance itself begins the first turn.
    TurnBegan { turn: u32, fence: u64 },
    /// The run ended without settling the task anew: it stays paused until the next message. Internal.
    TurnEnded,
    /// Visible.
    StatusChanged { state: TaskState, message: Option<Arc<Message>>, metadata: Option<Json>, at: Timestamp },
    /// Visible. `append` false replaces what the artifact held.
    ArtifactWritten { artifact: Arc<Artifact>, append: bool, last_chunk: bool, metadata: Option<Json>, attempt: u32 },
    /// A note of the agent is part of the conversation, in dialects that keep notes. Internal; the status that says it is
    /// visible.
    Noted { message: Arc<Message> },
    /// The agent answered directly: the record closes without ever having been a task. Internal.
    Replied { message: Arc<Message> },
    /// A caller asked for the task to be canceled. Internal.
    CancelRequested { metadata: Option<Json>, at: Timestamp },
    /// A worker took the task over. `attempt` is one higher if the worker before it died, and the same if that one had
    /// given the task back in order. Internal.
    Claimed { fence: u64, attempt: u32, at: Timestamp },
    /// Something the agent wants its next attempt to know. Internal.
    Checkpoint { value: Json },
}

impl Event {
    /// Whether the outside may see it, and so whether it takes a number.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Opened { .. } | Self::StatusChanged { .. } | Self::ArtifactWritten { .. } => true,
            Self::Received { .. }
            | Self::MessageAdded { .. }
            | Self::TurnBegan { .. }
            | Self::TurnEnded
            | Self::Noted { .. }
            | Self::Replied { .. }
            | Self::CancelRequested { .. }
            | Self::Claimed { .. }
            | Self::Checkpoint { .. } => false,
        }
    }
}

/// Whether a reader must fold this commit, made in state `before`, to know the task. A status that a later one replaces leaves no trace unless
/// it asked something (its message moves to history when the task goes on), so a reader that has the newest status from
/// elsewhere may skip commits of mere progress; a task with a million progress notes is still read quickly.
#[must_use]
pub fn is_needed_to_fold(before: TaskState, events: &[Event]) -> bool {
    events.iter().any(|event| match event {
        Event::StatusChanged { state, message, .. } => {
            before.is_interrupted() || (state.is_interrupted() && message.is_some())
        }
        Event::Claimed { .. } | Event::CancelRequested { .. } | Event::TurnEnded => false,
        Event::Received { .. }
        | Event::Opened { .. }
        | Event::MessageAdded { .. }
        | Event::TurnBegan { .. }
        | Event::ArtifactWritten { .. }
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::Checkpoint { .. } => true,
    })
}

/// A message as it came in, with what the request said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The number of the turn it begins; 1 for the message that opened the task.
    pub turn: u32,
    pub message: Arc<Message>,
    /// The dialect it was said in.
    pub dialect: Dialect,
    pub metadata: Option<Json>,
    pub accepted_output_modes: Vec<String>,
    pub extensions: Vec<String>,
    pub trace_parent: Option<String>,
}

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
