//! What apps of the agent-native framework speak among themselves, which is close to A2A 0.3. Parts name their `type`,
//! nothing has a `kind`, messages have no ids, and clients read the answer in the message of the status.
//! - For a server: requests are read by [`decode_call`], and a send may be `async` and name an `idempotencyKey`; replies are written
//!   by [`encode_reply`] and [`encode_task`], and a stream tells whole tasks ([`WholeTaskStream`]); cards by [`encode_card`], refusals by
//!   [`encode_rpc_error`].
//! - For a client: [`write_call`], [`read_reply`], [`read_update`], [`read_error`], [`read_card`].
//! - [`with_answer_in_status`]: for readers whose request does not tell that it is of this dialect.
//!
//! LOSSES, outwards (the model has it, agent-native cannot say it):
//! - ids, references and extensions of messages; which context and task a message is of;
//! - ids and extensions of artifacts; an unnamed artifact that is all text is the answer and no artifact;
//! - file name and media type of text and data parts;
//! - `rejected` is failed, `auth-required` is input-required;
//! - a direct reply is shown as a completed task; when a task was begun;
//! - webhooks, lists and resubscriptions;
//! - of a send: output modes and the length of the history; of a read the length of the history, of a cancel the metadata;
//! - of a refusal all but its code and its text;
//! - of a card: interfaces, provider, addresses of pages and icons, default modes, all of capabilities but `streaming`,
//!   security but for bearer tokens, modes and security of skills, signatures.
//!
//! LOSSES, inwards: `configuration`, references and extensions of a message. A file that the model would spell otherwise
//! keeps the spelling it came in ([`FILE_KEY`]). The answer that a task shows in its status and again as its last message is read
//! once, from the status; messages and artifacts that have no id are named after their place.

mod call;
mod card;
mod error;
mod file;
mod message;
mod task;

pub use call::{Call, decode_call, write_call};
pub use card::{encode_card, read_card};
pub use error::{encode_http_error, encode_rpc_error, no_streaming, read_error};
pub use file::KEY as FILE_KEY;
pub use message::encode_message;
pub use task::{
    WholeTaskStream, encode_reply, encode_task, encode_update, failed, is_failure, read_reply, read_task, read_update,
    with_answer_in_status,
};

use crate::model::{Dialect, Rules, TaskState, Update, Vocabulary};

use crate::dialect::row::{Forms, Row, USUAL, WORDS_V0_3, usual_http_status};

/// What it is called in a refusal.
const NAME: &str = "agent-native";

/// The member in which parts say what they are.
const TYPE: &str = "type";

/// The JSON-RPC id of every event of a stream. The original does not repeat the request's id.
pub const STREAM_ID: &str = "0";

/// Whether a stream ends with this update: at the end of the task, and where it waits for the user.
#[must_use]
pub fn ends_stream(update: &Update) -> bool {
    match update {
        Update::Task(view) => ends(view.task.state()),
        Update::Status(update) => ends(update.status.state),
        Update::Message(_) => true,
        Update::Artifact(_) => false,
    }
}

fn ends(state: TaskState) -> bool {
    state.is_settled()
}

/// What is particular to agent-native.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules {
        words: Vocabulary { idempotency_key: "idempotencyKey", ..WORDS_V0_3 },
        frees_keys: true,
        answers_before_the_run: true,
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
        for_open_reader: |view| (Dialect::V0_3, with_answer_in_status(view)),
        call: write_call,
        read_reply,
        read_update,
        read_error,
        read_card,
    },
};

#[cfg(test)]
mod tests;
