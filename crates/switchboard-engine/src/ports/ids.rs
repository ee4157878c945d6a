//! Where unguessable names come from.

use std::sync::Arc;

use switchboard_core::model::Timestamp;

pub trait Ids: Send + Sync {
    /// A fresh UUID in text form, of those that begin with the time. Task and context ids must not be guessable, so an adapter for production draws them
    /// from the system's randomness. Shared text, because that is what ids are.
    fn uuid(&self, now: Timestamp) -> Arc<str>;
}
