//! What the engine needs from outside, each a trait that fits on a screen. Adapters implement them; the engine names no
//! adapter, so that a store, a clock or a webhook client can be replaced without touching it.
//!
//! A store is four of them: [`TaskLog`], [`Runs`], [`Deliveries`] and [`Upkeep`].

pub mod commit;
pub mod deliveries;
pub mod download;
pub mod hints;
pub mod outbox;
pub mod outline;
pub mod runs;
pub mod store;
pub mod store_types;
pub mod system;
pub mod task_log;
pub mod upkeep;
pub mod webhook;

pub use deliveries::Deliveries;
pub use download::Links;
pub use hints::{Hint, HintSink, Hints};
pub use outbox::Outbox;
pub use runs::Runs;
pub use store::Store;
pub use system::{Clock, Ids};
pub use task_log::TaskLog;
pub use upkeep::{DamagedRow, Quarantine, Upkeep};
pub use webhook::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
