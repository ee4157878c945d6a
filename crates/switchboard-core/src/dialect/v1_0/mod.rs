//! A2A 1.0 in JSON, as spoken over JSON-RPC and HTTP+JSON: protobuf's JSON mapping of the 1.0 messages. Structs that
//! borrow from the request text are turned into the model at once; replies are written straight from the model.
//! - Requests: [`decode_call`]; for HTTP [`decode_send_body`], [`decode_cancel_body`], [`decode_push_config_body`],
//!   [`decode_list_query`], [`decode_history_length`], [`decode_push_list_query`].
//! - Replies: [`encode_reply`], [`encode_update`], [`encode_card`].
//! - Refusals: [`encode_rpc_error`], [`encode_http_error`].
//!
//! With the feature `protobuf`, `proto` has the same for what travels over gRPC.
//!
//! LOSSES: none; the model was made after this dialect. Unknown members are ignored on the way in.

mod card;
mod convert;
mod decode;
mod encode;
mod error;
mod names;
#[cfg(feature = "protobuf")]
pub mod proto;
mod query;
mod wire;

pub use card::encode_card;
pub use decode::{decode_call, decode_cancel_body, decode_push_config_body, decode_send_body};
pub use encode::{encode_message, encode_push_config, encode_reply, encode_task, encode_update};
pub use error::{encode_http_error, encode_http_error_as, encode_rpc_error};
pub use query::{decode_history_length, decode_list_query, decode_push_list_query};

#[cfg(test)]
mod tests;
