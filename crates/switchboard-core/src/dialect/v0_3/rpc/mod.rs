//! The spelling of 0.3's JSON schema: what travels over JSON-RPC and to webhooks.

mod convert;
mod decode;
mod encode;
mod wire;

pub use decode::decode_call;
pub use encode::{encode_message, encode_reply, encode_task, encode_update};
