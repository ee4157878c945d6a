//! What apps of the agent-native framework speak among themselves, which is close to A2A 0.3. Parts name their `type`, nothing
//! has a `kind`, messages have no ids, and whoever asks reads the answer in the message of the status.
//! - Requests: [`decode_call`]; a send may be `async` and name an `idempotencyKey`.
//! - Replies: [`encode_reply`], [`encode_task`]; a stream tells whole tasks ([`Narrator`]); cards: [`encode_card`];
//!   refusals: [`encode_rpc_error`].
//! - [`with_answer_in_status`]: for readers whose request does not tell that it is of this dialect.
//!
//! LOSSES, outwards (the model has it, agent-native cannot say it):
//! - ids, references and extensions of messages; which context and task a message is of;
//! - ids and extensions of artifacts; an unnamed artifact that is all text is the answer and no artifact;
//! - file name and media type of text and data parts;
//! - `rejected` is failed, `auth-required` is input-required;
//! - webhooks, lists and resubscriptions.
//!
//! LOSSES, inwards: `configuration`, references and extensions of a message. A file that the model would spell otherwise
//! keeps the spelling it came in ([`FILE_KEY`]).

mod answer;
mod card;
mod decode;
mod encode;
mod error;
mod file;
mod narrator;

pub use answer::with_answer_in_status;
pub use card::encode_card;
pub use decode::{Call, decode_call};
pub use encode::{encode_message, encode_reply, encode_task, encode_update};
pub use error::{encode_http_error, encode_rpc_error, no_streaming};
pub use file::KEY as FILE_KEY;
pub use narrator::{Narrator, failed, is_failure};

use crate::model::{Rules, TaskState, Update, Vocabulary};

use crate::dialect::row::{Forms, Row, USUAL, usual_http_status};
use crate::dialect::vocabulary;

/// The member in which parts say what they are.
const TYPE: &str = "type";

/// The RPC id of every event of a stream, whatever the request's was.
pub const STREAM_ID: &str = "0";

/// Whether a stream ends with this update: at the end of the task, and where it waits for somebody.
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
        words: Vocabulary { idempotency_key: "idempotencyKey", ..vocabulary::V0_3 },
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
    },
};

#[cfg(test)]
mod tests;
