//! Agents of other people and other programs behind a Switchboard: durable relays to them, a directory that knows them, and
//! dispatch that chooses among them.
#![warn(missing_docs, missing_debug_implementations)]

pub mod callees;
pub mod directory;
pub mod dispatch;
pub mod hops;
pub mod relay;
