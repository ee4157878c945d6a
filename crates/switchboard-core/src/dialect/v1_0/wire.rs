//! The requests of 1.0 as they stand in the text. Strings are borrowed unless they become part of the model as they
//! are. Every field is optional here, because null and absent are the same and what is required is checked later, with
//! a better message. Both spellings of a name are taken; unknown members are skipped; repeated ones are refused.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialect::json::{Int, List, NameOrNumber, Obj, Text, present_raw};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendMessageParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Obj<Message<'a>>>,
    #[serde(borrow)]
    pub(super) configuration: Option<Obj<SendConfiguration<'a>>>,
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
    pub(super) parts: Option<List<Obj<Part<'a>>>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) extensions: Option<List<String>>,
    #[serde(borrow, alias = "reference_task_ids")]
    pub(super) reference_task_ids: Option<List<Text<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) raw: Option<Text<'a>>,
    pub(super) url: Option<String>,
    #[serde(borrow, default, deserialize_with = "present_raw")]
    pub(super) data: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
    pub(super) filename: Option<String>,
    #[serde(alias = "media_type")]
    pub(super) media_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendConfiguration<'a> {
    #[serde(alias = "accepted_output_modes")]
    pub(super) accepted_output_modes: Option<List<String>>,
    #[serde(borrow, alias = "task_push_notification_config")]
    /// Boxed, because few have one and all would carry the room for it.
    pub(super) task_push_notification_config: Option<Box<Obj<PushConfig<'a>>>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int>,
    #[serde(alias = "return_immediately")]
    pub(super) return_immediately: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfig<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(super) task_id: Option<Text<'a>>,
    pub(super) url: Option<String>,
    pub(super) token: Option<String>,
    pub(super) authentication: Option<Obj<Authentication>>,
}

#[derive(Deserialize)]
pub(super) struct Authentication {
    pub(super) scheme: Option<String>,
    pub(super) credentials: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListTasksParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<NameOrNumber<'a>>,
    #[serde(alias = "page_size")]
    pub(super) page_size: Option<Int>,
    #[serde(alias = "page_token")]
    pub(super) page_token: Option<String>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int>,
    #[serde(borrow, alias = "status_timestamp_after")]
    pub(super) status_timestamp_after: Option<Text<'a>>,
    #[serde(alias = "include_artifacts")]
    pub(super) include_artifacts: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GetTaskParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(alias = "history_length")]
    pub(super) history_length: Option<Int>,
}

/// CancelTask in full, and the body of a cancel over HTTP, which has the id in its path.
#[derive(Deserialize)]
pub(super) struct CancelTaskParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct SubscribeParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
}

/// Getting and deleting one push config.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PushConfigParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListPushConfigsParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(super) task_id: Option<Text<'a>>,
    #[serde(alias = "page_size")]
    pub(super) page_size: Option<Int>,
    #[serde(alias = "page_token")]
    pub(super) page_token: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CardParams<'a> {
    #[serde(borrow)]
    pub(super) tenant: Option<Text<'a>>,
}
