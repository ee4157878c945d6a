//! The spelling of 0.3's proto as protobuf itself: what travels over gRPC, as `a2a.v1`. It is `rest` without the JSON.

mod card;
mod decode;
mod encode;
#[rustfmt::skip]
pub mod generated;
mod resource;

pub use decode::decode_call;
pub use encode::{encode_reply, encode_update};

use crate::dialect::protobuf::{self, Status};
use crate::error::ProtocolError;

use crate::dialect::wire::V0_3_REST;

/// A refusal. That version has no table for gRPC; like the SDKs that serve it we use 1.0's.
#[must_use]
pub fn encode_error(error: &ProtocolError) -> Status {
    protobuf::encode_error(error, |state| V0_3_REST.state(state))
}
