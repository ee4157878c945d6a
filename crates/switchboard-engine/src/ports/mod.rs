//! What the engine needs from outside, each a trait that fits on a screen. Adapters implement them; the engine names no
//! adapter, so that a store, a clock or a webhook client can be replaced without touching it.
//!
//! A store is four of them: [`TaskLog`], [`Runs`], [`Deliveries`] and [`Upkeep`].

pub mod audit;
pub mod callees;
pub mod calls;
pub mod commit;
pub mod common;
pub mod deliveries;
pub mod download;
pub mod outbox;
pub mod outline;
pub mod runs;
pub mod share;
pub mod storage;
pub mod store;
pub mod system;
pub mod task_log;
pub mod trace;
pub mod upkeep;

pub use audit::AuditLog;
pub use callees::{Callee, CalleeError, Callees};
pub use calls::Calls;
pub use deliveries::Deliveries;
pub use download::Links;
pub use outbox::Outbox;
pub use runs::Runs;
pub use share::Share;
pub use store::Store;
pub use system::{
    Clock, Dispatch, Hint, HintSink, HintStats, Hints, Ids, News, Webhook, WebhookAnswer, WebhookCall, WebhookError,
};
pub use task_log::TaskLog;
pub use trace::Tracer;
pub use upkeep::{DamagedRow, Quarantine, Upkeep};
