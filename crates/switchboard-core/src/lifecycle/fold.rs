//! Folds events into the task that readers see. If a snapshot ever differs from the fold of the log, the log is right.

use std::sync::Arc;

use crate::model::{ContextId, Dialect, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp};

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
                push(&mut task.history, inbound.message.clone());
                push(&mut self.open_turns, inbound.clone());
            }
            Event::Opened { inbound, at, .. } => {
                task.status.timestamp = *at;
                task.created_at = *at;
                task.metadata.clone_from(&inbound.metadata);
                task.dialect = inbound.dialect;
                // A record that was received first already has its message.
                if task.history.is_empty() {
                    push(&mut task.history, inbound.message.clone());
                    push(&mut self.open_turns, inbound.clone());
                }
            }
            Event::MessageAdded { inbound } => {
                push(&mut task.history, inbound.message.clone());
                push(&mut self.open_turns, inbound.clone());
            }
            Event::TurnBegan { turn, .. } => {
                self.open_turns.retain(|open| open.turn >= *turn);
                self.checkpoint = None;
            }
            Event::StatusChanged { state, message, at, .. } => {
                // The agent's question has been answered, or has become moot: it is part of the conversation now.
                keep_question(task);
                task.status = TaskStatus { state: *state, message: message.clone(), timestamp: *at };
            }
            Event::ArtifactWritten { artifact, append, .. } => {
                match task.artifacts.iter_mut().find(|known| known.artifact_id == artifact.artifact_id) {
                    Some(known) if *append => Arc::make_mut(known).append(artifact),
                    Some(known) => known.clone_from(artifact),
                    None => push(&mut task.artifacts, artifact.clone()),
                }
            }
            Event::Replied { message } => self.reply = Some(message.clone()),
            Event::Checkpoint { value } => self.checkpoint = Some(value.clone()),
            Event::CancelRequested { .. } | Event::Claimed { .. } | Event::TurnEnded => {}
        }
    }
}

/// Most tasks have one message, one turn and one artifact, and many tasks are kept: the first takes no more room than
/// it needs.
fn push<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}

fn keep_question(task: &mut Task) {
    if task.status.state.is_interrupted() {
        task.history.extend(task.status.message.take());
    }
}
