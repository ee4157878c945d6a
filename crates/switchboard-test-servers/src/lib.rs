//! Servers that a test starts, on free ports of this machine and in temporary folders: PostgreSQL and NATS.
//!
//! A shell keeps each of them and ends it when this process ends, however that happens.

mod keeper;
mod nats;
mod postgres;

pub use nats::{Nats, NatsCluster};
pub use postgres::{Postgres, Stop};
