//! Tasks: six members, no more and no fewer. One definition of each object, written from the model and read into it.

use std::fmt::Arguments;

use serde::{Deserialize, Serialize};

use crate::call::{Reply, Request};
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Text, append, excerpt, read_body};
use crate::dialect::outgoing::read_task_reply;
use crate::error::ProtocolError;
use crate::model::{
    self, Dialect, Role, TaskState, TaskStatus, TaskView, Update, conversation, from_conversation, in_words,
};

use super::NAME;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    state: Option<Text<'a>>,
    #[serde(borrow)]
    messages: Option<List<Obj<Message<'a>>>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    created_at: Option<Text<'a>>,
    #[serde(borrow)]
    updated_at: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<List<Obj<Part<'a>>>>,
}

#[derive(Deserialize, Serialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

/// Writes the result of a call. Every call is answered with a task.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) | Reply::SentTask(view) => encode_task(view, out),
        // A send that is answered at once is never answered with a message.
        Reply::SentMessage(_)
        | Reply::Deleted
        | Reply::Tasks(_)
        | Reply::Stream(_)
        | Reply::PushConfig(_)
        | Reply::PushConfigs(_)
        | Reply::Card(_) => debug_assert!(false, "no call of corvid is answered by this"),
    }
}

/// Writes an update, if it is a task: this dialect has no streams.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(_) | Update::Status(_) | Update::Artifact(_) => {
            debug_assert!(false, "there are no streams in corvid");
        }
    }
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    let task = &*view.task;
    let messages = conversation(view);
    let told = messages.iter().filter(|message| message.parts.iter().any(|part| in_words(part).is_some()));
    let form = Task {
        id: Some(Text::from(task.id.as_str())),
        state: Some(Text::from(state_word(task.state(), task.dialect))),
        messages: Some(told.map(|message| Obj(Message::of(message))).collect()),
        session_id: Some(Text::from(task.context_id.as_str())),
        created_at: Some(Text(task.created_at.to_string().into())),
        updated_at: Some(Text(task.status.timestamp.to_string().into())),
    };
    append(out, &form).expect("every key of a form is a text");
}

/// Reads the reply to a request. Every call is answered with a task.
///
/// # Errors
/// As [`read_task`], or [`ProtocolError::UnsupportedOperation`] for a request that the dialect does not have.
pub fn read_reply(request: &Request, text: &[u8], limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
    let has_call = matches!(request, Request::SendMessage(_) | Request::GetTask { .. });
    read_task_reply(request, NAME, has_call, || read_task(text, limits))
}

/// Reads a task as an update: this dialect has no streams, and clients follow a task by polling it.
///
/// # Errors
/// As [`read_task`].
pub fn read_update(text: &[u8], limits: &DecodeLimits) -> Result<Update, ProtocolError> {
    read_task(text, limits).map(|task| Update::Task(TaskView::whole(task.into())))
}

/// Reads a task.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
pub fn read_task(text: &[u8], limits: &DecodeLimits) -> Result<model::Task, ProtocolError> {
    let mut check = Check::new(limits);
    let task = read_body::<Task<'_>>(text)?.read(&mut check);
    check.finish(task)
}

impl Task<'_> {
    fn read(self, check: &mut Check<'_>) -> model::Task {
        let id: model::TaskId = check.required_id(format_args!("id"), self.id);
        let state = read_state(check, self.state);
        let messages = self.messages.unwrap_or_default();
        let messages = check.bounded(format_args!("messages"), "messages", usize::MAX, messages);
        let read = |(i, Obj(message)): (usize, Obj<Message<'_>>)| {
            let message_id = format!("{id}-{}", i + 1).into();
            model::Message { message_id, ..message.read(check, format_args!("messages[{i}]")) }
        };
        let messages = messages.into_iter().enumerate().map(read).collect();
        let (history, message) = from_conversation(messages, &[], state);
        let timestamp = check.timestamp(format_args!("updatedAt"), self.updated_at).unwrap_or_default();
        model::Task {
            id,
            context_id: check.id(format_args!("sessionId"), self.session_id).unwrap_or_default(),
            status: TaskStatus { state, message, timestamp },
            artifacts: Vec::new(),
            history,
            metadata: None,
            created_at: check.timestamp(format_args!("createdAt"), self.created_at).unwrap_or(timestamp),
            dialect: Dialect::Corvid,
        }
    }
}

/// Corvid has four states. A task that waits for input or authorization counts as working, and a task that was canceled
/// or rejected counts as failed. In the original a task has a session, and so is working, before its caller learns its
/// id; a task begun in this dialect is therefore never shown as submitted.
fn state_word(state: TaskState, begun_in: Dialect) -> &'static str {
    match state {
        TaskState::Submitted if begun_in == Dialect::Corvid => TaskState::Working.word(),
        TaskState::Submitted | TaskState::Working | TaskState::Completed | TaskState::Failed => state.word(),
        TaskState::Canceled | TaskState::Rejected => TaskState::Failed.word(),
        TaskState::InputRequired | TaskState::AuthRequired | TaskState::Unspecified => TaskState::Working.word(),
    }
}

fn read_state(check: &mut Check<'_>, sent: Option<Text<'_>>) -> TaskState {
    let state = sent.as_ref().and_then(|Text(word)| TaskState::from_word(word));
    state.unwrap_or_else(|| {
        let why = match &sent {
            Some(Text(word)) => format!("{} is not a task state", excerpt(word, 64)),
            None => "is required".to_owned(),
        };
        check.violation(format_args!("state"), why);
        TaskState::Submitted
    })
}

impl<'a> Message<'a> {
    fn of(message: &'a model::Message) -> Self {
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        let part = |text: &'a str| Obj(Part { kind: Some(Text::from("text")), text: Some(Text::from(text)) });
        let parts = message.parts.iter().filter_map(in_words).map(part).collect();
        Self { role: Some(Text::from(role)), parts: Some(parts) }
    }

    /// Reads the message that stands at `at`. It has no id.
    fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Message {
        let role = match self.role.as_ref().map(|Text(role)| role.as_ref()) {
            Some("user") => Role::User,
            Some("agent") => Role::Agent,
            Some(other) => {
                check.violation(format_args!("{at}.role"), format!("{} is neither user nor agent", excerpt(other, 64)));
                Role::User
            }
            None => {
                check.violation(format_args!("{at}.role"), "is required: user or agent");
                Role::User
            }
        };
        let Some(parts) = self.parts.filter(|parts| parts.total > 0) else {
            check.violation(format_args!("{at}.parts"), "needs at least one part");
            return model::Message::new(role, "", Vec::new());
        };
        let parts = check.bounded(format_args!("{at}.parts"), "parts", check.limits.parts_max, parts);
        let read = |(i, Obj(part)): (usize, Obj<Part<'_>>)| part.read(check, format_args!("{at}.parts[{i}]"));
        model::Message::new(role, "", parts.into_iter().enumerate().map(read).collect())
    }
}

impl Part<'_> {
    fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Part {
        if let Some(Text(other)) = self.kind.filter(|kind| kind.0 != "text") {
            check.violation(format_args!("{at}.type"), format!("is {}, and only text is known", excerpt(&other, 64)));
        }
        match self.text {
            Some(text) => model::Part::text(text),
            None => {
                check.violation(format_args!("{at}.text"), "is required");
                model::Part::text(String::new())
            }
        }
    }
}
