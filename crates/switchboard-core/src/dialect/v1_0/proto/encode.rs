//! Replies and updates from the model. Nothing here trims: a [`TaskView`] says how much of a task is shown.

use crate::call::{PushConfigPage, Reply, TaskPage};
use crate::dialect::protobuf::{encode_object, encode_timestamp, encode_value, write};
use crate::model::{
    Artifact, ArtifactUpdate, ArtifactView, Message, Part, PartContent, PushConfig, Role, StatusUpdate, TaskStatus,
    TaskView, Update,
};

use super::super::names::state_number;
use super::card::encode_card;
use super::generated as wire;
use super::generated::part::Content;
use super::generated::{send_message_response, stream_response};

/// Appends the result of a call. A deletion is the empty message; a stream is written update by update with
/// [`encode_update`].
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    let sent = |payload| wire::SendMessageResponse { payload: Some(payload) };
    match reply {
        Reply::Task(view) => write(&task(view), out),
        Reply::SentTask(view) => write(&sent(send_message_response::Payload::Task(task(view))), out),
        Reply::SentMessage(said) => write(&sent(send_message_response::Payload::Message(message(said))), out),
        Reply::Tasks(page) => write(&tasks(page), out),
        Reply::PushConfig(config) => write(&push_config(config), out),
        Reply::PushConfigs(page) => write(&push_configs(page), out),
        Reply::Card(card) => encode_card(card, out),
        Reply::Deleted => {}
        Reply::Stream(_) => debug_assert!(false, "a stream has no single encoded form"),
    }
}

/// Appends one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    use stream_response::Payload;
    let payload = match update {
        Update::Task(view) => Payload::Task(task(view)),
        Update::Message(said) => Payload::Message(message(said)),
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
    wire::TaskStatus {
        state: state_number(status.state),
        message: status.message.as_ref().map(|said| message(said)),
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
        parts: message.parts.iter().map(part).collect(),
        metadata: message.metadata.as_ref().map(encode_object),
        extensions: message.extensions.clone(),
        reference_task_ids: message.reference_task_ids.iter().map(|id| id.as_str().to_owned()).collect(),
    }
}

fn part(part: &Part) -> wire::Part {
    let content = match &part.content {
        PartContent::Text(text) => Content::Text(text.clone()),
        PartContent::Raw(bytes) => Content::Raw(bytes.clone()),
        PartContent::Url(url) => Content::Url(url.clone()),
        PartContent::Data(data) => Content::Data(encode_value(data)),
    };
    wire::Part {
        content: Some(content),
        metadata: part.metadata.as_ref().map(encode_object),
        filename: part.filename.clone().unwrap_or_default(),
        media_type: part.media_type.clone().unwrap_or_default(),
    }
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

fn tasks(page: &TaskPage) -> wire::ListTasksResponse {
    wire::ListTasksResponse {
        tasks: page.tasks.iter().map(task).collect(),
        next_page_token: page.next_page_token.clone(),
        page_size: i32::try_from(page.page_size).unwrap_or(i32::MAX),
        total_size: i32::try_from(page.total_size).unwrap_or(i32::MAX),
    }
}

fn push_config(config: &PushConfig) -> wire::TaskPushNotificationConfig {
    wire::TaskPushNotificationConfig {
        tenant: String::new(),
        id: config.id.as_str().to_owned(),
        task_id: config.task_id.as_str().to_owned(),
        url: config.url.clone(),
        token: config.token.clone().unwrap_or_default(),
        authentication: config.authentication.as_ref().map(|authentication| wire::AuthenticationInfo {
            scheme: authentication.scheme.clone(),
            credentials: authentication.credentials.clone().unwrap_or_default(),
        }),
    }
}

fn push_configs(page: &PushConfigPage) -> wire::ListTaskPushNotificationConfigsResponse {
    wire::ListTaskPushNotificationConfigsResponse {
        configs: page.configs.iter().map(push_config).collect(),
        next_page_token: page.next_page_token.clone(),
    }
}
