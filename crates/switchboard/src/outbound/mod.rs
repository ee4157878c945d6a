//! Placeholder until the guarded client arrives.
use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::{Webhook, WebhookCall, WebhookError};
pub(crate) struct OutboundPolicy;
impl OutboundPolicy {
    pub(crate) fn parse(_: &[String]) -> Result<Self, String> {
        Ok(Self)
    }
}
pub(crate) struct GuardedClient;
impl GuardedClient {
    pub(crate) fn new(_: OutboundPolicy) -> Result<Self, String> {
        Ok(Self)
    }
}
impl Webhook for GuardedClient {
    fn post(&self, _: WebhookCall) -> BoxFuture<'_, Result<u16, WebhookError>> {
        Box::pin(std::future::ready(Err(WebhookError::Failed(String::new()))))
    }
}
