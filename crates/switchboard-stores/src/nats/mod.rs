//! Hints over NATS, for servers that share a database: core subjects, and no streams, because a hint may be lost. One connection of
//! each process publishes and subscribes. While it is lost, followers poll, and it is made again after a pause that grows.
//!
//! The client is our own: of the protocol a hint needs six words, each a line of text (`wire`).

mod connection;
mod credentials;
mod options;
mod thread;
mod wire;

pub use options::{NatsError, NatsOptions};
pub use thread::NatsHints;

#[cfg(test)]
mod tests;
