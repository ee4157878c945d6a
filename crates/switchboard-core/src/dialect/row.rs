//! What differs between dialects, as one row each: the [`Rules`] that whoever answers a call must know, and the [`Forms`]
//! that things are written in. A row stands in the folder of its dialect; `Dialect::row` finds it.

use crate::call::Reply;
use crate::error::ProtocolError;
use crate::model::{Message, PushBody, Rules, TaskView, Update};

use super::{codes, vocabulary};

/// All that is particular to one dialect.
pub struct Row {
    pub rules: Rules,
    pub forms: Forms,
}

/// What is so in most dialects. A row names what is otherwise in its own.
pub(super) const USUAL: Rules = Rules {
    words: vocabulary::V0_3,
    drops_dashes: false,
    prompt: Message::text,
    frees_keys: false,
    tells_modes: false,
    asks_for_at_most: false,
    answers_before_the_run: false,
    cancels_again: false,
    limits_pauses: false,
    refuses_wrong_answers: true,
    keeps_notes: false,
    push_body: PushBody::Task,
    push_media_type: "application/json",
    ends_stream: |_| false,
};

/// How the dialect is written. All of them append to what is there.
pub struct Forms {
    /// The result of a call. A deletion and a stream have none.
    pub reply: fn(&Reply, &mut Vec<u8>),
    /// One update of a stream.
    pub update: fn(&Update, &mut Vec<u8>),
    /// A task for a webhook that is sent whole ones.
    pub pushed_task: fn(&TaskView, &mut Vec<u8>),
    /// A JSON-RPC error response to the request with this id, which is written as it stands. A form that does not travel over
    /// JSON-RPC is spelled as its version is there.
    pub rpc_error: fn(&ProtocolError, &str, &mut Vec<u8>),
    /// The body of an HTTP error that is answered with this status.
    pub http_error: fn(&ProtocolError, u16, &mut Vec<u8>),
    /// The HTTP status of a refusal.
    pub http_status: fn(&ProtocolError) -> u16,
}

/// The HTTP status that most dialects have for a refusal.
pub(super) fn usual_http_status(error: &ProtocolError) -> u16 {
    codes::of(error).http
}
