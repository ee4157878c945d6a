//! What agents of the Python library selectools (1.3) speak, which is close to A2A 0.2. Text comes first, a send waits for its
//! end, and a task that is kept has ended. It is spoken on its own mount and where an agent claims the shared paths for
//! it; elsewhere its requests are 0.3's, and are answered so.
//! - Requests: [`Envelope`], [`decode_call`], in the order and with the texts of the original.
//! - Replies: [`encode_reply`], [`encode_task`]; cards: [`encode_card`]; refusals: [`encode_rpc_error`].
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
//! - a direct reply is shown as a completed task, which cannot be read again.
//!
//! LOSSES, inwards: `taskId` (every message begins a task), `configuration`, references and extensions of a message, and
//! the metadata of a request. A part that is none of the three kinds, or not rightly one, is kept as it stands, and so is
//! all else in a message ([`MESSAGE_KEY`]): the history shows it as it was received.

mod as_received;
mod card;
mod decode;
mod encode;
mod error;
mod python;

pub use as_received::KEY as MESSAGE_KEY;
pub use card::encode_card;
pub use decode::{Call, Envelope, decode_call};
pub use encode::{encode_message, encode_reply, encode_task, encode_update, failure_name};
pub use error::{encode_http_error, encode_rpc_error};

use std::borrow::Cow;

use crate::model::{Message, PartContent, Rules};

use crate::dialect::row::{Forms, Row, USUAL, usual_http_status};

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
            PartContent::Data(data) if part.media_type.as_deref() != Some(VERBATIM) => {
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
    },
};

#[cfg(test)]
mod tests;
