//! The requests as they stand in the text. Every field is optional here: null and absent are the same, and what is
//! required is checked later, with a better message. Unknown members are skipped; repeated ones are refused.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::json::{Int, List, Obj, Text, present_raw};

use super::super::push::WirePushConfig;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Obj<Message<'a>>>,
    #[serde(borrow)]
    pub(super) configuration: Option<Obj<Configuration<'a>>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    /// Belongs into the message; a sample of the 0.2 specification has it here.
    #[serde(borrow)]
    pub(super) message_id: Option<Text<'a>>,
    /// Belongs into the message; some clients have it here.
    #[serde(borrow)]
    pub(super) context_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) role: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) parts: Option<List<Obj<Part<'a>>>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) extensions: Option<List<String>>,
    #[serde(borrow)]
    pub(super) reference_task_ids: Option<List<Text<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) kind: Option<Text<'a>>,
    /// What 0.1 called `kind`.
    #[serde(borrow, rename = "type")]
    pub(super) old_kind: Option<Text<'a>>,
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) file: Option<Obj<File<'a>>>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    /// Only 1.0 has this one and the next three.
    #[serde(borrow)]
    pub(super) raw: Option<Text<'a>>,
    pub(super) url: Option<String>,
    #[serde(rename = "mediaType")]
    pub(super) media_type: Option<String>,
    pub(super) filename: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File<'a> {
    #[serde(borrow)]
    pub(super) bytes: Option<Text<'a>>,
    pub(super) uri: Option<String>,
    /// What a sample of the 0.2 specification calls `bytes`.
    #[serde(borrow)]
    pub(super) data: Option<Text<'a>>,
    pub(super) name: Option<String>,
    pub(super) mime_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration<'a> {
    pub(super) accepted_output_modes: Option<List<String>>,
    /// Boxed, because few have one and all would carry the room for it.
    #[serde(borrow)]
    pub(super) push_notification_config: Option<Box<Obj<WirePushConfig<'a>>>>,
    pub(super) history_length: Option<Int>,
    pub(super) blocking: Option<bool>,
}

/// Getting, canceling and following a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    pub(super) history_length: Option<Int>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetPushParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) push_notification_config: Option<Obj<WirePushConfig<'a>>>,
}

/// Getting, listing and deleting push configs; `id` is the task's.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) push_notification_config_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct CardParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
}
