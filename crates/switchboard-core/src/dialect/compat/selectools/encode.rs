//! Tasks and messages, written straight from the model in the order of the original.

use crate::call::Reply;
use crate::dialect::json::{Object, write_array, write_json, write_str};
use crate::dialect::compat::kinds;
use crate::model::{
    Artifact, ArtifactView, FAILED_UNTOLD, Json, Message, Part, PartContent, Role, TIMED_OUT, TaskState, TaskStatus,
    TaskView, Timestamp, Update,
};

use super::{KIND, VERBATIM, as_received};

/// Writes the result of a call: a task, whatever was asked.
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

/// Somebody who answers without a task: what they said is the result of one.
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
        TaskState::Submitted | TaskState::Working | TaskState::Completed | TaskState::Canceled => {}
    }
    object.close();
}

/// Six states are known here.
fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Rejected => TaskState::Failed.word(),
        TaskState::AuthRequired => TaskState::InputRequired.word(),
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

/// The kind of a failure, from what the house wrote about it. Where the original has the name of an exception, there are
/// three: the run took too long, it broke, or the agent itself said that it cannot do it.
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

/// Writes a message; one of this dialect as it was received.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let (difference, metadata) = message.metadata.as_ref().map(as_received::split).unwrap_or_default();
    let mut object = Object::open(out);
    if difference.keeps("role") {
        object.str("role", if message.role == Role::User { "user" } else { "agent" });
    }
    if difference.keeps("parts") {
        encode_parts(&message.parts, object.key("parts"));
    }
    if difference.keeps("messageId") {
        match message.role {
            Role::User => object.str("messageId", message.message_id.as_str()),
            // Ids of the agent's messages are ours, and ours have no dashes here.
            Role::Agent => object.str("messageId", &without_dashes(message.message_id.as_str())),
        }
    }
    if difference.keeps("kind") {
        object.str("kind", "message");
    }
    if difference.keeps("metadata") {
        object.json_if_set("metadata", metadata.as_ref());
    }
    for (name, value) in &difference.more {
        write_json(object.named(name), &Json::from_trusted(value.get()));
    }
    object.close();
}

fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| match (&part.content, part.media_type.as_deref()) {
        (PartContent::Data(whole), Some(VERBATIM)) => write_json(out, whole),
        _ => kinds::encode(part, KIND, out),
    });
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

fn without_dashes(id: &str) -> String {
    let is_uuid = id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if is_uuid { id.replace('-', "") } else { id.to_owned() }
}
