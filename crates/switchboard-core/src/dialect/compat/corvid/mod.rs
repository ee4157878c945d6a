//! What corvid-agents speak among themselves: two paths over plain HTTP, a message that is a text, a task with a flat
//! `state`. A send is answered at once, and the caller looks again until the task has ended.
//! - For a server: [`decode_send`] reads the one request that has a body, a task is asked for by its path; replies are written by
//!   [`encode_reply`] and [`encode_task`], cards by [`encode_card`], refusals by [`encode_http_error`].
//! - For a client: [`write_call`], [`read_reply`], [`read_error`], [`read_card`]. A task is followed by asking for it again.
//!
//! LOSSES, outwards (the model has it, corvid cannot say it):
//! - four states: `canceled` and `rejected` are failed, `input-required` and `auth-required` are working;
//! - everything but text: data is told as JSON, a file by its address, bytes not at all; a message of which nothing is left
//!   is left out;
//! - artifacts: what they say is one message of the agent, the last one once the task has completed;
//! - ids, metadata, references and extensions of messages; metadata of the task;
//! - `updatedAt` is when the state last changed; an artifact does not move it;
//! - of a send: everything but its texts, which are joined by line breaks, and `skill`, `depth`, `sourceAgent` and
//!   `switchboard.runTimeoutSeconds` of its metadata: role, ids, context, output modes, the length of the history, and
//!   whether to wait, because no send waits in this dialect; of a read of a task the length of the history;
//! - cancels, lists, streams and webhooks;
//! - of a refusal all but its status and its text;
//! - of a card: interfaces but one, icon, default modes, all of capabilities but `streaming`, security but for bearer tokens,
//!   modes and security of skills, a skill's empty description and empty tags, signatures.
//!
//! LOSSES, inwards: `method`. A message of this dialect is one text, begins a task, and goes on with none. The last message of a
//! task is read as the message of its status if it is the agent's; messages are named after their place. Of a card
//! `supportedProtocols` but for A2A.

mod call;
mod card;
mod error;
mod task;

pub use call::{DEPTH_MAX, Sent, TIMEOUT_MS_DEFAULT, decode_send, write_call};
pub use card::{encode_card, read_card};
pub use error::{NO_AGENT, RATE_EXCEEDED, TOO_DEEP, encode_http_error, encode_text, read_error};
pub use task::{encode_reply, encode_task, encode_update, read_reply, read_task, read_update};

use crate::model::Rules;

use crate::dialect::row::{Forms, Row, USUAL, in_0_3, usual_http_status};
use crate::dialect::wire::{V0_3, write_rpc_error};

/// What it is called in a refusal.
const NAME: &str = "corvid";

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
        for_open_reader: in_0_3,
        call: write_call,
        read_reply,
        read_update,
        read_error,
        read_card,
    },
};

#[cfg(test)]
mod tests;
