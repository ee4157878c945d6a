//! The spelling of 0.3's proto as protobuf itself: what travels over gRPC, as `a2a.v1`. It is `rest` without the JSON,
//! and fields are named as there. Each message is read into the model and written from it in one file: `message`
//! (messages and parts), `task` (tasks and updates), `push` (webhooks, and the names of resources), `card`
//! (the agent card), `call` (requests and replies).

mod call;
mod card;
#[rustfmt::skip]
pub mod generated;
mod message;
mod push;
#[allow(clippy::duplicate_mod, reason = "both packages have these messages, each its own")]
#[path = "../../protobuf/task.rs"]
mod task;

pub use call::{read_call, read_reply, write_call, write_reply};
pub use card::{read_card, write_card};
pub use task::{read_update, write_update};

use crate::dialect::protobuf::{self, Status};
use crate::dialect::wire::V0_3_REST;
use crate::error::ProtocolError;

/// A refusal. That version has no table for gRPC; like the SDKs that serve it we use 1.0's.
#[must_use]
pub fn write_error(error: &ProtocolError) -> Status {
    protobuf::write_error(error, |state| V0_3_REST.state(state))
}
