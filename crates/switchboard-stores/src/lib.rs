//! Stores that implement the engine's ports. Each is a feature and a folder, and none imports another. They share the
//! stored form of a task's log, in `record` (readable JSON with a format number of its own), and the checksums of
//! stored rows, in `checksum`.
//!
//! This crate makes no semver promise; use the `switchboard` crate.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod checksum;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod record;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod secret_keys;
#[cfg(feature = "sqlite")]
pub mod sqlite;
