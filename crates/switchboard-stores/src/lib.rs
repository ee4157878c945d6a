//! Stores behind the ports of the engine. Each is a feature and a folder; none knows another. What they share is the
//! stored form of a task's log, in `record`: JSON that a person can read, with a format number of its own; and the
//! checksums of what they store, in `checksum`.
//!
//! No semver promise is made here: use the `switchboard` crate.

#[cfg(feature = "sqlite")]
mod checksum;
#[cfg(feature = "sqlite")]
mod record;
#[cfg(feature = "sqlite")]
pub mod sqlite;
