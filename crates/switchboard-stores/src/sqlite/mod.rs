//! Tasks in one SQLite file. One thread writes: it takes whatever waits, puts it into one transaction and makes that
//! durable before it answers anybody. A few threads read. What was read or written lately is kept in memory, which is
//! sound because nobody else may write the file: a lock beside it sees to that.

mod accepted;
mod cache;
mod commit;
mod deliveries;
mod error;
mod leases;
mod ledger;
mod list;
mod lock;
mod migrate;
mod open;
mod outbox;
mod prune;
mod read;
mod readers;
mod rows;
mod schema;
mod stats;
mod store;
mod totals;
mod writer;

pub use error::OpenError;
pub use open::{SqliteOptions, Synchronous};
pub use store::SqliteStore;

#[cfg(test)]
mod tests;
