//! Signs webhooks as they go out, with the time of the attempt.

use std::borrow::Cow;
use std::sync::Arc;

use switchboard_engine::ports::{Clock, WebhookCall};

use crate::signing_secrets::SigningSecrets;

/// Signs calls as they go out.
pub(super) struct Signer {
    pub(super) secrets: SigningSecrets,
    pub(super) clock: Arc<dyn Clock>,
}

impl Signer {
    pub(super) fn sign(&self, call: &mut WebhookCall) {
        let timestamp = self.clock.now().as_ms().div_euclid(1_000).to_string();
        let id = webhook_id(&call.delivery_id);
        let signature = self.secrets.sign(&id, &timestamp, &call.body);
        let id = id.into_owned();
        call.headers.extend([("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)]);
    }
}

/// A delivery's id as it can be signed: a part of it is the client's choice, and what is signed is divided by dots. So
/// dots are written as in URLs, and so is what headers do not carry unharmed everywhere.
fn webhook_id(delivery_id: &str) -> Cow<'_, str> {
    let stays = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'.' | b'%');
    if delivery_id.bytes().all(stays) {
        return Cow::Borrowed(delivery_id);
    }
    let mut id = String::with_capacity(delivery_id.len() + 16);
    for byte in delivery_id.bytes() {
        if stays(byte) {
            id.push(char::from(byte));
        } else {
            id.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(id)
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
