//! The enum values of 1.0: each has a name, which is what we write, and a number, which may be read as well.

use crate::dialect::json::NameOrNumber;
use crate::model::{Role, TaskState};

pub(super) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
    }
}

pub(super) fn state_number(state: TaskState) -> i32 {
    match state {
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

/// A value that is none of the enum's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

/// Reads a state; none is the unspecified one.
pub(super) fn read_state(sent: &NameOrNumber<'_>) -> Result<Option<TaskState>, Unknown> {
    let known = match sent {
        NameOrNumber::Name(name) if name == "TASK_STATE_UNSPECIFIED" => return Ok(None),
        NameOrNumber::Number(0) => return Ok(None),
        NameOrNumber::Name(name) => TaskState::ALL.into_iter().find(|state| state_name(*state) == name),
        NameOrNumber::Number(number) => {
            TaskState::ALL.into_iter().find(|state| i64::from(state_number(*state)) == *number)
        }
    };
    known.map(Some).ok_or(Unknown)
}

/// Reads a role; the unspecified one is none of the enum's, since nobody may speak as nobody.
pub(super) fn read_role(sent: &NameOrNumber<'_>) -> Result<Role, Unknown> {
    match sent {
        NameOrNumber::Name(name) if name == "ROLE_USER" => Ok(Role::User),
        NameOrNumber::Name(name) if name == "ROLE_AGENT" => Ok(Role::Agent),
        NameOrNumber::Number(1) => Ok(Role::User),
        NameOrNumber::Number(2) => Ok(Role::Agent),
        NameOrNumber::Name(_) | NameOrNumber::Number(_) => Err(Unknown),
    }
}
