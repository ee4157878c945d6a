//! How the model is spelled on the wire. A dialect is a pure translator in a folder of its own; adding one adds a
//! folder, a variant of [`Dialect`], its arms below and a row in `codes`, and changes nothing else. Dialects do not import
//! each other.
//!
//! The functions here only choose: whoever has a [`Dialect`] in hand and something to write need not know the others.

pub mod agent_native;
pub mod codes;
mod conversation;
pub mod corvid;
pub mod detect;
pub mod json;
mod kinds;
pub mod nexus;
#[cfg(feature = "protobuf")]
pub mod protobuf;
mod retold;
pub mod selectools;
mod shape;
#[cfg(test)]
mod testing;
pub mod v0_3;
pub mod v1_0;
mod vocabulary;
pub mod wire;

pub use crate::model::{Dialect, Package};
pub use conversation::conversation;
pub use retold::Told;
pub use vocabulary::{Vocabulary, vocabulary, vocabulary_of_package};

use std::sync::Arc;

use crate::call::Reply;
use crate::error::ProtocolError;
use crate::model::{Message, TaskView, Update};

/// Writes the result of a call. A deletion and a stream have none.
pub fn encode_reply(dialect: Dialect, reply: &Reply, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V1_0 => v1_0::encode_reply(reply, out),
        Dialect::V0_3 => v0_3::rpc::encode_reply(reply, out),
        Dialect::V0_3Rest => v0_3::rest::encode_reply(reply, out),
        Dialect::AgentNative => agent_native::encode_reply(reply, out),
        Dialect::Selectools => selectools::encode_reply(reply, out),
        Dialect::Corvid => corvid::encode_reply(reply, out),
        Dialect::Nexus => nexus::encode_reply(reply, out),
    }
}

/// Writes one update of a stream.
pub fn encode_update(dialect: Dialect, update: &Update, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V1_0 => v1_0::encode_update(update, out),
        Dialect::V0_3 => v0_3::rpc::encode_update(update, out),
        Dialect::V0_3Rest => v0_3::rest::encode_update(update, out),
        Dialect::AgentNative => agent_native::encode_update(update, out),
        Dialect::Selectools => selectools::encode_update(update, out),
        Dialect::Corvid => corvid::encode_update(update, out),
        Dialect::Nexus => nexus::encode_update(update, out),
    }
}

/// Decodes a gRPC call.
///
/// # Errors
/// As the dialects' own.
#[cfg(feature = "protobuf")]
pub fn decode_message(
    package: Package,
    method: &str,
    message: bytes::Bytes,
    limits: &json::DecodeLimits,
) -> Result<json::Decoded, ProtocolError> {
    match package {
        Package::V1_0 => v1_0::proto::decode_call(method, message, limits),
        Package::V0_3 => v0_3::proto::decode_call(method, message, limits),
    }
}

/// Appends the result of a gRPC call. A stream has none.
#[cfg(feature = "protobuf")]
pub fn encode_message_reply(package: Package, reply: &Reply, out: &mut Vec<u8>) {
    match package {
        Package::V1_0 => v1_0::proto::encode_reply(reply, out),
        Package::V0_3 => v0_3::proto::encode_reply(reply, out),
    }
}

/// Appends one update of a gRPC stream.
#[cfg(feature = "protobuf")]
pub fn encode_message_update(package: Package, update: &Update, out: &mut Vec<u8>) {
    match package {
        Package::V1_0 => v1_0::proto::encode_update(update, out),
        Package::V0_3 => v0_3::proto::encode_update(update, out),
    }
}

/// A refusal of a gRPC call.
#[cfg(feature = "protobuf")]
#[must_use]
pub fn encode_message_error(package: Package, error: &ProtocolError) -> protobuf::Status {
    match package {
        Package::V1_0 => v1_0::proto::encode_error(error),
        Package::V0_3 => v0_3::proto::encode_error(error),
    }
}

/// Whether a stream in this dialect ends with this update, whoever follows.
#[must_use]
pub fn ends_stream(dialect: Dialect, update: &Update) -> bool {
    match dialect {
        // In 1.0 how the stream was asked for decides, and the engine knows that. The others have no streams.
        Dialect::V1_0 | Dialect::Selectools | Dialect::Corvid => false,
        Dialect::Nexus => nexus::ends_stream(update),
        Dialect::V0_3 | Dialect::V0_3Rest => v0_3::is_final(update),
        Dialect::AgentNative => agent_native::ends_stream(update),
    }
}

/// Writes a JSON-RPC error response. A form that does not travel over JSON-RPC is spelled as its version is there.
pub fn encode_rpc_error(dialect: Dialect, error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V1_0 => v1_0::encode_rpc_error(error, id, out),
        Dialect::V0_3 | Dialect::V0_3Rest | Dialect::Corvid => v0_3::encode_rpc_error(error, id, out),
        Dialect::AgentNative => agent_native::encode_rpc_error(error, id, out),
        Dialect::Selectools => selectools::encode_rpc_error(error, id, out),
        Dialect::Nexus => nexus::encode_rpc_error(error, id, out),
    }
}

/// Writes the body of an HTTP error that is answered with the given status.
pub fn encode_http_error(dialect: Dialect, error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V1_0 => v1_0::encode_http_error_as(error, http, out),
        Dialect::V0_3 | Dialect::V0_3Rest => v0_3::encode_http_error(error, out),
        Dialect::AgentNative => agent_native::encode_http_error(error, out),
        Dialect::Selectools => selectools::encode_http_error(error, out),
        Dialect::Corvid => corvid::encode_http_error(error, out),
        Dialect::Nexus => nexus::encode_http_error(error, out),
    }
}

/// What is posted to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushBody {
    /// Each update.
    Update,
    /// The task as it stands.
    Task,
}

/// What a webhook is sent that was registered in this dialect.
#[must_use]
pub fn push_body(dialect: Dialect) -> PushBody {
    match dialect {
        Dialect::V1_0 => PushBody::Update,
        Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Corvid
        | Dialect::Nexus => PushBody::Task,
    }
}

/// Writes a task for a webhook that is sent whole ones. In 0.3 that is the schema's form, whatever the binding.
pub fn encode_pushed_task(dialect: Dialect, view: &TaskView, out: &mut Vec<u8>) {
    match dialect {
        Dialect::V1_0 => v1_0::encode_task(view, out),
        Dialect::V0_3 | Dialect::V0_3Rest => v0_3::rpc::encode_task(view, out),
        Dialect::AgentNative => agent_native::encode_task(view, out),
        Dialect::Selectools => selectools::encode_task(view, out),
        Dialect::Corvid => corvid::encode_task(view, out),
        Dialect::Nexus => nexus::encode_task(view, out),
    }
}

/// The media type of what is posted to a webhook.
#[must_use]
pub fn push_media_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1_0 => "application/a2a+json",
        Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Corvid
        | Dialect::Nexus => "application/json",
    }
}

/// How a task is shown to somebody whose request could be of several dialects (`detect::Verdict::is_open`): in 0.3, with
/// what a reader of the dialect it was begun in looks for. Where that is something 0.3 has no room for, such as a status
/// that is a word, in the dialect it was begun in.
#[must_use]
pub fn for_open_reader(view: TaskView) -> (Dialect, TaskView) {
    match view.task.dialect {
        Dialect::AgentNative => (Dialect::V0_3, agent_native::with_answer_in_status(view)),
        Dialect::Nexus => (Dialect::Nexus, view),
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::Selectools | Dialect::Corvid => {
            (Dialect::V0_3, view)
        }
    }
}

/// An id that this house makes, in the form a dialect has for its ids. `uuid` is one in its usual form.
#[must_use]
pub fn own_id(dialect: Dialect, uuid: Arc<str>) -> Arc<str> {
    match dialect {
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::AgentNative | Dialect::Corvid | Dialect::Nexus => {
            uuid
        }
        Dialect::Selectools => uuid.replace('-', "").into(),
    }
}

/// The text that an agent reads in a message. A dialect may say more of it in words than its text parts.
#[must_use]
pub fn prompt(dialect: Dialect, message: &Message) -> String {
    match dialect {
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::AgentNative | Dialect::Corvid | Dialect::Nexus => {
            message.text()
        }
        Dialect::Selectools => selectools::prompt(message),
    }
}

/// Whether a client's key for a send (`Idempotency-Key`) is free again once its task has failed or was canceled.
#[must_use]
pub fn frees_keys(dialect: Dialect) -> bool {
    match dialect {
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::Selectools | Dialect::Corvid | Dialect::Nexus => {
            false
        }
        Dialect::AgentNative => true,
    }
}

/// Whether clients of a dialect are told which media types an agent reads and writes. What they cannot know they are not
/// refused for.
#[must_use]
pub fn tells_modes(dialect: Dialect) -> bool {
    match dialect {
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest => true,
        // Their cards do not list them, or say the same of every agent.
        Dialect::AgentNative | Dialect::Selectools | Dialect::Corvid | Dialect::Nexus => false,
    }
}

/// Whether a client that asks for its own limit of time means "no longer than this", rather than "this long". Then an agent
/// that gives less is no reason to refuse.
#[must_use]
pub fn asks_for_at_most(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Corvid => true,
        Dialect::V1_0
        | Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Nexus => false,
    }
}

/// Whether a client that does not want to wait is told that its task is at work, whatever the agent: then the answer comes
/// before the run, also of an agent that could have answered at once. In other dialects such a client may be told the end.
#[must_use]
pub fn answers_before_the_run(dialect: Dialect) -> bool {
    match dialect {
        Dialect::AgentNative | Dialect::Corvid => true,
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::Selectools | Dialect::Nexus => false,
    }
}

/// Whether the cancel of a task that was canceled before is answered with the task, as 1.0 calls for (3.3.1), or refused
/// because the task is over, as everywhere else.
#[must_use]
pub fn cancels_again(dialect: Dialect) -> bool {
    match dialect {
        Dialect::V1_0 => true,
        Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Corvid
        | Dialect::Nexus => false,
    }
}

/// Whether a task may take no longer than its time, a pause for an answer included: its clients have no way to answer.
#[must_use]
pub fn limits_pauses(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Corvid => true,
        Dialect::V1_0
        | Dialect::V0_3
        | Dialect::V0_3Rest
        | Dialect::AgentNative
        | Dialect::Selectools
        | Dialect::Nexus => false,
    }
}

/// Whether a caller that waits is told by an error that the agent answered wrongly (-32006). In the dialect of selectools
/// whatever an agent does wrongly is a failed task.
#[must_use]
pub fn refuses_wrong_answers(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Selectools => false,
        Dialect::V1_0 | Dialect::V0_3 | Dialect::V0_3Rest | Dialect::AgentNative | Dialect::Corvid | Dialect::Nexus => {
            true
        }
    }
}
