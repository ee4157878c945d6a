//! One thing said, by a user or by an agent.

use super::{ContextId, Json, MessageId, Part, TaskId};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    User,
    Agent,
}

/// One thing said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub message_id: MessageId,
    pub context_id: Option<ContextId>,
    pub task_id: Option<TaskId>,
    pub role: Role,
    pub parts: Vec<Part>,
    pub metadata: Option<Json>,
    pub extensions: Vec<String>,
    pub reference_task_ids: Vec<TaskId>,
}

impl Message {
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
