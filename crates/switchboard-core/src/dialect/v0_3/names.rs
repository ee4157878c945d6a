//! States and roles in both spellings. Those of the schema are the words the house itself uses; those of the proto are
//! 1.0's but for one letter.

use crate::dialect::json::NameOrNumber;
use crate::model::{Role, TaskState};

pub(super) fn state_word(state: TaskState) -> &'static str {
    state.word()
}

/// The proto writes CANCELLED.
pub(super) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELLED",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

pub(super) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Agent => "agent",
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(super) fn read_role_word(word: &str) -> Option<Role> {
    [Role::User, Role::Agent].into_iter().find(|role| role_word(*role) == word)
}

/// Reads the proto's name or number; the unspecified role is nobody's.
pub(super) fn read_role_name(sent: &NameOrNumber<'_>) -> Option<Role> {
    match sent {
        NameOrNumber::Name(name) => [Role::User, Role::Agent].into_iter().find(|role| role_name(*role) == name),
        NameOrNumber::Number(1) => Some(Role::User),
        NameOrNumber::Number(2) => Some(Role::Agent),
        NameOrNumber::Number(_) => None,
    }
}
