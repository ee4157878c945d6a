//! What the engine needs from outside, each a trait that fits on a screen. Adapters implement them; the engine knows
//! none by name.
//!
//! A store is four of them: [`TaskLog`], [`Runs`], [`Deliveries`] and [`Upkeep`].

pub mod clock;
pub mod commit;
pub mod deliveries;
pub mod download;
pub mod hints;
pub mod ids;
pub mod keys;
pub mod links;
pub mod outbox;
pub mod outline;
pub mod quarantine;
pub mod runs;
pub mod store;
pub mod store_error;
pub mod task_log;
pub mod upkeep;
pub mod webhook;

pub use clock::Clock;
pub use deliveries::Deliveries;
pub use hints::{Hint, HintSink, Hints};
pub use ids::Ids;
pub use links::Links;
pub use outbox::Outbox;
pub use quarantine::{DamagedRow, Quarantine};
pub use runs::Runs;
pub use store::Store;
pub use task_log::TaskLog;
pub use upkeep::Upkeep;
pub use webhook::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
