//! How the model is spelled on the wire. A dialect is a pure translator in a folder of its own, and a [`Row`] in that folder
//! says what is particular to it. Whoever has a [`Dialect`] in hand asks it: `dialect.rules()`, `dialect.write_reply(…)`.
//! Dialects do not import each other.

pub mod agent_native;
pub mod codes;
pub mod corvid;
pub mod detect;
pub mod json;
mod kinds;
pub mod nexus;
#[cfg(feature = "protobuf")]
pub mod protobuf;
mod retold;
mod row;
pub mod selectools;
mod shape;
#[cfg(test)]
mod testing;
pub mod v0_3;
pub mod v1_0;
mod vocabulary;
pub mod wire;

pub use crate::model::{Dialect, Package};
pub use retold::Told;
pub use row::{Forms, Row};
pub use vocabulary::vocabulary_of_package;

use crate::call::Reply;
use crate::error::ProtocolError;
use crate::model::TaskView;
#[cfg(feature = "protobuf")]
use crate::model::Update;

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
