//! A2A 1.0 in protobuf: what travels over gRPC, as `lf.a2a.v1`. Each message is read into the model and written from it
//! in one file: `message` (messages and parts), `task` (tasks and updates), `push` (webhooks), `card` (the agent card),
//! `call` (requests and replies). Fields are named as the JSON of 1.0 names them, so that a refusal reads the same over
//! every binding.

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
use crate::dialect::wire::V1_0;
use crate::error::ProtocolError;

/// A refusal.
#[must_use]
pub fn write_error(error: &ProtocolError) -> Status {
    protobuf::write_error(error, |state| V1_0.state(state))
}
