//! What can have happened to a task. Several events that happened together are one commit. Those that the outside may
//! see take a number (`seq`); the others are part of the record all the same.

use std::sync::Arc;

use crate::model::{Artifact, ContextId, Dialect, Json, Message, TaskState, Timestamp};

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
