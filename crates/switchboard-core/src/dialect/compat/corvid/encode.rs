//! Tasks, written straight from the model: six members, no more and no fewer.

use crate::call::Reply;
use crate::dialect::json::{Object, write_array, write_timestamp};
use crate::model::{Dialect, Message, Role, TaskState, TaskView, Update, conversation, in_words};

/// Writes the result of a call: a task, whatever was asked.
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
    let mut object = Object::open(out);
    object.str("id", task.id.as_str());
    object.str("state", state_word(task.state(), task.dialect));
    let messages = conversation(view);
    let told = messages.iter().filter(|message| message.parts.iter().any(|part| in_words(part).is_some()));
    write_array(object.key("messages"), told, |out, message| encode_message(message, out));
    object.str("sessionId", task.context_id.as_str());
    write_timestamp(object.key("createdAt"), task.created_at);
    write_timestamp(object.key("updatedAt"), task.status.timestamp);
    object.close();
}

/// Four states are known here. Whatever waits for somebody is still at work, and whatever ended otherwise has failed. A
/// task begun in this dialect has its session, and so is at work, when its caller first hears of it.
fn state_word(state: TaskState, begun_in: Dialect) -> &'static str {
    match state {
        TaskState::Submitted if begun_in == Dialect::Corvid => TaskState::Working.word(),
        TaskState::Submitted | TaskState::Working | TaskState::Completed | TaskState::Failed => state.word(),
        TaskState::Canceled | TaskState::Rejected => TaskState::Failed.word(),
        TaskState::InputRequired | TaskState::AuthRequired => TaskState::Working.word(),
    }
}

fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    let role = match message.role {
        Role::User => "user",
        Role::Agent => "agent",
    };
    object.str("role", role);
    write_array(object.key("parts"), message.parts.iter().filter_map(in_words), |out, text| {
        let mut part = Object::open(out);
        part.str("type", "text");
        part.str("text", text);
        part.close();
    });
    object.close();
}
