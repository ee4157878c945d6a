//! What agents of the Python library selectools (1.3) speak, which is close to A2A 0.2. Text comes first, a send waits for its
//! end, and a task that is kept has ended. It is spoken on its own mount and where an agent claims the shared paths for
//! it; elsewhere its requests are 0.3's, and are answered so.
//! - For a server: requests are read by [`Envelope`] and [`decode_call`], in the order and with the texts of the original;
//!   replies are written by [`encode_reply`] and [`encode_task`], cards by [`encode_card`], refusals by [`encode_rpc_error`].
//! - For a client: [`write_call`], [`read_reply`], [`read_error`], [`read_card`].
//! - [`prompt`]: what the agent reads of a message.
//!
//! LOSSES, outwards (the model has it, selectools cannot say it):
//! - the message of a status, but for a question and for what stands in place of a failure's text;
//! - why a task failed: only the kind of failure is told ([`failure_name`]);
//! - `rejected` is failed, `auth-required` is input-required;
//! - metadata and description of tasks and artifacts; every artifact is named `response`, and a completed task without
//!   any shows an empty one;
//! - of a message of another dialect its context, task, references and extensions; file name and media type of text and
//!   data parts;
//! - a direct reply is shown as a completed task, which cannot be read again;
//! - when a task was begun; what a task has written that failed;
//! - of a send: output modes, the length of the history, metadata, and not to wait; of a read the length of the history, of a
//!   cancel the metadata;
//! - streams, lists and webhooks;
//! - of a refusal all but its code and its text;
//! - of a card: interfaces but one, provider, addresses of pages and icons, modes, capabilities, security, names, tags and
//!   examples of skills, signatures.
//!
//! LOSSES, inwards: `taskId` (every message begins a task), `configuration`, references and extensions of a message, and
//! the metadata of a request. A part that is none of the three kinds, or not rightly one, is kept as it stands, and so is
//! all else in a message ([`MESSAGE_KEY`]): the history shows it as it was received. In a reply, unknown members are skipped.

mod as_received;
mod call;
mod card;
mod error;
mod message;
mod python;
mod task;

pub use as_received::KEY as MESSAGE_KEY;
pub use call::{Call, Envelope, decode_call, write_call};
pub use card::{encode_card, read_card};
pub use error::{encode_http_error, encode_rpc_error, read_error};
pub use message::encode_message;
pub use task::{encode_reply, encode_task, encode_update, failure_name, read_reply, read_task, read_update};

use std::borrow::Cow;

use crate::model::{Message, PartContent, Rules};

use crate::dialect::row::{Forms, Row, USUAL, in_0_3, usual_http_status};

/// What it is called in a refusal.
const NAME: &str = "selectools";

/// The media type of a part that is kept as it stands because it is none of the kinds that are understood.
const VERBATIM: &str = "application/vnd.selectools.part+json";

/// The member in which parts say what they are.
const KIND: &str = "kind";

/// What the agent reads: texts and, as JSON in Python's spelling, data, each on a line of its own. Files are not for
/// reading.
#[must_use]
pub fn prompt(message: &Message) -> String {
    let lines: Vec<Cow<'_, str>> = message
        .parts
        .iter()
        .filter_map(|part| match &part.content {
            PartContent::Text(text) => Some(Cow::Borrowed(text.as_str())),
            PartContent::Data(data) if part.media_type() != Some(VERBATIM) => {
                Some(Cow::Owned(python::dumps(data.as_str())))
            }
            PartContent::Data(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        })
        .collect();
    lines.join("\n")
}

/// What is particular to selectools.
pub(in crate::dialect) static ROW: Row = Row {
    rules: Rules { drops_dashes: true, prompt, refuses_wrong_answers: false, ..USUAL },
    forms: Forms {
        reply: encode_reply,
        update: encode_update,
        pushed_task: encode_task,
        rpc_error: encode_rpc_error,
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
