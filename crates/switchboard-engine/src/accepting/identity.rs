//! Recognises repeated sends. The key includes the caller, so two callers never share a key.

use sha2::{Digest, Sha256};
use switchboard_core::call::Caller;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Dialect, Message};

use crate::engine_state::Registered;
use crate::ports::store::Accepted;
use crate::runs::Idempotency;

/// The key by which a repeated send is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) key: [u8; 32],
    pub(crate) digest: [u8; 32],
    /// Set if the key came from an `Idempotency-Key` header. The same key with another message is then an error of the
    /// client, not a new message.
    strict: bool,
}

/// The identity of a send; none if repeats of it are not recognised.
pub(crate) fn identify(agent: &Registered, caller: &Caller, message: &Message) -> Option<Identity> {
    let default = if caller.authenticated { Idempotency::MessageId } else { Idempotency::Key };
    let mode = agent.source.traits().idempotency.unwrap_or(default);
    let header = caller.idempotency_key.as_deref().filter(|key| !key.is_empty());
    // A message without an id cannot be recognised.
    let by_message = mode == Idempotency::MessageId && !message.message_id.is_empty();
    if header.is_none() && !by_message {
        return None;
    }
    let digest: [u8; 32] = Sha256::digest(message.canonical()).into();
    let mut key = Sha256::new();
    let owner = &caller.owner;
    let named = header.unwrap_or(message.message_id.as_str());
    let kind = if header.is_some() { "key" } else { "message" };
    for part in [owner.tenant.as_str(), owner.principal.as_str(), agent.name.as_str(), kind, named] {
        // Each part is preceded by its length, so that different parts cannot hash as the same bytes.
        key.update((part.len() as u64).to_le_bytes());
        key.update(part.as_bytes());
    }
    if header.is_none() {
        // The same message id with another body is another message, because simple clients reuse ids.
        key.update(digest);
    }
    Some(Identity { key: key.finalize().into(), digest, strict: header.is_some() })
}

impl Identity {
    /// Refuses a key that was used for another message.
    pub(crate) fn check(&self, accepted: &Accepted, dialect: Dialect) -> Result<(), ProtocolError> {
        if self.strict && accepted.digest != self.digest {
            let description = "was used before for another message; use a new key for a new message";
            return Err(ProtocolError::invalid(dialect.rules().words.idempotency_key, description));
        }
        Ok(())
    }
}
