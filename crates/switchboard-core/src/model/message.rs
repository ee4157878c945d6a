//! One thing said, by a user or by an agent.

use super::ids::{ContextId, MessageId, TaskId};
use super::json::Json;
use super::part::Part;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The client, on behalf of its user or agent.
    User,
    /// The agent.
    Agent,
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Chosen by the author. A message that is sent again under the same id is accepted once.
    pub message_id: MessageId,
    /// The conversation it belongs to; none begins a new one.
    pub context_id: Option<ContextId>,
    /// The task it goes on with; none opens a task.
    pub task_id: Option<TaskId>,
    /// Who speaks.
    pub role: Role,
    /// The content, in order.
    pub parts: Vec<Part>,
    /// Free-form JSON about it, an object.
    pub metadata: Option<Json>,
    /// URIs of the extensions that shaped it.
    pub extensions: Vec<String>,
    /// Other tasks it is about; the agent reads those that are the caller's.
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
    /// A message outside any context and task. The id must be one that its author has not used.
    #[must_use]
    pub fn new(role: Role, message_id: impl Into<MessageId>, parts: Vec<Part>) -> Self {
        Self {
            message_id: message_id.into(),
            context_id: None,
            task_id: None,
            role,
            parts,
            metadata: None,
            extensions: Vec::new(),
            reference_task_ids: Vec::new(),
        }
    }

    /// All text parts, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        let mut texts = self.parts.iter().filter_map(Part::as_text);
        let mut joined = texts.next().unwrap_or_default().to_owned();
        for text in texts {
            joined.push('\n');
            joined.push_str(text);
        }
        joined
    }
}
