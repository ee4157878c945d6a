//! What is for operators: health, metrics, and the outbox of everybody.

pub(crate) mod exposition;
pub(crate) mod health;
pub(crate) mod metrics;
#[cfg(feature = "sqlite")]
pub(crate) mod offline;
pub(crate) mod outbox;
