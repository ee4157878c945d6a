//! The shapes the limit server reads and writes. Everything borrows: from the request body on the way in, from the
//! request and the fresh ids on the way out.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) id: &'a RawValue,
    pub(super) method: Method,
    #[serde(borrow)]
    pub(super) params: &'a RawValue,
}

#[derive(Deserialize)]
pub(super) enum Method {
    SendMessage,
    GetTask,
    SendStreamingMessage,
    SubscribeToTask,
}

#[derive(Deserialize)]
pub(super) struct SendParams<'a> {
    #[serde(borrow)]
    pub(super) message: Message<'a>,
}

#[derive(Deserialize)]
pub(super) struct GetParams<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) message_id: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) context_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) task_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) role: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct Reply<'a, T> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: &'a RawValue,
    pub(super) result: T,
}

/// The answer of SendMessage and every event of a stream.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Payload<'a> {
    Task(Task<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
    StatusUpdate(StatusUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    pub(super) id: &'a str,
    pub(super) context_id: &'a str,
    pub(super) status: Status<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) artifacts: &'a [Artifact<'a>],
    pub(super) history: &'a [Message<'a>],
}

#[derive(Serialize)]
pub(super) struct Status<'a> {
    pub(super) state: &'static str,
    pub(super) timestamp: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact<'a> {
    pub(super) artifact_id: &'a str,
    pub(super) parts: &'a [Part<'a>],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a> {
    pub(super) task_id: &'a str,
    pub(super) context_id: &'a str,
    pub(super) artifact: Artifact<'a>,
    pub(super) last_chunk: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a> {
    pub(super) task_id: &'a str,
    pub(super) context_id: &'a str,
    pub(super) status: Status<'a>,
}
