//! How the engine and the server behave differently for the clients of each dialect. The values are in `dialect/`, each
//! in the folder of its dialect.

use std::sync::Arc;

use super::message::Message;
use super::update::Update;

/// What is done otherwise for clients of a dialect. Each field says what is so if it is true.
#[derive(Debug)]
pub struct Rules {
    /// What things are called in a refusal.
    pub words: Vocabulary,
    /// An id that is made here is a UUID without its dashes.
    pub drops_dashes: bool,
    /// The text that an agent reads in a message.
    pub prompt: fn(&Message) -> String,
    /// A client's key for a send (`Idempotency-Key`) is free again once its task has failed or was canceled.
    pub frees_keys: bool,
    /// Clients are told which media types an agent reads and writes. A client that is not told is not refused for its
    /// media types.
    pub tells_modes: bool,
    /// A client that asks for its own limit of time means "no longer than this" rather than "this long", so an agent that
    /// gives less is no reason to refuse.
    pub asks_for_at_most: bool,
    /// A client that does not want to wait is told that its task is working: the answer comes before the run, even from
    /// an agent that could have answered at once. In other dialects such a client may get the finished task.
    pub answers_before_the_run: bool,
    /// The cancel of a task that was canceled before is answered with the task (1.0, section 3.3.1). Elsewhere it is refused
    /// because the task is over.
    pub cancels_again: bool,
    /// A task may take no longer than its time, a pause for an answer included: its clients have no way to answer.
    pub limits_pauses: bool,
    /// A caller that waits is told by an error that the agent answered wrongly (-32006). In other dialects, what an
    /// agent does wrongly is a failed task.
    pub refuses_wrong_answers: bool,
    /// Each note of an agent at work is a message of the conversation, and each of its writes moves the time of the status.
    /// Readers of such a dialect see how a task goes on by nothing else.
    pub keeps_notes: bool,
    /// What is posted to a webhook that was registered in this dialect.
    pub push_body: PushBody,
    /// The media type of what is posted.
    pub push_media_type: &'static str,
    /// Whether a stream ends with this update.
    pub ends_stream: fn(&Update) -> bool,
}

/// What is posted to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushBody {
    /// Each update.
    Update,
    /// The task as it stands.
    Task,
}

impl Rules {
    /// An id that is made here, in the form that the dialect has for its ids. `uuid` is one in its usual form.
    #[must_use]
    pub fn own_id(&self, uuid: Arc<str>) -> Arc<str> {
        if self.drops_dashes { uuid.replace('-', "").into() } else { uuid }
    }
}

/// Names of operations, fields and headers in one dialect.
#[derive(Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// What sends a message.
    pub send_message: &'static str,
    /// What asks for a task.
    pub get_task: &'static str,
    /// What follows a task that is there already.
    pub subscribe: &'static str,
    /// The context a message names.
    pub context_id: &'static str,
    /// The parts of a message.
    pub parts: &'static str,
    /// The media type in one of the parts.
    pub media_type: &'static str,
    /// The webhook that is registered with a send.
    pub push_config_of_send: &'static str,
    /// In front of the members of a webhook that is registered by itself.
    pub push_config: &'static str,
    /// Where a client says by which name a send is to be known again.
    pub idempotency_key: &'static str,
    /// Where a client says which extensions it knows.
    pub extensions: &'static str,
}
