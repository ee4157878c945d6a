//! Tasks, written straight from the model in the order of the original, and read into it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Reply, Request};
use crate::dialect::json::{Check, DecodeLimits, List, Obj, Object, Text, excerpt, read_body, write_array, write_str};
use crate::dialect::outgoing::read_task_reply;
use crate::error::ProtocolError;
use crate::model::{
    Artifact, ArtifactDetails, ArtifactId, ArtifactView, Dialect, FAILED_UNTOLD, Message, Part, Role, TIMED_OUT, Task,
    TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::NAME;
use super::message::{encode_message, encode_parts, read_message, read_parts, without_dashes};

/// Writes the result of a call. Every call is answered with a task.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) | Reply::SentTask(view) => encode_task(view, out),
        Reply::SentMessage(message) => encode_direct_reply(message, out),
        Reply::Deleted => {}
        Reply::Tasks(_) | Reply::Stream(_) | Reply::PushConfig(_) | Reply::PushConfigs(_) | Reply::Card(_) => {
            debug_assert!(false, "no call of selectools is answered by this");
        }
    }
}

/// There are no streams here; what is said of a task is the task.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(message) => encode_direct_reply(message, out),
        Update::Status(_) | Update::Artifact(_) => debug_assert!(false, "selectools has no streams"),
    }
}

/// Writes a task.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    let task = &*view.task;
    let mut object = Object::open(out);
    object.str("id", task.id.as_str());
    object.str("contextId", task.context_id.as_str());
    object.str("kind", "task");
    encode_status(&task.status, object.key("status"));
    let hidden = task.status.state == TaskState::Failed || view.artifacts == ArtifactView::Omitted;
    if !hidden && task.artifacts.is_empty() && task.status.state == TaskState::Completed {
        // The original answers with what its agent said, even if that is nothing.
        let empty = Artifact::new(format!("{}-response", task.id), vec![Part::text("")]);
        write_array(object.key("artifacts"), [&empty], |out, artifact| encode_artifact(artifact, out));
    } else {
        let artifacts = if hidden { &[] } else { task.artifacts.as_slice() };
        write_array(object.key("artifacts"), artifacts, |out, artifact| encode_artifact(artifact, out));
    }
    write_array(object.key("history"), view.history(), |out, message| encode_message(message, out));
    object.close();
}

/// A direct reply has no task, so it is written as the result of a completed one.
fn encode_direct_reply(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let id = message.task_id.as_ref().map_or(message.message_id.as_str(), |id| id.as_str());
    object.str("id", &without_dashes(id));
    object.str("contextId", message.context_id.as_ref().map_or("", |id| id.as_str()));
    object.str("kind", "task");
    let mut status = Object::open(object.key("status"));
    status.str("state", "completed");
    status.close();
    let parts = message.parts.clone();
    let artifact = Artifact::new(without_dashes(message.message_id.as_str()), parts);
    write_array(object.key("artifacts"), [&artifact], |out, artifact| encode_artifact(artifact, out));
    write_array(object.key("history"), [0u8; 0], |_, _| {});
    object.close();
}

fn encode_status(status: &TaskStatus, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("state", state_word(status.state));
    encode_timestamp(status.timestamp, object.key("timestamp"));
    match status.state {
        TaskState::Failed | TaskState::Rejected => {
            encode_failure(status.message.as_deref(), object.key("message"));
        }
        TaskState::InputRequired | TaskState::AuthRequired => {
            if let Some(message) = &status.message {
                encode_message(message, object.key("message"));
            }
        }
        TaskState::Submitted
        | TaskState::Working
        | TaskState::Completed
        | TaskState::Canceled
        | TaskState::Unspecified => {}
    }
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

/// What failed, and nothing of what was said about it: that may hold what is not the caller's to know.
fn encode_failure(said: Option<&Message>, out: &mut Vec<u8>) {
    let id = said.map_or_else(String::new, |message| without_dashes(message.message_id.as_str()));
    let text = format!("Agent execution failed ({})", failure_name(said));
    let message = Message::new(Role::Agent, id, vec![Part::text(text)]);
    encode_message(&message, out);
}

/// The kind of a failure, from the text that the server wrote about it. Where the original has the name of an
/// exception, there are three kinds: the run took too long, it broke, or the agent itself said that it cannot do it.
#[must_use]
pub fn failure_name(said: Option<&Message>) -> &'static str {
    let text = said.and_then(|message| message.parts.first()).and_then(Part::as_text).unwrap_or(FAILED_UNTOLD);
    if text.starts_with(TIMED_OUT) {
        "TimeoutError"
    } else if text == FAILED_UNTOLD || names_incident(text) {
        "RuntimeError"
    } else {
        "AgentError"
    }
}

/// Whether a failure was not chosen by the agent: then the server writes an incident id in place of the cause.
fn names_incident(text: &str) -> bool {
    text.ends_with(')') && text.contains(" (incident ")
}

fn encode_artifact(artifact: &Artifact, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("artifactId", artifact.artifact_id.as_str());
    object.str("name", "response");
    encode_parts(&artifact.parts, object.key("parts"));
    object.close();
}

/// As Python writes it: microseconds, and an offset in place of a Z.
fn encode_timestamp(at: Timestamp, out: &mut Vec<u8>) {
    let text = at.to_string();
    write_str(out, &format!("{}000+00:00", text.trim_end_matches('Z')));
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
    artifacts: Option<List<Obj<WireArtifact<'a>>>>,
    #[serde(borrow)]
    history: Option<List<&'a RawValue>>,
}

#[derive(Deserialize)]
struct WireStatus<'a> {
    #[serde(borrow)]
    state: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireArtifact<'a> {
    #[serde(borrow)]
    artifact_id: Option<Text<'a>>,
    name: Option<String>,
    #[serde(borrow)]
    parts: Option<&'a RawValue>,
}

/// Reads the reply to a request. Every call is answered with a task.
///
/// # Errors
/// As [`read_task`], or [`ProtocolError::UnsupportedOperation`] for a request that the dialect does not have.
pub fn read_reply(request: &Request, text: &[u8], limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
    let has_call = matches!(request, Request::SendMessage(_) | Request::GetTask { .. } | Request::CancelTask { .. });
    read_task_reply(request, NAME, has_call, || read_task(text, limits))
}

/// Reads a task as an update: this dialect has no streams.
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
pub fn read_task(text: &[u8], limits: &DecodeLimits) -> Result<Task, ProtocolError> {
    let mut check = Check::new(limits);
    let task = read_body::<WireTask<'_>>(text)?.read(&mut check);
    check.finish(task)
}

impl WireTask<'_> {
    fn read(self, check: &mut Check<'_>) -> Task {
        let status = WireStatus::read(self.status, check);
        let sent =
            check.bounded(format_args!("artifacts"), "artifacts", usize::MAX, self.artifacts.unwrap_or_default());
        let artifacts = sent.into_iter().enumerate().map(|(i, Obj(own))| Arc::new(own.read(check, i))).collect();
        let sent = self.history.unwrap_or_default();
        let sent = check.bounded(format_args!("history"), "messages", usize::MAX, sent);
        let history = sent.into_iter().enumerate();
        let history = history.map(|(i, raw)| Arc::new(read_message(check, &format!("history[{i}]"), raw))).collect();
        Task {
            id: check.required_id(format_args!("id"), self.id),
            context_id: check.id(format_args!("contextId"), self.context_id).unwrap_or_default(),
            artifacts,
            history,
            metadata: None,
            created_at: status.timestamp,
            status,
            dialect: Dialect::Selectools,
        }
    }
}

impl WireStatus<'_> {
    fn read(status: Option<Obj<Self>>, check: &mut Check<'_>) -> TaskStatus {
        let Some(Obj(status)) = status else {
            check.violation(format_args!("status"), "is required");
            return TaskStatus { state: TaskState::Submitted, message: None, timestamp: Timestamp::default() };
        };
        let state = status.state.as_ref().and_then(|Text(word)| TaskState::from_word(word));
        let state = state.unwrap_or_else(|| {
            let why = match &status.state {
                Some(Text(word)) => format!("{} is not a task state", excerpt(word, 64)),
                None => "is required".to_owned(),
            };
            check.violation(format_args!("status.state"), why);
            TaskState::Submitted
        });
        TaskStatus {
            state,
            message: status.message.map(|raw| Arc::new(read_message(check, "status.message", raw))),
            timestamp: check.timestamp(format_args!("status.timestamp"), status.timestamp).unwrap_or_default(),
        }
    }
}

impl WireArtifact<'_> {
    /// Reads an artifact. One without an id is named after its place.
    fn read(self, check: &mut Check<'_>, place: usize) -> Artifact {
        let at = format!("artifacts[{place}]");
        let id: Option<ArtifactId> = check.id(format_args!("{at}.artifactId"), self.artifact_id);
        let parts = read_parts(check, &format!("{at}.parts"), self.parts);
        let id = id.unwrap_or_else(|| format!("artifact-{}", place + 1).into());
        Artifact::new(id, parts).with_details(ArtifactDetails { name: self.name, ..ArtifactDetails::default() })
    }
}
