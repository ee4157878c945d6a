//! A2A 1.0 in JSON, as spoken over JSON-RPC and HTTP+JSON: protobuf's JSON mapping of the 1.0 messages. What its objects look
//! like is in [`wire`](super::wire); here are its methods, its query parameters and its refusals.
//! - Requests: [`decode_call`]; for HTTP [`decode_send_body`], [`decode_cancel_body`], [`decode_push_config_body`],
//!   [`decode_list_query`], [`decode_history_length`], [`decode_push_list_query`].
//! - Replies: [`encode_reply`], [`encode_update`], [`encode_card`].
//! - Refusals: [`encode_rpc_error`], [`encode_http_error`].
//!
//! With the feature `protobuf`, `proto` has the same for what travels over gRPC.
//!
//! LOSSES: none; the model was made after this dialect. Unknown members are ignored on the way in.

mod decode;
mod error;
#[cfg(feature = "protobuf")]
pub mod proto;
mod query;

pub use super::wire::write_card_1_0 as encode_card;
pub use decode::{decode_call, decode_cancel_body, decode_push_config_body, decode_send_body};
pub use error::{encode_http_error, encode_http_error_as, encode_rpc_error};
pub use query::{decode_history_length, decode_list_query, decode_push_list_query};

use crate::call::Reply;
use crate::model::{Message, TaskView, Update};

use super::wire::{self, V1_0};

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`encode_update`].
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Card(card) => encode_card(card, out),
        reply => wire::write_reply(reply, &V1_0, out),
    }
}

/// Writes one update of a stream or a webhook.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    wire::write_update(update, &V1_0, out);
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    wire::write_task(view, &V1_0, out);
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    wire::write_message(message, &V1_0, out);
}

#[cfg(test)]
mod tests;
