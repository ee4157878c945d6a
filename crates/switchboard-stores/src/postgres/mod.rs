//! Tasks in PostgreSQL, which several processes share. Each process writes commits in batches, one round trip each, and reads
//! with pipelined statements. Only the clock of the database decides about leases and other waiting times.
//!
//! Each process sees what the others wrote: it keeps the tasks that it wrote lately in memory, and asks the database whether they are
//! still the newest before it shows them. Only a caller that waited for a commit of this process is told what that commit made of
//! the task without asking. A thread of its own drives the connections.

mod assign_owner;
mod audit;
mod calls;
mod commit;
mod connect;
mod database;
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
mod queue;
mod read;
mod rows;
mod runs;
mod schema;
mod scopes;
mod shared;
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
