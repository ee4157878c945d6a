//! The spelling of 0.3's proto in protobuf's JSON mapping: what travels over HTTP+JSON under `/v1`.

mod convert;
mod decode;
mod encode;
mod wire;

pub use decode::{decode_cancel_body, decode_history_length, decode_push_config_body, decode_send_body};
pub use encode::{encode_message, encode_reply, encode_task, encode_update};
