//! What the NEXUS gateway speaks with its agents: JSON-RPC with parts of `{type, data}`, a status that is a word, and the
//! conversation in `messages`. A client may choose the id of its task.
//! - For a server: requests are read by [`decode_call`]; replies are written by [`encode_reply`] and [`encode_task`], cards by
//!   [`encode_card`], refusals by [`encode_rpc_error`], with the four codes of JSON-RPC and few others.
//! - For a client: [`write_call`], [`read_reply`], [`read_update`], [`read_error`], [`read_card`].
//!
//! LOSSES, outwards (the model has it, NEXUS cannot say it):
//! - `rejected` is failed, `auth-required` is input-required; the time of a status, and when a task was begun;
//! - the context; metadata of the task; ids, metadata, references and extensions of messages;
//! - ids, metadata and extensions of artifacts; what they say in words is also the last message of a completed task;
//! - metadata of parts, and file name and media type of text and data;
//! - a direct reply is shown as a completed task, which cannot be read again;
//! - lists and webhooks; a stream tells whole tasks ([`WholeTaskStream`]), not what has changed;
//! - of a send: output modes, the length of the history, whether to wait, metadata; of a read the length of the history, of a
//!   cancel the metadata;
//! - of a refusal all but its code and its text;
//! - of a card: interfaces, provider, addresses of pages and icons, default modes, all of capabilities but `streaming`,
//!   security but for bearer tokens, modes and security of skills, signatures.
//!
//! LOSSES, inwards: everything in params but `id` and `message`, and in a message but `role` and `parts`. A part whose
//! `type` the model does not have is data, and keeps its type in its metadata ([`TYPE_KEY`]). What the last message of
//! a task says is read as the message of its status if it is the agent's, and is left out if it repeats the artifacts.
//! Messages and artifacts are named after their place.

mod call;
mod card;
mod error;
mod part;
mod task;

pub use call::{Call, decode_call, write_call};
pub use card::{encode_card, read_card};
pub use error::{encode_http_error, encode_rpc_error, read_error};
pub use part::TYPE_KEY;
pub use task::{
    WholeTaskStream, encode_message, encode_reply, encode_task, encode_update, ends_stream, read_reply, read_task,
    read_update,
};

use crate::model::{Dialect, Rules, Vocabulary};

use crate::dialect::row::{Forms, Row, USUAL, WORDS_V0_3, usual_http_status};

/// What it is called in a refusal.
const NAME: &str = "NEXUS";

/// What is particular to NEXUS.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules {
        // The id that a client chooses for a task is what its repeats are known by.
        words: Vocabulary { idempotency_key: "id", ..WORDS_V0_3 },
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
        for_open_reader: |view| (Dialect::Nexus, view),
        call: write_call,
        read_reply,
        read_update,
        read_error,
        read_card,
    },
};

#[cfg(test)]
mod tests;
