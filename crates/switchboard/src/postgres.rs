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

pub use switchboard_stores::postgres::{
    AuditChain, Checked, Fault, PostgresError, SchemaStatus, migrate, read_audit, remove, status, verify,
};
