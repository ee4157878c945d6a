//! Tasks in PostgreSQL, which several processes share. Each process writes commits in batches, one round trip each, and reads
//! with pipelined statements. Only the clock of the database decides about leases and other waiting times.
//!
//! Nothing of a task is cached, so each process sees what the others wrote. A thread of its own drives the connections.

mod assign_owner;
mod audit;
mod calls;
mod commit;
mod connect;
mod deliveries;
mod download;
mod error;
mod fold;
mod hints;
mod list;
mod migrate;
mod moved;
#[cfg(feature = "sqlite")]
pub(crate) mod moving;
mod offline;
mod options;
mod outlined;
mod prune;
mod quarantine;
mod read;
mod rows;
mod runs;
mod schema;
mod scopes;
mod store;
mod text;
mod thread;
mod tls;
mod totals;
mod usage;
mod verify;
mod writer;

pub use crate::checked::{Assigned, AuditChain, Checked, Fault};
pub use crate::secret_keys::{SecretKeys, SecretKeysError};
pub use assign_owner::assign_owner;
pub use error::PostgresError;
pub use hints::PostgresHints;
pub use migrate::SchemaStatus;
#[cfg(feature = "sqlite")]
pub use moving::reopen;
pub use options::PostgresOptions;
pub use store::PostgresStore;
pub use thread::{migrate, status};
pub use verify::{read_audit, remove, verify};

#[cfg(test)]
pub(crate) mod tests;
