//! Tasks and messages, written straight from the model.

use crate::call::Reply;
use crate::dialect::json::{Object, write_array, write_timestamp};
use crate::dialect::compat::kinds;
use crate::model::{
    Artifact, ArtifactView, Message, Part, Role, StatusUpdate, TaskState, TaskStatus, TaskView, Update,
};

use super::answer::{answer, is_told_by_answer};
use super::{TYPE, file};

/// Writes the result of a call: a task, whatever was asked.
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
/// a [`super::Narrator`] first.
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
        Update::Artifact(_) => debug_assert!(false, "a stream of agent-native goes through a narrator"),
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

/// Somebody who answers without a task: what they said is the answer of one.
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
        TaskState::Submitted
        | TaskState::Working
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::InputRequired => state.word(),
    }
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    object.str("role", role);
    encode_parts(&message.parts, object.key("parts"));
    object.json_if_set("metadata", message.metadata.as_ref());
    object.close();
}

fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| {
        if !file::encode(part, out) {
            kinds::encode(part, TYPE, out);
        }
    });
}

fn encode_artifact(artifact: &Artifact, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str_if_set("name", artifact.name.as_deref());
    object.str_if_set("description", artifact.description.as_deref());
    encode_parts(&artifact.parts, object.key("parts"));
    object.json_if_set("metadata", artifact.metadata.as_ref());
    object.close();
}
