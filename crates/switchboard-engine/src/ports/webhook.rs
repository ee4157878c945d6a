//! How an update leaves the engine. The address policy (no private targets) lives in the adapter.

use bytes::Bytes;
use switchboard_core::call::BoxFuture;

pub trait Webhook: Send + Sync {
    /// Whether a URL can be posted to at all, as far as that can be told without looking anything up. The reason is
    /// shown to whoever registers it.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Posts once. `Ok` is the receiver's answer; whether that counts as delivered is for the caller to say.
    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>>;

    /// Asked now and then: lets go of what is kept for posts that did not come, such as idle connections.
    fn tidy(&self) {}
}

pub struct WebhookCall {
    pub url: String,
    /// The same in every attempt. It stands among the headers, too; here for adapters that sign what they post.
    pub delivery_id: String,
    /// Names and values are free of control characters: they were checked when the config was accepted.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// What a receiver said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    pub status: u16,
    /// How long it wants to be left alone, if it said so.
    pub retry_after_ms: Option<u64>,
}

/// A status and nothing more.
impl From<u16> for WebhookAnswer {
    fn from(status: u16) -> Self {
        Self { status, retry_after_ms: None }
    }
}

/// Why nothing was posted. The text is for operators and never shown to a client.
#[derive(Debug, Clone)]
pub enum WebhookError {
    /// The address is not allowed; trying again will not help until the configuration changes.
    Refused(String),
    Failed(String),
}
