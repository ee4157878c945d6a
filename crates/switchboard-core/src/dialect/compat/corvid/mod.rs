//! What corvid-agents speak among themselves: two paths over plain HTTP, a message that is a text, a task with a flat
//! `state`. A send is answered at once, and the caller looks again until the task has ended.
//! - Requests: [`decode_send`]; there is nothing else to decode, a task is asked for by its path.
//! - Replies: [`encode_reply`], [`encode_task`]; cards: [`encode_card`]; refusals: [`encode_http_error`].
//!
//! LOSSES, outwards (the model has it, corvid cannot say it):
//! - four states: `canceled` and `rejected` are failed, `input-required` and `auth-required` are working;
//! - everything but text: data is told as JSON, a file by its address, bytes not at all; a message of which nothing is left
//!   is left out;
//! - artifacts: what they say is one message of the agent, the last one once the task has completed;
//! - ids, metadata, references and extensions of messages; metadata of the task;
//! - `updatedAt` is when the state last changed; an artifact does not move it.
//!
//! LOSSES, inwards: `method`. A message of this dialect is one text, begins a task, and goes on with none.

mod card;
mod decode;
mod encode;
mod error;

pub use card::encode_card;
pub use decode::{DEPTH_MAX, Sent, TIMEOUT_MS_DEFAULT, decode_send};
pub use encode::{encode_reply, encode_task, encode_update};
pub use error::{NO_AGENT, RATE_EXCEEDED, TOO_DEEP, encode_http_error, encode_text};

use crate::model::Rules;

use crate::dialect::row::{Forms, Row, USUAL, usual_http_status};
use crate::dialect::wire::{V0_3, write_rpc_error};

/// What is particular to corvid.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules {
        asks_for_at_most: true,
        answers_before_the_run: true,
        limits_pauses: true,
        keeps_notes: true,
        ..USUAL
    },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        // It does not travel over JSON-RPC.
        rpc_error: |error, id, out| write_rpc_error(error, id, &V0_3, out),
        http_error: |error, _, out| encode_http_error(error, out),
        http_status: usual_http_status,
    },
};

#[cfg(test)]
mod tests;
