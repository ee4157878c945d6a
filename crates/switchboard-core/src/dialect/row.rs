//! What differs between dialects, as one row each: the [`Rules`] that the engine and the server follow, and the
//! [`Forms`] that write and read the wire format. A row stands in the folder of its dialect; `Dialect::row` finds it.
//!
//! The names in error texts ([`Vocabulary`]) differ as well: no client is told to use a method that its dialect does not have.

use super::codes;
use super::json::DecodeLimits;
use super::outgoing::{OutgoingCall, WrittenCall};
use super::wire::ReceivedError;
use crate::call::{Reply, Request};
use crate::error::ProtocolError;
use crate::model::{AgentCard, Dialect, Message, Package, PushBody, Rules, TaskView, Update, Vocabulary};

/// All that is particular to one dialect.
pub struct Row {
    pub rules: Rules,
    pub forms: Forms,
}

/// What is so in most dialects. A row names what is otherwise in its own.
pub(super) const USUAL: Rules = Rules {
    words: WORDS_V0_3,
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

/// How the dialect is written and read. What a server writes is appended to what is there; its calls are read by the
/// bindings, which know where in a request to look. What a client reads may come from any server: it is bounded by the
/// limits, and what cannot be read is refused with [`ProtocolError::ParseError`], or with
/// [`ProtocolError::InvalidParams`] naming the field.
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
    /// How a task that was begun in the dialect is shown to a client whose request could be of several dialects
    /// (`detect::Detected::is_open`): the dialect to write it in, and the view with what clients of this dialect look
    /// for.
    pub for_open_reader: fn(TaskView) -> (Dialect, TaskView),
    /// A call to an agent that speaks the dialect. One that the dialect does not have, or that it cannot say, is
    /// [`ProtocolError::UnsupportedOperation`] or [`ProtocolError::InvalidParams`].
    pub call: fn(&OutgoingCall<'_>) -> Result<WrittenCall, ProtocolError>,
    /// Reads what a request was answered with: the result of JSON-RPC without its envelope, or the body of HTTP. The answer to
    /// a call that is streamed is read as the one to the same call that is not.
    pub read_reply: fn(&Request, &[u8], &DecodeLimits) -> Result<Reply, ProtocolError>,
    /// Reads one update of a stream.
    pub read_update: fn(&[u8], &DecodeLimits) -> Result<Update, ProtocolError>,
    /// Reads the body of a refusal: a whole JSON-RPC response, or the body of HTTP that came with this status. None if it is no
    /// refusal.
    pub read_error: fn(&[u8], Option<u16>) -> Option<ReceivedError>,
    /// Reads an agent card.
    pub read_card: fn(&[u8], &DecodeLimits) -> Result<AgentCard, ProtocolError>,
}

/// What most dialects show to such a reader: 0.3, whose tasks hold what the others look for.
pub(super) fn in_0_3(view: TaskView) -> (Dialect, TaskView) {
    (Dialect::V0_3, view)
}

/// The HTTP status that most dialects have for a refusal.
pub(super) fn usual_http_status(error: &ProtocolError) -> u16 {
    codes::of(error).http
}

/// The names for callers over gRPC.
#[must_use]
pub fn vocabulary_of_package(package: Package) -> &'static Vocabulary {
    match package {
        Package::V1_0 => &WORDS_V1_0,
        Package::V0_3 => &WORDS_V0_3_REST,
    }
}

pub(super) const WORDS_V1_0: Vocabulary = Vocabulary {
    send_message: "SendMessage",
    get_task: "GetTask",
    subscribe: "SubscribeToTask",
    context_id: "message.contextId",
    parts: "message.parts",
    media_type: "mediaType",
    push_config_of_send: "configuration.taskPushNotificationConfig",
    push_config: "",
    idempotency_key: "Idempotency-Key",
    extensions: "A2A-Extensions",
};

/// Also used by the compat dialects. They have no webhooks and cannot resume streams, so no error names those to them.
pub(super) const WORDS_V0_3: Vocabulary = Vocabulary {
    send_message: "message/send",
    get_task: "tasks/get",
    subscribe: "tasks/resubscribe",
    context_id: "message.contextId",
    parts: "message.parts",
    media_type: "file.mimeType",
    push_config_of_send: "configuration.pushNotificationConfig",
    push_config: "pushNotificationConfig.",
    idempotency_key: "Idempotency-Key",
    extensions: "X-A2A-Extensions",
};

/// Over HTTP+JSON and gRPC, operations are called as in the proto that both are made from.
pub(super) const WORDS_V0_3_REST: Vocabulary = Vocabulary {
    send_message: "SendMessage",
    get_task: "GetTask",
    subscribe: "TaskSubscription",
    parts: "message.content",
    push_config_of_send: "configuration.pushNotification",
    push_config: "config.pushNotificationConfig.",
    ..WORDS_V0_3
};
