//! What the engine needs from outside, each a trait that fits on a screen. Adapters implement them; the engine knows
//! none by name.

pub mod clock;
pub mod download;
pub mod hints;
pub mod ids;
pub mod keys;
pub mod outbox;
pub mod quarantine;
pub mod room;
pub mod store;
pub mod store_error;
pub mod webhook;

pub use clock::Clock;
pub use hints::{Hint, HintSink, Hints};
pub use ids::Ids;
pub use outbox::Outbox;
pub use quarantine::{DamagedRow, Quarantine};
pub use room::{Links, Room};
pub use store::Store;
pub use webhook::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
