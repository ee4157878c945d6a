//! The types of Switchboard and the pure part of A2A: model, calls, errors, lifecycle and wire formats.
//!
//! Read in this order:
//! - [`model`]: what a task, a message, a part, an artifact and a card are;
//! - [`call`]: what can be asked ([`call::Request`]), what can be answered ([`call::Reply`]), who asks
//!   ([`call::Caller`]), and the trait that everything which answers calls implements ([`call::Endpoint`]);
//! - [`error`]: what the protocol can refuse with;
//! - [`lifecycle`]: how a task moves: a command is *decided* into events, events are *folded* into a task, and some
//!   of them are *visible* outside;
//! - [`dialect`]: how all of that is spelled on the wire.
//!
//! [`nearest`] finds what a mistyped name was meant to be.
//!
//! Nothing in this crate does I/O, reads a clock, draws random numbers or spawns. Time, ids and randomness are
//! arguments. No semver promise is made here: use the `switchboard` crate.

pub mod call;
pub mod dialect;
pub mod error;
pub mod lifecycle;
pub mod model;
pub mod nearest;
