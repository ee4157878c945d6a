//! Durable tasks. A call comes in at the front desk ([`Engine`]), is decided and committed ([`commit`]), worked on by a
//! run ([`runs`]), watched by readers at their own cursor ([`watching`]) and posted to webhooks ([`push`]).
//!
//! The engine knows neither HTTP nor SQL: what it needs from outside is in [`ports`], and [`memory`] holds reference
//! adapters for all of them. No semver promise is made here: use the `switchboard` crate.

pub mod limits;
pub mod ports;
