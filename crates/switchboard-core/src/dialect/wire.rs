//! A2A in JSON: one definition of each object, read and written by it. Version 1.0, version 0.3 over JSON-RPC and version 0.3
//! over HTTP have the same objects under other names; a [`Spelling`] says which names, and everything here takes one.
//!
//! The structs are what stands in the text. All their members are optional: null and absent are the same, each spelling has
//! some of them, and what is required is checked when the model is made of them, with a better message. Unknown members are
//! skipped; repeated ones are refused. `of` makes a struct of the model, `read` makes the model of a struct and reports what may
//! not be by field.
//! - `message`, `task`, `push`: messages with their parts, tasks with their artifacts, webhooks; `card`, `security`: agent
//!   cards.
//! - `call`: requests and replies; `http`: requests as each transport sends them, with the paths of HTTP+JSON; `error`: error bodies.

mod call;
mod card;
pub(in crate::dialect) mod data_part;
mod error;
mod http;
mod message;
mod push;
mod reply;
mod security;
mod task;

use serde::Serialize;

use super::json::{NameOrNumber, append};
use crate::model::{Role, TaskState};

pub(in crate::dialect) use call::{BareParams, ListTasksParams, PushParams, SendParams, TaskParams};
pub(in crate::dialect) use card::read_card_of;
pub(in crate::dialect) use http::write_outgoing;
pub(in crate::dialect) use push::{PushConfig, TaskPushConfig};

pub use call::{write_call, write_send};
pub use card::{read_card, write_card_0_3, write_card_1_0};
pub use error::{ReceivedError, read_error, write_http_error, write_rpc_error};
pub use http::write_http_call;
pub use message::write_message;
pub use reply::{read_push_config, read_reply, read_task, read_update, write_reply, write_task, write_update};
pub use task::ends_stream;

#[cfg(feature = "protobuf")]
pub(in crate::dialect) use card::{is_of_0_3, list_interfaces_of_0_3};

/// Appends an object of this form. Nothing in a form can fail to be written.
fn put<T: Serialize>(out: &mut Vec<u8>, form: &T) {
    append(out, form).expect("every key of a form is a text");
}

/// One JSON form of A2A.
#[derive(Debug)]
pub struct Spelling {
    parts: PartForm,
    push: PushForm,
    /// In the order of [`TaskState::ALL`].
    states: [&'static str; 8],
    /// User and agent.
    roles: [&'static str; 2],
    /// Whether enums have numbers, which may stand in place of their names.
    has_numbers: bool,
    /// What is sent back or streamed stands in a member that says what it is. Otherwise it says so itself, in `kind`.
    wraps: bool,
    /// Whether a client must name its messages. Otherwise the server does.
    requires_message_id: bool,
    /// Whether a message names the tasks it refers to.
    has_references: bool,
    /// Whether a status says that the stream ends with it.
    final_status: Flag,
    /// How a chunk says that it continues an artifact, and that it is the last.
    chunks: Flag,
    /// Whether an empty list of artifacts is written where the client asked for the list.
    lists_no_artifacts: bool,
    /// Whether a refusal has a list of details. Otherwise it has one flat object.
    error_details: bool,
    /// The name of a ninth state, of a task whose state its agent cannot determine. It is final (0.2, 6.3), and read as failed.
    undetermined: Option<&'static str>,
}

/// How a part says what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartForm {
    /// By the one of `text`, `raw`, `url` and `data` that is there; file name and media type stand beside.
    Flat,
    /// In `kind`; a file is an object of its own.
    Kind,
    /// By the one of `text`, `file` and `data` that is there; files and data are objects of their own. The parts of a message
    /// are its `content`.
    Nested,
}

/// How a webhook is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PushForm {
    /// One object with its task beside its URL.
    Flat,
    /// The task, and beside it the webhook.
    OfTask,
    /// The name of the resource, and beside it the webhook.
    Resource,
}

/// How a boolean is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Always,
    WhenTrue,
    Never,
}

impl Flag {
    fn of(self, value: bool) -> Option<bool> {
        match self {
            Self::Always => Some(value),
            Self::WhenTrue => value.then_some(true),
            Self::Never => None,
        }
    }
}

/// A2A 1.0: protobuf's JSON mapping of its messages, over JSON-RPC and HTTP.
pub static V1_0: Spelling = Spelling {
    parts: PartForm::Flat,
    push: PushForm::Flat,
    states: [
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_REJECTED",
        "TASK_STATE_AUTH_REQUIRED",
    ],
    roles: ["ROLE_USER", "ROLE_AGENT"],
    has_numbers: true,
    wraps: true,
    requires_message_id: true,
    has_references: true,
    final_status: Flag::Never,
    chunks: Flag::WhenTrue,
    lists_no_artifacts: true,
    error_details: true,
    undetermined: None,
};

/// A2A 0.3 as its JSON schema has it: JSON-RPC, webhooks. A2A 0.2 is the same.
pub static V0_3: Spelling = Spelling {
    parts: PartForm::Kind,
    push: PushForm::OfTask,
    states: ["submitted", "working", "completed", "failed", "canceled", "input-required", "rejected", "auth-required"],
    roles: ["user", "agent"],
    has_numbers: false,
    wraps: false,
    requires_message_id: false,
    has_references: true,
    final_status: Flag::Always,
    chunks: Flag::Always,
    lists_no_artifacts: true,
    error_details: false,
    undetermined: Some("unknown"),
};

/// A2A 0.3 as protobuf's JSON mapping of its messages: HTTP under `/v1`.
pub static V0_3_REST: Spelling = Spelling {
    parts: PartForm::Nested,
    push: PushForm::Resource,
    states: [
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        // With two L; 1.0 has one.
        "TASK_STATE_CANCELLED",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_REJECTED",
        "TASK_STATE_AUTH_REQUIRED",
    ],
    roles: ["ROLE_USER", "ROLE_AGENT"],
    has_numbers: true,
    wraps: true,
    requires_message_id: false,
    has_references: false,
    final_status: Flag::WhenTrue,
    chunks: Flag::WhenTrue,
    lists_no_artifacts: false,
    error_details: false,
    undetermined: Some(Spelling::UNSPECIFIED),
};

impl Spelling {
    pub(in crate::dialect) fn state(&self, state: TaskState) -> &'static str {
        match TaskState::ALL.iter().position(|known| *known == state) {
            Some(place) => self.states[place],
            None if self.has_numbers => Self::UNSPECIFIED,
            None => "unknown",
        }
    }

    pub(in crate::dialect) fn role(&self, role: Role) -> &'static str {
        match role {
            Role::User => self.roles[0],
            Role::Agent => self.roles[1],
        }
    }

    /// The name of the state that is none.
    const UNSPECIFIED: &'static str = "TASK_STATE_UNSPECIFIED";

    /// A state by its name or number; the inner option is none for the unspecified one, the outer if it is no state.
    pub(in crate::dialect) fn read_state(&self, sent: &NameOrNumber<'_>) -> Option<Option<TaskState>> {
        let at = match sent {
            NameOrNumber::Name(name) if self.has_numbers && name == Self::UNSPECIFIED => return Some(None),
            NameOrNumber::Number(0) if self.has_numbers => return Some(None),
            NameOrNumber::Name(name) => self.states.iter().position(|state| state == name)?,
            NameOrNumber::Number(number) if self.has_numbers => usize::try_from(*number - 1).ok()?,
            NameOrNumber::Number(_) => return None,
        };
        TaskState::ALL.get(at).copied().map(Some)
    }

    /// A role by its name or number; none for the unspecified one.
    pub(in crate::dialect) fn read_role(&self, sent: &NameOrNumber<'_>) -> Option<Role> {
        match sent {
            NameOrNumber::Name(name) if name == self.roles[0] => Some(Role::User),
            NameOrNumber::Name(name) if name == self.roles[1] => Some(Role::Agent),
            NameOrNumber::Number(1) if self.has_numbers => Some(Role::User),
            NameOrNumber::Number(2) if self.has_numbers => Some(Role::Agent),
            NameOrNumber::Name(_) | NameOrNumber::Number(_) => None,
        }
    }
}

#[cfg(test)]
pub(in crate::dialect) mod tests;
