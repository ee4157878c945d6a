//! Replies and updates from the model.

use crate::call::{PushConfigPage, Reply};
use crate::dialect::protobuf::{encode_object, encode_timestamp, write};
use crate::model::{
    Artifact, ArtifactUpdate, ArtifactView, Json, Message, Part, PartContent, PushConfig, Role, StatusUpdate,
    TaskState, TaskStatus, TaskView, Update,
};

use super::card;
use super::generated as wire;
use super::generated::file_part::File;
use super::generated::part::Part as Content;
use super::generated::{send_message_response, stream_response};
use super::resource::push_config_name;
use crate::dialect::json::Raw;
use crate::dialect::wire::{data_part, ends_stream};

/// Appends the result of a call. A deletion is the empty message; a stream is written update by update with
/// [`encode_update`]. There is no call that lists tasks.
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    let sent = |payload| wire::SendMessageResponse { payload: Some(payload) };
    match reply {
        Reply::Task(view) => write(&task(view), out),
        Reply::SentTask(view) => write(&sent(send_message_response::Payload::Task(task(view))), out),
        Reply::SentMessage(said) => write(&sent(send_message_response::Payload::Msg(message(said))), out),
        Reply::PushConfig(config) => write(&push_config(config), out),
        Reply::PushConfigs(page) => write(&push_configs(page), out),
        Reply::Card(card) => write(&card::convert(card), out),
        Reply::Deleted => {}
        Reply::Tasks(_) | Reply::Stream(_) => debug_assert!(false, "no call of 0.3 is answered by this"),
    }
}

/// Appends one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    use stream_response::Payload;
    let payload = match update {
        Update::Task(view) => Payload::Task(task(view)),
        Update::Message(said) => Payload::Msg(message(said)),
        Update::Status(update) => Payload::StatusUpdate(status_update(update)),
        Update::Artifact(update) => Payload::ArtifactUpdate(artifact_update(update)),
    };
    write(&wire::StreamResponse { payload: Some(payload) }, out);
}

fn task(view: &TaskView) -> wire::Task {
    let task = &*view.task;
    let artifacts = match view.artifacts {
        ArtifactView::Shown | ArtifactView::AlwaysListed => task.artifacts.iter().map(|made| artifact(made)).collect(),
        ArtifactView::Omitted => Vec::new(),
    };
    wire::Task {
        id: task.id.as_str().to_owned(),
        context_id: task.context_id.as_str().to_owned(),
        status: Some(status(&task.status)),
        artifacts,
        history: view.history().iter().map(|said| message(said)).collect(),
        metadata: task.metadata.as_ref().map(encode_object),
    }
}

fn status(status: &TaskStatus) -> wire::TaskStatus {
    let state = match status.state {
        TaskState::Submitted => wire::TaskState::Submitted,
        TaskState::Working => wire::TaskState::Working,
        TaskState::Completed => wire::TaskState::Completed,
        TaskState::Failed => wire::TaskState::Failed,
        TaskState::Canceled => wire::TaskState::Cancelled,
        TaskState::InputRequired => wire::TaskState::InputRequired,
        TaskState::Rejected => wire::TaskState::Rejected,
        TaskState::AuthRequired => wire::TaskState::AuthRequired,
    };
    wire::TaskStatus {
        state: state.into(),
        update: status.message.as_ref().map(|said| message(said)),
        timestamp: Some(encode_timestamp(status.timestamp)),
    }
}

fn message(message: &Message) -> wire::Message {
    let role = match message.role {
        Role::User => wire::Role::User,
        Role::Agent => wire::Role::Agent,
    };
    wire::Message {
        message_id: message.message_id.as_str().to_owned(),
        context_id: message.context_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        task_id: message.task_id.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        role: role.into(),
        content: message.parts.iter().map(part).collect(),
        metadata: message.metadata.as_ref().map(encode_object),
        extensions: message.extensions.clone(),
    }
}

fn part(part: &Part) -> wire::Part {
    let file = |file| {
        let (mime_type, name) =
            (part.media_type.clone().unwrap_or_default(), part.filename.clone().unwrap_or_default());
        Content::File(wire::FilePart { file: Some(file), mime_type, name })
    };
    let own = part.metadata.as_ref().map(encode_object);
    let (content, metadata) = match &part.content {
        PartContent::Text(text) => (Content::Text(text.clone()), own),
        PartContent::Raw(bytes) => (file(File::FileWithBytes(bytes.clone())), own),
        PartContent::Url(uri) => (file(File::FileWithUri(uri.clone())), own),
        PartContent::Data(data) => {
            let (data, metadata) = data_part::of(data, part.metadata.as_ref().map(Raw::from));
            let object = |raw: Raw<'_>| encode_object(&Json::from_trusted(raw.0.into_owned()));
            let data = Content::Data(wire::DataPart { data: Some(object(data)) });
            (data, metadata.map(object))
        }
    };
    wire::Part { part: Some(content), metadata }
}

fn artifact(artifact: &Artifact) -> wire::Artifact {
    wire::Artifact {
        artifact_id: artifact.artifact_id.as_str().to_owned(),
        name: artifact.name.clone().unwrap_or_default(),
        description: artifact.description.clone().unwrap_or_default(),
        parts: artifact.parts.iter().map(part).collect(),
        metadata: artifact.metadata.as_ref().map(encode_object),
        extensions: artifact.extensions.clone(),
    }
}

fn status_update(update: &StatusUpdate) -> wire::TaskStatusUpdateEvent {
    wire::TaskStatusUpdateEvent {
        task_id: update.task_id.as_str().to_owned(),
        context_id: update.context_id.as_str().to_owned(),
        status: Some(status(&update.status)),
        r#final: ends_stream(update.status.state),
        metadata: update.metadata.as_ref().map(encode_object),
    }
}

fn artifact_update(update: &ArtifactUpdate) -> wire::TaskArtifactUpdateEvent {
    wire::TaskArtifactUpdateEvent {
        task_id: update.task_id.as_str().to_owned(),
        context_id: update.context_id.as_str().to_owned(),
        artifact: Some(artifact(&update.artifact)),
        append: update.append,
        last_chunk: update.last_chunk,
        metadata: update.metadata.as_ref().map(encode_object),
    }
}

/// A config is a resource, so it has a name beside its id.
fn push_config(config: &PushConfig) -> wire::TaskPushNotificationConfig {
    let inner = wire::PushNotificationConfig {
        id: config.id.as_str().to_owned(),
        url: config.url.clone(),
        token: config.token.clone().unwrap_or_default(),
        authentication: config.authentication.as_ref().map(|authentication| wire::AuthenticationInfo {
            schemes: vec![authentication.scheme.clone()],
            credentials: authentication.credentials.clone().unwrap_or_default(),
        }),
    };
    wire::TaskPushNotificationConfig {
        name: push_config_name(&config.task_id, &config.id),
        push_notification_config: Some(inner),
    }
}

fn push_configs(page: &PushConfigPage) -> wire::ListTaskPushNotificationConfigResponse {
    wire::ListTaskPushNotificationConfigResponse {
        configs: page.configs.iter().map(push_config).collect(),
        next_page_token: page.next_page_token.clone(),
    }
}
