//! Replies and updates, written straight from the model. Each object says what it is in `kind`. Parts say it in `type` as
//! well: clients that read only that cannot be told from others by their requests, and no reader of `kind` minds.

use crate::call::Reply;
use crate::dialect::json::{Object, write_array, write_base64, write_str, write_timestamp};
use crate::model::{
    Artifact, ArtifactUpdate, ArtifactView, Message, Part, PartContent, PushConfig, StatusUpdate, TaskStatus, TaskView,
    Update,
};

use super::super::names::{role_word, state_word};
use super::super::{data_part, encode_card, ends_stream, push};

/// Writes the result of a call. A deletion has none, so nothing is written and the binding decides how that is spelled;
/// a stream is written frame by frame with [`encode_update`]. There is no call that lists tasks.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) | Reply::SentTask(view) => encode_task(view, out),
        Reply::SentMessage(message) => encode_message(message, out),
        Reply::PushConfig(config) => encode_push_config(config, out),
        Reply::PushConfigs(page) => write_array(out, &page.configs, |out, config| encode_push_config(config, out)),
        Reply::Card(card) => encode_card(card, out),
        Reply::Deleted => {}
        Reply::Tasks(_) | Reply::Stream(_) => debug_assert!(false, "no call of 0.3 is answered by this"),
    }
}

/// Writes one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    match update {
        Update::Task(view) => encode_task(view, out),
        Update::Message(message) => encode_message(message, out),
        Update::Status(status) => encode_status_update(status, out),
        Update::Artifact(artifact) => encode_artifact_update(artifact, out),
    }
}

/// Writes a task, as much of it as the view shows.
pub fn encode_task(view: &TaskView, out: &mut Vec<u8>) {
    // A small task takes about this much; one reservation then covers it.
    out.reserve(640);
    let task = &*view.task;
    let mut object = Object::open(out);
    object.str("kind", "task");
    object.str("id", task.id.as_str());
    object.str("contextId", task.context_id.as_str());
    encode_status(&task.status, object.key("status"));
    let lists_artifacts = match view.artifacts {
        ArtifactView::Shown => !task.artifacts.is_empty(),
        ArtifactView::AlwaysListed => true,
        ArtifactView::Omitted => false,
    };
    if lists_artifacts {
        write_array(object.key("artifacts"), &task.artifacts, |out, artifact| encode_artifact(artifact, out));
    }
    let history = view.history();
    if !history.is_empty() {
        write_array(object.key("history"), history, |out, message| encode_message(message, out));
    }
    object.json_if_set("metadata", task.metadata.as_ref());
    object.close();
}

fn encode_status(status: &TaskStatus, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("state", state_word(status.state));
    if let Some(message) = &status.message {
        encode_message(message, object.key("message"));
    }
    write_timestamp(object.key("timestamp"), status.timestamp);
    object.close();
}

/// Writes a message.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("kind", "message");
    object.str("messageId", message.message_id.as_str());
    object.str_if_set("contextId", message.context_id.as_ref().map(|id| id.as_str()));
    object.str_if_set("taskId", message.task_id.as_ref().map(|id| id.as_str()));
    object.str("role", role_word(message.role));
    encode_parts(&message.parts, object.key("parts"));
    object.json_if_set("metadata", message.metadata.as_ref());
    object.strings_if_any("extensions", &message.extensions);
    if !message.reference_task_ids.is_empty() {
        let ids = &message.reference_task_ids;
        write_array(object.key("referenceTaskIds"), ids, |out, id| write_str(out, id.as_str()));
    }
    object.close();
}

fn encode_parts(parts: &[Part], out: &mut Vec<u8>) {
    write_array(out, parts, |out, part| {
        let mut object = Object::open(out);
        match &part.content {
            PartContent::Text(text) => {
                kind(&mut object, "text");
                object.str("text", text);
                object.json_if_set("metadata", part.metadata.as_ref());
            }
            PartContent::Raw(_) | PartContent::Url(_) => {
                kind(&mut object, "file");
                encode_file(part, object.key("file"));
                object.json_if_set("metadata", part.metadata.as_ref());
            }
            PartContent::Data(data) => {
                kind(&mut object, "data");
                let metadata = data_part::encode(part, data, object.key("data"));
                object.json_if_set("metadata", metadata.as_deref());
            }
        }
        object.close();
    });
}

#[inline]
fn kind(object: &mut Object<'_>, kind: &str) {
    object.str("kind", kind);
    object.str("type", kind);
}

fn encode_file(part: &Part, out: &mut Vec<u8>) {
    let mut file = Object::open(out);
    match &part.content {
        PartContent::Raw(bytes) => write_base64(file.key("bytes"), bytes),
        PartContent::Url(uri) => file.str("uri", uri),
        PartContent::Text(_) | PartContent::Data(_) => {}
    }
    file.str_if_set("mimeType", part.media_type.as_deref());
    file.str_if_set("name", part.filename.as_deref());
    file.close();
}

fn encode_artifact(artifact: &Artifact, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("artifactId", artifact.artifact_id.as_str());
    object.str_if_set("name", artifact.name.as_deref());
    object.str_if_set("description", artifact.description.as_deref());
    encode_parts(&artifact.parts, object.key("parts"));
    object.json_if_set("metadata", artifact.metadata.as_ref());
    object.strings_if_any("extensions", &artifact.extensions);
    object.close();
}

fn encode_status_update(update: &StatusUpdate, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("kind", "status-update");
    object.str("taskId", update.task_id.as_str());
    object.str("contextId", update.context_id.as_str());
    encode_status(&update.status, object.key("status"));
    object.bool("final", ends_stream(update.status.state));
    object.json_if_set("metadata", update.metadata.as_ref());
    object.close();
}

/// The two flags are always there: clients add up chunks by them.
fn encode_artifact_update(update: &ArtifactUpdate, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("kind", "artifact-update");
    object.str("taskId", update.task_id.as_str());
    object.str("contextId", update.context_id.as_str());
    encode_artifact(&update.artifact, object.key("artifact"));
    object.bool("append", update.append);
    object.bool("lastChunk", update.last_chunk);
    object.json_if_set("metadata", update.metadata.as_ref());
    object.close();
}

fn encode_push_config(config: &PushConfig, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    object.str("taskId", config.task_id.as_str());
    push::encode(config, object.key("pushNotificationConfig"));
    object.close();
}
