//! A2A 1.0 in protobuf: what travels over gRPC, as `lf.a2a.v1`.

mod card;
mod decode;
mod encode;
#[rustfmt::skip]
pub mod generated;

pub use card::encode_card;
pub use decode::decode_call;
pub use encode::{encode_reply, encode_update};

use crate::dialect::protobuf::{self, Status};
use crate::error::ProtocolError;

use crate::dialect::wire::V1_0;

/// A refusal.
#[must_use]
pub fn encode_error(error: &ProtocolError) -> Status {
    protobuf::encode_error(error, |state| V1_0.state(state))
}
