//! Stores that implement the engine's ports. Each is a feature and a folder, and none imports another. They share the
//! stored form of a task's log, in `record` (readable JSON with a format number of its own), the checksums of
//! stored rows, in `checksum`, and the memory of records that were written lately, in `cache`. Servers that share a store wake each other's followers by hints (`hint_box`), over PostgreSQL itself or
//! over NATS, which is no store.
//!
//! This crate makes no semver promise; use the `switchboard` crate.

#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod cache;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod checked;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "nats"))]
mod checksum;
#[cfg(any(feature = "postgres", feature = "nats"))]
mod client_tls;
#[cfg(any(feature = "postgres", feature = "nats"))]
mod hint_box;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
pub mod moving;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod moving_rows;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod moving_state;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod record;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod secret_keys;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod write_stats;
