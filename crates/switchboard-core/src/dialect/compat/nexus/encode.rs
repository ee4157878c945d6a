//! Tasks, messages and artifacts, written straight from the model.

use crate::call::Reply;
use crate::dialect::json::{Object, write_array};
use crate::model::{Artifact, ArtifactView, Message, Part, Role, TaskState, TaskView, Update, conversation};

use super::part;

/// Writes the result of a call: a task, whatever was asked.
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

/// Writes an update, which a [`super::Narrator`] has made a task of.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(message) => encode_direct_reply(message, out),
        Update::Status(_) | Update::Artifact(_) => debug_assert!(false, "a stream of NEXUS goes through a narrator"),
    }
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    let task = &*view.task;
    let mut object = Object::open(out);
    object.str("id", task.id.as_str());
    object.str("status", state_word(task.state()));
    write_array(object.key("messages"), conversation(view), |out, message| encode_message(&message, out));
    let artifacts = task.artifacts.iter().filter(|_| view.artifacts != ArtifactView::Omitted);
    write_array(object.key("artifacts"), artifacts, |out, artifact| encode_artifact(artifact, out));
    object.close();
}

/// Somebody who answers without a task: what they said is all there is of one.
fn encode_direct_reply(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("id", message.task_id.as_ref().map_or(message.message_id.as_str(), |id| id.as_str()));
    object.str("status", TaskState::Completed.word());
    write_array(object.key("messages"), [message], |out, message| encode_message(message, out));
    write_array(object.key("artifacts"), [0u8; 0], |_, _| {});
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
    object.close();
}

fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| part::encode(part, out));
}

fn encode_artifact(artifact: &Artifact, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str_if_set("name", artifact.name.as_deref());
    object.str_if_set("description", artifact.description.as_deref());
    encode_parts(&artifact.parts, object.key("parts"));
    object.close();
}
