//! What a receiver is sent of one update: the body, and what the headers say about it.

use bytes::Bytes;
use switchboard_core::model::redact::redact_update;
use switchboard_core::model::{AuthenticationInfo, Dialect, Update};

use crate::ports::store::Delivery;

/// One numbered update on its way.
pub(super) struct Payload {
    pub(super) seq: u64,
    /// Updates before it that the receiver will not be sent.
    pub(super) skipped: u64,
    pub(super) body: Bytes,
}

/// The body for an update, without what must not leave the server.
pub(super) fn encode(dialect: Dialect, update: &Update) -> Bytes {
    let mut body = Vec::with_capacity(512);
    dialect.write_update(redact_update(update).as_ref().unwrap_or(update), &mut body);
    body.into()
}

/// What the receiver is told about an update. The same id in every attempt: who has seen it has seen the update.
#[must_use]
pub(super) fn delivery_id(task_id: &str, config_id: &str, seq: u64) -> String {
    format!("{task_id}:{config_id}:{seq}")
}

pub(super) fn headers(
    delivery: &Delivery,
    delivery_id: &str,
    payload: &Payload,
    attempt: u32,
) -> Vec<(&'static str, String)> {
    let Delivery { config, dialect, .. } = delivery;
    let mut headers = vec![
        ("content-type", dialect.rules().push_media_type.to_owned()),
        ("a2a-delivery-id", delivery_id.to_owned()),
        ("a2a-delivery-seq", payload.seq.to_string()),
        ("a2a-delivery-attempt", attempt.to_string()),
    ];
    if payload.skipped > 0 {
        headers.push(("a2a-delivery-skipped", payload.skipped.to_string()));
    }
    // A scheme alone proves nothing, and receivers take it for a broken credential.
    if let Some(AuthenticationInfo { scheme, credentials: Some(credentials) }) = &config.authentication
        && !credentials.is_empty()
    {
        headers.push(("authorization", format!("{scheme} {credentials}")));
    }
    if let Some(token) = &config.token {
        // The spec names no header; these are the two that other SDKs use.
        headers.push(("x-a2a-notification-token", token.clone()));
        headers.push(("a2a-notification-token", token.clone()));
    }
    headers
}
