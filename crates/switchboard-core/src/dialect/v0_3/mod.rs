//! A2A 0.3, and 0.2 as the same family. It is spelled in ways that must not be mixed: [`rpc`] as its JSON schema has
//! it (JSON-RPC, webhooks, cards: `kind`, small states, nested files), and [`rest`] as protobuf's JSON mapping of its proto
//! has it (HTTP+JSON under `/v1`: `content`, `ROLE_USER`, no `kind`); with the feature `protobuf`, `proto` is that proto itself
//! (gRPC). All are read into the one model and written from it.
//! - Requests: [`rpc::decode_call`]; [`rest::decode_send_body`], [`rest::decode_cancel_body`],
//!   [`rest::decode_push_config_body`], [`rest::decode_history_length`].
//! - Replies: `encode_reply` and `encode_update` of either; [`encode_card`] of both.
//! - Refusals: [`encode_rpc_error`], [`encode_http_error`].
//!
//! Read generously, since the samples of the 0.2 specification are not valid by its own schema: `type` in place of or beside
//! `kind`, or neither; `data` in place of a file's `bytes`; `messageId` and `contextId` beside the message; no `messageId` at
//! all; lists as data; snake_case in HTTP bodies; methods by their name in 0.1 (`tasks/send`); a file as 1.0
//! spells it (`raw` or `url`). Never guessed: a part of two kinds, a role or a state in the spelling of 1.0.
//!
//! LOSSES, outwards (the model has it, 0.3 cannot say it):
//! - the file name and media type of a text or data part;
//! - the `tenant` of a push config or an interface; how many pages a list has;
//! - through [`rest`] and `proto` also the tasks a message refers to, and an empty `metadata` beside data that is no object;
//! - through `proto` also the `tenant` of a request and the `metadata` of a cancel; ids with a slash, which the name of
//!   a resource cannot hold, are refused when they are read;
//! - of a card: interfaces of other versions, the device-code flow, `pkceRequired`; in JSON also its signatures, which were made
//!   over another form.
//!
//! Data that is no object is written as `{"value": …}` with `"data_part_compat": true` in the part's metadata, as the SDKs
//! do, and read back; that key is therefore not the author's to use.
//!
//! LOSSES, inwards (0.3 can say it, the model cannot):
//! - `metadata` of a read, a resubscription or a call about push configs; all but the first authentication scheme of a
//!   webhook; a `historyLength` of 0, which means no limit.

#[cfg(feature = "protobuf")]
pub mod proto;
pub mod rest;
pub mod rpc;

pub use super::wire::write_card_0_3 as encode_card;

use crate::error::ProtocolError;
use crate::model::{Rules, Update};

use super::row::USUAL;
use super::wire::{self, V0_3, ends_stream};

/// What both spellings call themselves in a refusal.
const NAME: &str = "A2A 0.3";

/// What is so in both spellings.
const RULES: Rules = Rules { tells_modes: true, ends_stream: is_final, ..USUAL };

/// Whether an update ends the stream of a 0.3 client. The schema has a flag for it, and clients stop reading there: at the
/// end of a task, and where it waits for the next message.
#[must_use]
pub fn is_final(update: &Update) -> bool {
    match update {
        Update::Status(update) => ends_stream(update.status.state),
        Update::Task(_) | Update::Message(_) | Update::Artifact(_) => false,
    }
}

/// Writes a whole JSON-RPC error response. `id` is the request's id as it stood in the request, `null` if it had none.
pub fn encode_rpc_error(error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
    wire::write_rpc_error(error, id, &V0_3, out);
}

/// Writes the body of an HTTP error, which does not name its status, or the data of a stream's error event.
pub fn encode_http_error(error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
    wire::write_http_error(error, http, &V0_3, out);
}

#[cfg(test)]
mod tests;
