//! Tasks in one SQLite file. One thread writes: it puts all waiting requests into one transaction and makes it durable
//! before it answers them. A few threads read. Recently used records are cached in memory, which is safe because a lock
//! file keeps other processes from writing the file.

mod accepted_task;
mod audit;
mod call_rows;
mod census;
mod copy;
mod download;
mod epoch;
mod error;
mod files;
mod fill;
mod fold;
mod idempotency;
mod leases;
mod ledger;
mod list;
mod lock;
mod meta;
mod migrate;
mod moved;
#[cfg(feature = "postgres")]
pub(crate) mod moving;
mod offline;
mod open;
mod outlined;
mod presence;
mod push_rows;
mod quarantine;
mod read;
mod readers;
mod recent;
mod rows;
mod schema;
mod secrets;
mod statements;
mod step_row;
mod store;
mod totals;
mod unindexed;
mod usage;
mod verify;
mod wall_clock;
mod writer;

pub use crate::secret_keys::{SecretKeys, SecretKeysError};
pub use error::FileError;
pub use files::files;
#[cfg(feature = "postgres")]
pub use moving::reopen;
pub use offline::assign_owner::{Assigned, assign_owner};
pub use offline::audit_file::{AuditChain, append_audit, append_audit_unless_old, read_audit};
pub use offline::backup::backup;
pub use offline::compact::{Compacted, Contents, compact};
pub use offline::reseal::{Resealed, reseal, rotate_secret_keys};
pub use offline::reset::reset;
pub use open::{SqliteOptions, Synchronous};
pub use secrets::{SecretKeySource, secret_key_file};
pub use store::SqliteStore;
pub use verify::{Checked, Fault, verify, verify_with_keys};

#[cfg(test)]
pub(crate) mod tests;
