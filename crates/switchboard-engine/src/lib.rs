//! Durable tasks. A call enters through [`Engine`]. Its message is accepted ([`accepting`]), decided and committed
//! ([`commit`]), and worked on by a run ([`runs`]). Clients follow the task from their own cursors ([`watching`]), and
//! webhooks are sent its updates ([`push`]). All of these share one [`state`].
//!
//! The engine knows neither HTTP nor SQL: [`ports`] holds the traits for what it needs from outside, and [`memory`] a
//! reference adapter for each. This crate makes no semver promise; use the `switchboard` crate.
#![allow(rustdoc::private_intra_doc_links)]

mod accepting;
mod audit;
mod auditor;
pub mod budget;
mod clock_guard;
mod commit;
mod continuations;
mod engine;
mod engine_builder;
pub mod escaped;
mod health;
pub mod hops;
pub mod id_hash;
pub mod limits;
mod live_task;
pub mod memory;
mod operations;
pub mod ports;
pub mod push;
mod reply_size;
pub mod runs;
pub mod sha256;
pub mod spans;
mod state;
pub mod supervisor;
pub mod system;
mod watching;

#[cfg(feature = "contract")]
pub mod contract;

pub use auditor::AuditLevel;
pub use engine::{Engine, QueueAges};
pub use engine_builder::EngineBuilder;
pub use health::Readiness;
pub use runs::Registered;
pub use state::{Counters, CurrentCard};
