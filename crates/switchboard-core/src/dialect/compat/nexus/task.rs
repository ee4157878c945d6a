//! Tasks, messages and artifacts: one definition of each, written from the model and read into it.
//!
//! The streams of NEXUS: the whole task, first as it was accepted and then after each change, until it waits for the
//! user or ends.

use std::fmt::Arguments;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::NAME;
use super::part::Part;
use crate::call::{Reply, Request};
use crate::dialect::compat::streamed_task::{StreamEvent, StreamedTask, TaskChange};
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Text, append, excerpt, read_body};
use crate::dialect::outgoing::read_task_reply;
use crate::error::ProtocolError;
use crate::model::{
    self, ArtifactDetails, ArtifactView, Dialect, Role, TaskState, TaskStatus, TaskView, Timestamp, Update,
    conversation, from_conversation,
};

#[derive(Deserialize, Serialize)]
struct Task<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    messages: Option<List<Obj<Message<'a>>>>,
    #[serde(borrow)]
    artifacts: Option<List<Obj<Artifact<'a>>>>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<List<Obj<Part<'a>>>>,
}

#[derive(Deserialize, Serialize)]
struct Artifact<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<List<Obj<Part<'a>>>>,
}

/// Writes the result of a call. Every call is answered with a task.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) | Reply::SentTask(view) => encode_task(view, out),
        Reply::SentMessage(message) => encode_direct_reply(message, out),
        Reply::Deleted
        | Reply::Tasks(_)
        | Reply::Stream(_)
        | Reply::PushConfig(_)
        | Reply::PushConfigs(_)
        | Reply::Card(_) => debug_assert!(false, "no call of NEXUS is answered by this"),
    }
}

/// Writes an update, which a [`super::WholeTaskStream`] has made a task of.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(message) => encode_direct_reply(message, out),
        Update::Status(_) | Update::Artifact(_) => {
            debug_assert!(false, "a stream of NEXUS goes through a whole-task stream");
        }
    }
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    let task = &*view.task;
    let messages = conversation(view);
    let artifacts = task.artifacts.iter().filter(|_| view.artifacts != ArtifactView::Omitted);
    let form = Task {
        id: Some(Text::from(task.id.as_str())),
        status: Some(Text::from(state_word(task.state()))),
        messages: Some(messages.iter().map(|message| Obj(Message::of(message))).collect()),
        artifacts: Some(artifacts.map(|artifact| Obj(Artifact::of(artifact))).collect()),
    };
    put(out, &form);
}

/// A direct reply has no task, so it is written as a completed one that holds nothing else.
fn encode_direct_reply(message: &model::Message, out: &mut Vec<u8>) {
    let id = message.task_id.as_ref().map_or(message.message_id.as_str(), |id| id.as_str());
    let form = Task {
        id: Some(Text::from(id)),
        status: Some(Text::from(TaskState::Completed.word())),
        messages: Some([Obj(Message::of(message))].into_iter().collect()),
        artifacts: Some(List::default()),
    };
    put(out, &form);
}

/// Writes a message.
pub fn encode_message(message: &model::Message, out: &mut Vec<u8>) {
    put(out, &Message::of(message));
}

pub(super) fn put<T: Serialize>(out: &mut Vec<u8>, form: &T) {
    append(out, form).expect("every key of a form is a text");
}

/// Reads the reply to a request. Every call is answered with a task.
///
/// # Errors
/// As [`read_task`], or [`ProtocolError::UnsupportedOperation`] for a request that the dialect does not have.
pub fn read_reply(request: &Request, text: &[u8], limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
    let has_call = matches!(
        request,
        Request::SendMessage(_)
            | Request::SendStreamingMessage(_)
            | Request::GetTask { .. }
            | Request::CancelTask { .. }
            | Request::SubscribeToTask { .. }
    );
    read_task_reply(request, NAME, has_call, || read_task(text, limits))
}

/// Reads an update of a stream, which is a whole task.
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
        let state = read_state(check, self.status);
        let artifacts = self.artifacts.unwrap_or_default();
        let artifacts = check.bounded(format_args!("artifacts"), "artifacts", usize::MAX, artifacts);
        let artifacts = artifacts.into_iter().enumerate();
        let artifacts: Vec<Arc<_>> = artifacts.map(|(i, Obj(own))| Arc::new(own.read(check, i))).collect();
        let messages = self.messages.unwrap_or_default();
        let messages = check.bounded(format_args!("messages"), "messages", usize::MAX, messages);
        let read = |(i, Obj(message)): (usize, Obj<Message<'_>>)| {
            let message_id = format!("{id}-{}", i + 1).into();
            model::Message { message_id, ..message.read(check, format_args!("messages[{i}]")) }
        };
        let messages = messages.into_iter().enumerate().map(read).collect();
        let (history, message) = from_conversation(messages, &artifacts, state);
        model::Task {
            id,
            context_id: model::ContextId::default(),
            status: TaskStatus { state, message, timestamp: Timestamp::default() },
            artifacts,
            history,
            metadata: None,
            created_at: Timestamp::default(),
            dialect: Dialect::Nexus,
        }
    }
}

/// Six states are known here.
fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Rejected => TaskState::Failed.word(),
        TaskState::AuthRequired => TaskState::InputRequired.word(),
        TaskState::Unspecified => TaskState::Working.word(),
        TaskState::Submitted
        | TaskState::Working
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::InputRequired => state.word(),
    }
}

fn read_state(check: &mut Check<'_>, sent: Option<Text<'_>>) -> TaskState {
    let state = match sent.as_ref().map(|Text(word)| word.as_ref()) {
        // As the gateway's own records spell it.
        Some("cancelled") => Some(TaskState::Canceled),
        Some(word) => TaskState::from_word(word),
        None => None,
    };
    state.unwrap_or_else(|| {
        let why = match &sent {
            Some(Text(word)) => format!("{} is not a task state", excerpt(word, 64)),
            None => "is required".to_owned(),
        };
        check.violation(format_args!("status"), why);
        TaskState::Submitted
    })
}

impl<'a> Message<'a> {
    pub(super) fn of(message: &'a model::Message) -> Self {
        let role = match message.role {
            Role::User => "user",
            Role::Agent => "agent",
        };
        Self { role: Some(Text::from(role)), parts: Some(parts_of(&message.parts)) }
    }

    /// Reads the message that stands at `at`. It has no id.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> model::Message {
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
        model::Message::new(role, "", read_parts(check, format_args!("{at}.parts"), self.parts))
    }
}

impl<'a> Artifact<'a> {
    fn of(artifact: &'a model::Artifact) -> Self {
        Self {
            name: artifact.name().map(Text::from),
            description: artifact.description().map(Text::from),
            parts: Some(parts_of(&artifact.parts)),
        }
    }

    /// Reads an artifact, which is named after its place.
    fn read(self, check: &mut Check<'_>, place: usize) -> model::Artifact {
        let parts = read_parts(check, format_args!("artifacts[{place}].parts"), self.parts);
        model::Artifact::new(format!("artifact-{}", place + 1), parts).with_details(ArtifactDetails {
            name: self.name.map(String::from),
            description: self.description.map(String::from),
            ..ArtifactDetails::default()
        })
    }
}

fn parts_of(parts: &[model::Part]) -> List<Obj<Part<'_>>> {
    parts.iter().map(|part| Obj(Part::of(part))).collect()
}

fn read_parts(check: &mut Check<'_>, at: Arguments<'_>, parts: Option<List<Obj<Part<'_>>>>) -> Vec<model::Part> {
    let Some(parts) = parts.filter(|parts| parts.total > 0) else {
        check.violation(at, "needs at least one part");
        return Vec::new();
    };
    let parts = check.bounded(at, "parts", check.limits.parts_max, parts);
    let read = |(i, Obj(part)): (usize, Obj<Part<'_>>)| part.read(check, format_args!("{at}[{i}]"));
    parts.into_iter().enumerate().map(read).collect()
}

/// Keeps the task that a stream is about, as far as it has come.
#[derive(Default)]
pub struct WholeTaskStream {
    streamed_task: StreamedTask,
}

impl WholeTaskStream {
    /// Applies an update and returns what to send for it.
    pub fn take(&mut self, update: &Update) -> StreamEvent {
        match self.streamed_task.take(update) {
            TaskChange::None | TaskChange::Artifact { is_too_much: true, .. } => StreamEvent::Nothing,
            TaskChange::Task | TaskChange::Status => StreamEvent::Task,
            TaskChange::Artifact { .. } => StreamEvent::TaskIfNothingFollows,
        }
    }

    /// The task as it stands, once there is one.
    #[must_use]
    pub fn view(&self) -> Option<TaskView> {
        self.streamed_task.view()
    }
}

/// Whether a stream ends with this update: at the end of the task, and where it waits for the user.
#[must_use]
pub fn ends_stream(update: &Update) -> bool {
    match update {
        Update::Task(view) => view.task.state().is_settled(),
        Update::Status(update) => update.status.state.is_settled(),
        Update::Message(_) => true,
        Update::Artifact(_) => false,
    }
}
