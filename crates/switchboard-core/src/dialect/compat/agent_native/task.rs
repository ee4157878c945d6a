//! Tasks, written straight from the model and read into it. In the model an agent answers with artifacts; agent-native
//! clients look for the answer in the status, so it is written there as well.
//!
//! The streams of agent-native: each event is a whole task, or an error if the agent failed. No event is sent before
//! the agent has written something, so a task that is done at once is one event, and no event repeats the one before.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::NAME;
use super::message::{WireMessage, encode_message, encode_parts, read_required_parts};
use crate::call::{Reply, Request};
use crate::dialect::compat::streamed_task::{StreamEvent, StreamedTask, TaskChange};
use crate::dialect::json::{
    Check, DecodeLimits, List, Obj, Object, Text, excerpt, read_body, write_array, write_timestamp,
};
use crate::dialect::outgoing::read_task_reply;
use crate::error::ProtocolError;
use crate::model::{
    Artifact, ArtifactDetails, ArtifactId, ArtifactView, Dialect, FAILED_UNTOLD, Message, Part, PartContent, Role,
    StatusUpdate, Task, TaskId, TaskState, TaskStatus, TaskView, Update,
};

/// Writes the result of a call. Every call is answered with a task.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) | Reply::SentTask(view) => encode_task(view, out),
        Reply::SentMessage(message) => encode_direct_reply(message, out),
        Reply::Deleted => {}
        Reply::Tasks(_) | Reply::Stream(_) | Reply::PushConfig(_) | Reply::PushConfigs(_) | Reply::Card(_) => {
            debug_assert!(false, "no call of agent-native is answered by this");
        }
    }
}

/// Writes an update as a task. One that is not a task itself is told without what came before it, so a stream goes through
/// a [`super::WholeTaskStream`] first.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(message) => encode_direct_reply(message, out),
        Update::Status(StatusUpdate { task_id, context_id, status, .. }) => {
            let mut object = Object::open(out);
            object.str("id", task_id.as_str());
            object.str("contextId", context_id.as_str());
            encode_status(status, status.message.as_deref(), object.key("status"));
            object.close();
        }
        Update::Artifact(_) => debug_assert!(false, "a stream of agent-native goes through a whole_task_stream"),
    }
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    let task = &*view.task;
    let answer = answer(task);
    let mut object = Object::open(out);
    object.str("id", task.id.as_str());
    object.str("contextId", task.context_id.as_str());
    encode_status(&task.status, answer.as_deref(), object.key("status"));
    // The answer closes the conversation, so it is its last message, too.
    let last = answer.as_deref().filter(|_| task.state().is_terminal());
    let history = view.history().iter().map(|message| &**message).chain(last);
    write_array(object.key("history"), history, |out, message| encode_message(message, out));
    let artifacts = task.artifacts.iter().filter(|artifact| !is_told_by_answer(task, artifact));
    let artifacts = artifacts.filter(|_| view.artifacts != ArtifactView::Omitted);
    write_array(object.key("artifacts"), artifacts, |out, artifact| encode_artifact(artifact, out));
    object.json_if_set("metadata", task.metadata.as_ref());
    object.close();
}

/// A direct reply has no task, so it is written as the answer of a completed one.
fn encode_direct_reply(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", message.task_id.as_ref().map_or(message.message_id.as_str(), |id| id.as_str()));
    object.str_if_set("contextId", message.context_id.as_ref().map(|id| id.as_str()));
    let mut status = Object::open(object.key("status"));
    status.str("state", "completed");
    encode_message(message, status.key("message"));
    status.close();
    write_array(object.key("history"), [message], |out, message| encode_message(message, out));
    write_array(object.key("artifacts"), [0u8; 0], |_, _| {});
    object.close();
}

fn encode_status(status: &TaskStatus, answer: Option<&Message>, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("state", state_word(status.state));
    if let Some(message) = answer {
        encode_message(message, object.key("message"));
    }
    write_timestamp(object.key("timestamp"), status.timestamp);
    object.close();
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

fn encode_artifact(artifact: &Artifact, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str_if_set("name", artifact.name());
    object.str_if_set("description", artifact.description());
    encode_parts(&artifact.parts, object.key("parts"));
    object.json_if_set("metadata", artifact.metadata());
    object.close();
}

/// The answer of a task as a message: what its status says, or else what its artifacts say in words.
pub(super) fn answer(task: &Task) -> Option<Arc<Message>> {
    if task.status.message.is_some() || task.state().is_interrupted() {
        return task.status.message.clone();
    }
    let texts: Vec<Part> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).filter_map(text_of).collect();
    if texts.is_empty() {
        return None;
    }
    let mut message = Message::new(Role::Agent, format!("{}-answer", task.id), joined(texts));
    message.context_id = Some(task.context_id.clone());
    message.task_id = Some(task.id.clone());
    Some(Arc::new(message))
}

fn text_of(part: &Part) -> Option<Part> {
    part.as_text().map(Part::text)
}

/// Chunks of a streamed text are one text; readers here would put a line break between parts.
fn joined(texts: Vec<Part>) -> Vec<Part> {
    let whole: String = texts.iter().filter_map(Part::as_text).collect();
    vec![Part::text(whole)]
}

/// Whether an artifact is told in full by the answer made of it.
pub(super) fn is_told_by_answer(task: &Task, artifact: &Artifact) -> bool {
    let all_text = artifact.parts.iter().all(|part| matches!(part.content, PartContent::Text(_)));
    task.status.message.is_none() && artifact.name().is_none() && all_text
}

/// The task with its answer in the status as well, for readers who look there and read `kind` or `type` alike. Only a task
/// that has completed has an answer.
#[must_use]
pub fn with_answer_in_status(view: TaskView) -> TaskView {
    let task = &view.task;
    if !task.state().is_terminal() || task.status.message.is_some() {
        return view;
    }
    let Some(answer) = answer(task) else { return view };
    let mut task = Task::clone(task);
    task.status.message = Some(answer);
    TaskView { task: Arc::new(task), ..view }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireTask<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Obj<WireStatus<'a>>>,
    #[serde(borrow)]
    history: Option<List<Obj<WireMessage<'a>>>>,
    #[serde(borrow)]
    artifacts: Option<List<Obj<WireArtifact<'a>>>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireStatus<'a> {
    #[serde(borrow)]
    state: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Obj<WireMessage<'a>>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireArtifact<'a> {
    #[serde(borrow)]
    artifact_id: Option<Text<'a>>,
    name: Option<String>,
    description: Option<String>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
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
    );
    read_task_reply(request, NAME, has_call, || read_task(text, limits))
}

/// Reads an event of a stream: a whole task or, if it shows neither conversation nor artifacts, its status alone.
///
/// # Errors
/// As [`read_task`].
pub fn read_update(text: &[u8], limits: &DecodeLimits) -> Result<Update, ProtocolError> {
    let wire: WireTask<'_> = read_body(text)?;
    let is_status = wire.history.is_none() && wire.artifacts.is_none() && wire.metadata.is_none();
    let mut check = Check::new(limits);
    let task = wire.read(&mut check)?;
    check.finish(match is_status {
        true => Update::Status(StatusUpdate {
            task_id: task.id,
            context_id: task.context_id,
            status: task.status,
            metadata: None,
        }),
        false => Update::Task(TaskView::whole(task.into())),
    })
}

/// Reads a task.
///
/// # Errors
/// [`ProtocolError::ParseError`] when it is not JSON, else [`ProtocolError::InvalidParams`] naming the field.
pub fn read_task(text: &[u8], limits: &DecodeLimits) -> Result<Task, ProtocolError> {
    let mut check = Check::new(limits);
    let task = read_body::<WireTask<'_>>(text)?.read(&mut check)?;
    check.finish(task)
}

impl WireTask<'_> {
    fn read(self, check: &mut Check<'_>) -> Result<Task, ProtocolError> {
        let id: TaskId = check.required_id(format_args!("id"), self.id);
        let mut status = WireStatus::read(self.status, check)?;
        let sent = check.bounded(format_args!("history"), "messages", usize::MAX, self.history.unwrap_or_default());
        let mut history = Vec::with_capacity(sent.len());
        for (i, Obj(message)) in sent.into_iter().enumerate() {
            history.push(message.read(check, &format!("history[{i}]"))?);
        }
        // The answer that closes a conversation is told in the status, too.
        if status.state.is_terminal() {
            history.pop_if(|last| status.message.as_deref() == Some(last));
        }
        for (i, message) in history.iter_mut().enumerate().filter(|(_, message)| message.message_id.is_empty()) {
            message.message_id = format!("{id}-{}", i + 1).into();
        }
        if let Some(message) = status.message.as_mut().filter(|message| message.message_id.is_empty()) {
            Arc::make_mut(message).message_id = format!("{id}-status").into();
        }
        let sent =
            check.bounded(format_args!("artifacts"), "artifacts", usize::MAX, self.artifacts.unwrap_or_default());
        let mut artifacts = Vec::with_capacity(sent.len());
        for (i, Obj(artifact)) in sent.into_iter().enumerate() {
            artifacts.push(Arc::new(artifact.read(check, i)?));
        }
        Ok(Task {
            id,
            context_id: check.id(format_args!("contextId"), self.context_id).unwrap_or_default(),
            artifacts,
            history: history.into_iter().map(Arc::new).collect(),
            metadata: check.object(format_args!("metadata"), self.metadata),
            created_at: status.timestamp,
            status,
            dialect: Dialect::AgentNative,
        })
    }
}

impl WireStatus<'_> {
    fn read(status: Option<Obj<Self>>, check: &mut Check<'_>) -> Result<TaskStatus, ProtocolError> {
        let Some(Obj(status)) = status else {
            return Err(ProtocolError::invalid("status", "is required"));
        };
        let state = match status.state.as_ref().map(|Text(word)| word.as_ref()) {
            // The original has a state between working and the end that it shows to those who ask in between.
            Some("processing") => Some(TaskState::Working),
            Some(word) => TaskState::from_word(word),
            None => None,
        };
        let state = state.unwrap_or_else(|| {
            let why = match &status.state {
                Some(Text(word)) => format!("{} is not a task state", excerpt(word, 64)),
                None => "is required".to_owned(),
            };
            check.violation(format_args!("status.state"), why);
            TaskState::Submitted
        });
        let message = status.message.map(|Obj(message)| message.read(check, "status.message")).transpose()?;
        let timestamp = check.timestamp(format_args!("status.timestamp"), status.timestamp).unwrap_or_default();
        Ok(TaskStatus { state, message: message.map(Arc::new), timestamp })
    }
}

impl WireArtifact<'_> {
    /// Reads an artifact. One without an id is named after its place.
    fn read(self, check: &mut Check<'_>, place: usize) -> Result<Artifact, ProtocolError> {
        let at = format!("artifacts[{place}]");
        let artifact_id: Option<ArtifactId> = check.id(format_args!("{at}.artifactId"), self.artifact_id);
        let artifact_id = artifact_id.unwrap_or_else(|| format!("artifact-{}", place + 1).into());
        let parts = read_required_parts(check, &at, self.parts)?;
        Ok(Artifact::new(artifact_id, parts).with_details(ArtifactDetails {
            name: self.name,
            description: self.description,
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            extensions: Vec::new(),
        }))
    }
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
            TaskChange::None => StreamEvent::Nothing,
            TaskChange::Task => {
                let is_news = self.streamed_task.task().is_some_and(|task| task.state() != TaskState::Submitted);
                if is_news { self.tell() } else { StreamEvent::Nothing }
            }
            TaskChange::Status => self.tell(),
            // The status that follows a finished artifact sends it as well: in the original one message is one event.
            TaskChange::Artifact { is_whole: true, .. } | TaskChange::Artifact { is_too_much: true, .. } => {
                StreamEvent::Nothing
            }
            TaskChange::Artifact { .. } => {
                // The note was sent already. If it stayed in the status, the next event would show it in place of the
                // growing answer.
                if let Some(task) = self.streamed_task.task_mut().filter(|task| task.state() == TaskState::Working) {
                    task.status.message = None;
                }
                StreamEvent::TaskIfNothingFollows
            }
        }
    }

    /// The task as it stands, once there is one.
    #[must_use]
    pub fn view(&self) -> Option<TaskView> {
        self.streamed_task.view()
    }

    fn tell(&self) -> StreamEvent {
        match self.streamed_task.task() {
            Some(task) if is_failure(task.state()) => StreamEvent::Failed(failed(task)),
            Some(_) => StreamEvent::Task,
            None => StreamEvent::Nothing,
        }
    }
}

/// Whether this dialect answers a task in this state with an error.
#[must_use]
pub fn is_failure(state: TaskState) -> bool {
    matches!(state, TaskState::Failed | TaskState::Rejected)
}

/// The error that a failed task is.
#[must_use]
pub fn failed(task: &Task) -> ProtocolError {
    let reason = answer(task).map(|message| message.text()).filter(|text| !text.is_empty());
    ProtocolError::AgentFailed { reason: reason.unwrap_or(FAILED_UNTOLD.to_owned()) }
}
