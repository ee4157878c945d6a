//! What is for operators: health, metrics, and the webhook deliveries of all callers.

pub(crate) mod exposition;
pub(crate) mod health;
#[cfg(feature = "sqlite")]
pub(crate) mod offline;
pub(crate) mod outbox;
