//! The bodies as they stand in the text. Both spellings of a name are taken: one SDK writes the proto's own. Every field is
//! optional here: null and absent are the same, and what is required is checked later, with a better message.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::dialect::json::{Int, List, NameOrNumber, Obj, Text};

use super::super::push::WirePushConfig;

#[derive(Deserialize)]
pub(super) struct SendBody<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "request")]
    pub(super) message: Option<Obj<Message<'a>>>,
    #[serde(borrow)]
    pub(super) configuration: Option<Obj<Configuration<'a>>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, alias = "message_id")]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) role: Option<NameOrNumber<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<List<Obj<Part<'a>>>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) extensions: Option<List<String>>,
    /// What the other spelling, and 1.0, call `content`. It is read to be refused.
    pub(super) parts: Option<IgnoredAny>,
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) file: Option<Obj<File<'a>>>,
    #[serde(borrow)]
    pub(super) data: Option<Obj<Data<'a>>>,
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
    #[serde(alias = "file_with_uri")]
    pub(super) file_with_uri: Option<String>,
    #[serde(borrow, alias = "file_with_bytes")]
    pub(super) file_with_bytes: Option<Text<'a>>,
    #[serde(alias = "mime_type")]
    pub(super) mime_type: Option<String>,
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Data<'a> {
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Configuration<'a> {
    #[serde(alias = "accepted_output_modes")]
    pub(super) accepted_output_modes: Option<List<String>>,
    #[serde(borrow, alias = "push_notification")]
    pub(super) push_notification: Option<Obj<WirePushConfig<'a>>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int>,
    pub(super) blocking: Option<bool>,
}

/// The body that registers a webhook, in the three forms that are about: the whole request, only its `config`, or a config
/// without its envelope.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushBody<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "config_id")]
    pub(super) config_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) config: Option<Obj<NamedConfig<'a>>>,
    #[serde(borrow, alias = "push_notification_config")]
    pub(super) push_notification_config: Option<Obj<WirePushConfig<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamedConfig<'a> {
    #[serde(borrow, alias = "push_notification_config")]
    pub(super) push_notification_config: Option<Obj<WirePushConfig<'a>>>,
}

/// The body of a cancel: nothing in it is needed, the path has the task.
#[derive(Deserialize)]
pub(super) struct CancelBody<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}
