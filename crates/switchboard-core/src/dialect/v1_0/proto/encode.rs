//! Replies and updates from the model. Nothing here trims: a [`TaskView`] says how much of a task is shown.

use crate::call::{PushConfigPage, Reply, TaskPage};
use crate::dialect::protobuf::{Fields, encode_value, write};
use crate::model::{
    Artifact, ArtifactUpdate, ArtifactView, Message, Part, PartContent, PushConfig, Role, StatusUpdate, TaskState,
    TaskStatus, TaskView, Update,
};

use super::card::encode_card;
use super::generated as wire;

/// Appends the result of a call. A deletion is the empty message; a stream is written update by update with
/// [`encode_update`].
pub fn encode_reply(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Task(view) => task(view, &mut Fields(out)),
        Reply::SentTask(view) => Fields(out).message(1, |fields| task(view, fields)),
        Reply::SentMessage(said) => Fields(out).message(2, |fields| message(said, fields)),
        Reply::Tasks(page) => tasks(page, &mut Fields(out)),
        Reply::PushConfig(config) => write(&push_config(config), out),
        Reply::PushConfigs(page) => write(&push_configs(page), out),
        Reply::Card(card) => encode_card(card, out),
        Reply::Deleted => {}
        Reply::Stream(_) => debug_assert!(false, "a stream has no single encoded form"),
    }
}

/// Appends one update of a stream.
pub fn encode_update(update: &Update, out: &mut Vec<u8>) {
    let mut fields = Fields(out);
    match update {
        Update::Task(view) => fields.message(1, |fields| task(view, fields)),
        Update::Message(said) => fields.message(2, |fields| message(said, fields)),
        Update::Status(update) => fields.message(3, |fields| status_update(update, fields)),
        Update::Artifact(update) => fields.message(4, |fields| artifact_update(update, fields)),
    }
}

fn task(view: &TaskView, fields: &mut Fields<'_>) {
    let task = &*view.task;
    fields.text(1, task.id.as_str());
    fields.text(2, task.context_id.as_str());
    fields.message(3, |fields| status(&task.status, fields));
    let artifacts = match view.artifacts {
        ArtifactView::Shown | ArtifactView::AlwaysListed => task.artifacts.as_slice(),
        ArtifactView::Omitted => &[],
    };
    for made in artifacts {
        fields.message(4, |fields| artifact(made, fields));
    }
    for said in view.history() {
        fields.message(5, |fields| message(said, fields));
    }
    fields.object(6, task.metadata.as_ref());
}

fn status(status: &TaskStatus, fields: &mut Fields<'_>) {
    fields.number(1, state_number(status.state).into());
    if let Some(said) = &status.message {
        fields.message(2, |fields| message(said, fields));
    }
    fields.timestamp(3, status.timestamp);
}

fn message(message: &Message, fields: &mut Fields<'_>) {
    let role = match message.role {
        Role::User => wire::Role::User,
        Role::Agent => wire::Role::Agent,
    };
    fields.text(1, message.message_id.as_str());
    fields.text(2, message.context_id.as_ref().map_or("", |id| id.as_str()));
    fields.text(3, message.task_id.as_ref().map_or("", |id| id.as_str()));
    fields.number(4, i32::from(role).into());
    parts(5, &message.parts, fields);
    fields.object(6, message.metadata.as_ref());
    fields.texts(7, message.extensions.iter().map(String::as_str));
    fields.texts(8, message.reference_task_ids.iter().map(|id| id.as_str()));
}

fn parts(tag: u32, parts: &[Part], fields: &mut Fields<'_>) {
    for part in parts {
        fields.message(tag, |fields| {
            match &part.content {
                PartContent::Text(text) => fields.present_text(1, text),
                PartContent::Raw(bytes) => fields.present_bytes(2, bytes),
                PartContent::Url(url) => fields.present_text(3, url),
                PartContent::Data(data) => fields.present_bytes(4, &encode_value(data).0),
            }
            fields.object(5, part.metadata.as_ref());
            fields.text(6, part.filename.as_deref().unwrap_or_default());
            fields.text(7, part.media_type.as_deref().unwrap_or_default());
        });
    }
}

fn artifact(artifact: &Artifact, fields: &mut Fields<'_>) {
    fields.text(1, artifact.artifact_id.as_str());
    fields.text(2, artifact.name.as_deref().unwrap_or_default());
    fields.text(3, artifact.description.as_deref().unwrap_or_default());
    parts(4, &artifact.parts, fields);
    fields.object(5, artifact.metadata.as_ref());
    fields.texts(6, artifact.extensions.iter().map(String::as_str));
}

fn status_update(update: &StatusUpdate, fields: &mut Fields<'_>) {
    fields.text(1, update.task_id.as_str());
    fields.text(2, update.context_id.as_str());
    fields.message(3, |fields| status(&update.status, fields));
    fields.object(4, update.metadata.as_ref());
}

fn artifact_update(update: &ArtifactUpdate, fields: &mut Fields<'_>) {
    fields.text(1, update.task_id.as_str());
    fields.text(2, update.context_id.as_str());
    fields.message(3, |fields| artifact(&update.artifact, fields));
    fields.flag(4, update.append);
    fields.flag(5, update.last_chunk);
    fields.object(6, update.metadata.as_ref());
}

fn tasks(page: &TaskPage, fields: &mut Fields<'_>) {
    for view in &page.tasks {
        fields.message(1, |fields| task(view, fields));
    }
    fields.text(2, &page.next_page_token);
    fields.number(3, i32::try_from(page.page_size).unwrap_or(i32::MAX).into());
    fields.number(4, i32::try_from(page.total_size).unwrap_or(i32::MAX).into());
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

fn state_number(state: TaskState) -> i32 {
    match state {
        TaskState::Submitted => 1,
        TaskState::Working => 2,
        TaskState::Completed => 3,
        TaskState::Failed => 4,
        TaskState::Canceled => 5,
        TaskState::InputRequired => 6,
        TaskState::Rejected => 7,
        TaskState::AuthRequired => 8,
    }
}
