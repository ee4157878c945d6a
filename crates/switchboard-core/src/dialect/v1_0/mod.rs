//! A2A 1.0 in JSON, as spoken over JSON-RPC and HTTP+JSON: protobuf's JSON mapping of the 1.0 messages. What its objects look
//! like is in [`wire`]; here are its methods, its query parameters and its refusals.
//! - Requests: [`decode_call`]; for HTTP [`decode_send_body`], [`decode_cancel_body`], [`decode_push_config_body`],
//!   [`decode_list_query`], [`decode_history_length`], [`decode_push_list_query`].
//! - Replies: [`encode_reply`], [`encode_update`], [`encode_card`].
//! - Refusals: [`encode_rpc_error`], [`encode_http_error`].
//!
//! With the feature `protobuf`, `proto` has the same for what travels over gRPC.
//!
//! LOSSES: none; the model was made after this dialect. Unknown members are ignored on the way in.

mod decode;
#[cfg(feature = "protobuf")]
pub mod proto;
mod query;

pub use super::wire::write_card_1_0 as encode_card;
pub use decode::{decode_call, decode_cancel_body, decode_push_config_body, decode_send_body};
pub use query::{decode_history_length, decode_list_query, decode_push_list_query};

use crate::call::Reply;
use crate::error::ProtocolError;
use crate::model::{Dialect, Message, PushBody, Rules, TaskView, Update};

use super::row::{Forms, Row, USUAL, in_0_3, usual_http_status};
use super::vocabulary;
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

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    wire::write_rpc_error(error, id, &V1_0, out);
}

/// Writes the body of an HTTP error that is answered with this status, or the data of a stream's error event.
pub fn encode_http_error(error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
    wire::write_http_error(error, http, &V1_0, out);
}

/// What is particular to 1.0.
pub(super) static ROW: Row = Row {
    rules: Rules {
        words: vocabulary::V1_0,
        tells_modes: true,
        cancels_again: true,
        push_body: PushBody::Update,
        push_media_type: "application/a2a+json",
        // How a stream was asked for decides where it ends, and the engine knows that.
        ..USUAL
    },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        rpc_error: encode_rpc_error,
        http_error: encode_http_error,
        http_status: usual_http_status,
        for_open_reader: in_0_3,
        call: |call| wire::write_outgoing(call, &V1_0, "A2A 1.0"),
        read_reply: |request, text, limits| wire::read_reply(request, text, &V1_0, Dialect::V1_0, limits),
        read_update: |text, limits| wire::read_update(text, &V1_0, Dialect::V1_0, limits),
        read_error: |body, _| wire::read_error(body),
        read_card: wire::read_card,
    },
};

#[cfg(test)]
mod tests;
