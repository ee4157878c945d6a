//! Maintenance of a database in PostgreSQL: what `switchboard db` and `switchboard audit` do, for programs that bring their own
//! server. The options are those given to [`ServerBuilder::postgres`](crate::ServerBuilder::postgres).
//!
//! ```no_run
//! use switchboard::{PostgresOptions, postgres};
//!
//! let options = PostgresOptions::new("postgres://switchboard@db.example/switchboard");
//! let before = postgres::migrate(&options)?;
//! println!("{before}");
//! # Ok::<(), postgres::PostgresError>(())
//! ```
//!
//! These functions wait for the server and start a runtime of their own: from async code, call them on a thread that may wait.

use switchboard_core::call::Owner;
use switchboard_stores::postgres::PostgresOptions;

pub use switchboard_stores::postgres::{
    Assigned, AuditChain, Checked, Fault, PostgresError, SchemaStatus, migrate, read_audit, remove, status, verify,
};

/// Hands the tasks of one owner over to another, those of one agent or of all, in a database that no server uses. The new owner sees and changes
/// them from then on, and the old one does not find them any more. What repeats of messages are known by, and names that clients of NEXUS chose,
/// stay with the old owner. The audit log says that `who` did it, and what `reason` says.
///
/// # Errors
/// When the database cannot be reached or changed, or a server uses it; then nothing was handed over.
pub fn assign_owner(
    options: &PostgresOptions,
    from: &Owner,
    to: &Owner,
    agent: Option<&str>,
    who: &str,
    reason: &str,
) -> Result<Assigned, PostgresError> {
    let entry = crate::offline_entry::offline_entry(who, "db assign-owner", reason);
    switchboard_stores::postgres::assign_owner(options, from, to, agent, &entry)
}
