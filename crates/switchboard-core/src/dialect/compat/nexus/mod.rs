//! What the NEXUS gateway speaks with its agents: JSON-RPC with parts of `{type, data}`, a status that is a word, and the
//! conversation in `messages`. A client may choose the id of its task.
//! - Requests: [`decode_call`]. Replies: [`encode_reply`], [`encode_task`]; cards: [`encode_card`]; refusals:
//!   [`encode_rpc_error`], with the four codes of JSON-RPC and few others.
//!
//! LOSSES, outwards (the model has it, NEXUS cannot say it):
//! - `rejected` is failed, `auth-required` is input-required; the time of a status;
//! - the context; metadata of the task; ids, metadata, references and extensions of messages;
//! - ids, metadata and extensions of artifacts; what they say in words is also the last message of a completed task;
//! - metadata of parts, and file name and media type of text and data;
//! - a direct reply is shown as a completed task, which cannot be read again;
//! - lists and webhooks; a stream tells whole tasks ([`Narrator`]), not what has changed.
//!
//! LOSSES, inwards: everything in params but `id` and `message`, and in a message but `role` and `parts`. A part whose
//! `type` the house has no word for is data, and keeps its type in its metadata ([`TYPE_KEY`]).

mod card;
mod decode;
mod encode;
mod error;
mod narrator;
mod part;

pub use card::encode_card;
pub use decode::{Call, decode_call};
pub use encode::{encode_message, encode_reply, encode_task, encode_update};
pub use error::{encode_http_error, encode_rpc_error};
pub use narrator::{Narrator, ends_stream};
pub use part::TYPE_KEY;

use crate::model::{Rules, Vocabulary};

use crate::dialect::row::{Forms, Row, USUAL, usual_http_status};
use crate::dialect::vocabulary;

/// What is particular to NEXUS.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules {
        // The id that a client chooses for a task is what its repeats are known by.
        words: Vocabulary { idempotency_key: "id", ..vocabulary::V0_3 },
        ends_stream,
        ..USUAL
    },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        rpc_error: encode_rpc_error,
        http_error: |error, _, out| encode_http_error(error, out),
        http_status: usual_http_status,
    },
};

#[cfg(test)]
mod tests;
