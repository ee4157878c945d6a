//! What differs between dialects, as one row each: the [`Rules`] that whoever answers a call must know, and the [`Forms`]
//! that things are written in. A row stands in the folder of its dialect; the one place that knows all of them is
//! [`Dialect::row`].

use crate::call::Reply;
use crate::error::ProtocolError;
use crate::model::{Dialect, Message, PushBody, Rules, TaskView, Update};

use super::{agent_native, codes, corvid, nexus, selectools, v0_3, v1_0, vocabulary};

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

impl Dialect {
    /// All that is particular to this dialect.
    #[must_use]
    pub fn row(self) -> &'static Row {
        match self {
            Self::V1_0 => &v1_0::ROW,
            Self::V0_3 => &v0_3::rpc::ROW,
            Self::V0_3Rest => &v0_3::rest::ROW,
            Self::AgentNative => &agent_native::ROW,
            Self::Selectools => &selectools::ROW,
            Self::Corvid => &corvid::ROW,
            Self::Nexus => &nexus::ROW,
        }
    }

    /// What is done otherwise for its clients.
    #[must_use]
    pub fn rules(self) -> &'static Rules {
        &self.row().rules
    }

    /// Writes the result of a call.
    pub fn write_reply(self, reply: &Reply, out: &mut Vec<u8>) {
        (self.row().forms.reply)(reply, out);
    }

    /// Writes one update of a stream.
    pub fn write_update(self, update: &Update, out: &mut Vec<u8>) {
        (self.row().forms.update)(update, out);
    }

    /// Writes a task for a webhook that is sent whole ones.
    pub fn write_pushed_task(self, view: &TaskView, out: &mut Vec<u8>) {
        (self.row().forms.pushed_task)(view, out);
    }

    /// Writes a JSON-RPC error response.
    pub fn write_rpc_error(self, error: &ProtocolError, id: &str, out: &mut Vec<u8>) {
        (self.row().forms.rpc_error)(error, id, out);
    }

    /// The HTTP status of a refusal.
    #[must_use]
    pub fn http_status(self, error: &ProtocolError) -> u16 {
        (self.row().forms.http_status)(error)
    }

    /// Writes the body of an HTTP error that is answered with the given status.
    pub fn write_http_error(self, error: &ProtocolError, http: u16, out: &mut Vec<u8>) {
        (self.row().forms.http_error)(error, http, out);
    }
}
