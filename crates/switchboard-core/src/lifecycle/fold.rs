//! Folds events into the task that readers see. If a snapshot ever differs from the fold of the log, the log is right.

use std::sync::Arc;

use crate::model::{ContextId, Dialect, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp, push_exact};

use super::{Event, Inbound};

/// A task and the little beside it that only its runs need.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    pub task: Arc<Task>,
    /// The turns that have not ended: the current one first, then the inbox.
    pub open_turns: Vec<Arc<Inbound>>,
    /// A direct reply, if that is how the record closed.
    pub reply: Option<Arc<Message>>,
    pub checkpoint: Option<Json>,
}

impl Folded {
    /// The fold of nothing.
    #[must_use]
    pub fn empty(id: TaskId, context_id: ContextId) -> Self {
        let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: Timestamp::default() };
        let task = Task {
            id,
            context_id,
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            created_at: Timestamp::default(),
            dialect: Dialect::V1_0,
        };
        Self { task: Arc::new(task), open_turns: Vec::new(), reply: None, checkpoint: None }
    }

    pub fn apply_all(&mut self, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
    }

    pub fn apply(&mut self, event: &Event) {
        let task = Arc::make_mut(&mut self.task);
        match event {
            Event::Received { inbound, .. } => {
                push_exact(&mut task.history, inbound.message.clone());
                push_exact(&mut self.open_turns, inbound.clone());
            }
            Event::Opened { inbound, at, .. } => {
                task.status.timestamp = *at;
                task.created_at = *at;
                task.metadata.clone_from(&inbound.metadata);
                task.dialect = inbound.dialect;
                // A record that was received first already has its message.
                if task.history.is_empty() {
                    push_exact(&mut task.history, inbound.message.clone());
                    push_exact(&mut self.open_turns, inbound.clone());
                }
            }
            Event::MessageAdded { inbound } => {
                push_exact(&mut task.history, inbound.message.clone());
                push_exact(&mut self.open_turns, inbound.clone());
            }
            Event::TurnBegan { turn, .. } => {
                self.open_turns.retain(|open| open.turn >= *turn);
                self.checkpoint = None;
            }
            Event::StatusChanged { state, message, at, .. } => {
                task.take_status(TaskStatus { state: *state, message: message.clone(), timestamp: *at });
            }
            Event::ArtifactWritten { artifact, append, .. } => task.take_artifact(artifact, *append),
            Event::Noted { message } => push_exact(&mut task.history, message.clone()),
            Event::Replied { message } => self.reply = Some(message.clone()),
            Event::Checkpoint { value } => self.checkpoint = Some(value.clone()),
            Event::CancelRequested { .. } | Event::Claimed { .. } | Event::TurnEnded => {}
        }
    }
}
