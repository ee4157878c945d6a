//! Durable tasks. A call comes in at the front desk ([`Engine`]), its message is taken in ([`accepting`]), decided and
//! committed ([`commit`]), worked on by a run ([`runs`]), watched by readers at their own cursor ([`watching`]) and
//! posted to webhooks ([`push`]).
//!
//! The engine knows neither HTTP nor SQL: what it needs from outside is in [`ports`], and [`memory`] holds reference
//! adapters for all of them. No semver promise is made here: use the `switchboard` crate.
#![allow(rustdoc::private_intra_doc_links)]

mod accepting;
mod clock_guard;
mod commit;
mod ended;
mod engine;
mod engine_state;
pub mod escaped;
mod health;
pub mod histogram;
pub mod id_hash;
pub mod limits;
pub mod memory;
mod operations;
pub mod poll_when_woken;
pub mod ports;
pub mod push;
mod reply_size;
pub mod runs;
pub mod supervisor;
pub mod system;
mod watching;

#[cfg(feature = "contract")]
pub mod contract;

pub use engine::{Engine, EngineBuilder, QueueAges};
pub use engine_state::{Counters, Registered};
pub use health::Readiness;
