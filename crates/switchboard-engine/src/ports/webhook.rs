//! The client that posts updates to webhooks. The adapter also decides which addresses are allowed (no private
//! networks).

use bytes::Bytes;
use switchboard_core::call::BoxFuture;

pub trait Webhook: Send + Sync {
    /// Checks whether a URL may be posted to, as far as possible without a DNS lookup. The reason is shown to the
    /// client that registers it.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Posts once. `Ok` is the receiver's answer; the caller decides whether it counts as delivered.
    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>>;

    /// Called periodically: frees what is no longer used, such as idle connections.
    fn tidy(&self) {}
}

pub struct WebhookCall {
    pub url: String,
    /// The same in every attempt. It is in the headers, too, and repeated here for adapters that sign what they post.
    pub delivery_id: String,
    /// Names and values contain no control characters, because they were checked when the config was accepted.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// The answer of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    pub status: u16,
    /// How long the receiver wants no further calls, if it said so.
    pub retry_after_ms: Option<u64>,
}

/// An answer that has only a status.
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
