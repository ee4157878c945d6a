//! The audit log of a file without a server: checking its chains, exporting them, and adding an entry about what was done to
//! the file. Reading works while a server uses the file.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, ChainPosition, StoredEntry};

pub use crate::checked::AuditChain;
use crate::sqlite::audit::{AuditQueue, read_chains, stored_entry};
use crate::sqlite::error::{Failure, FileError};
use crate::sqlite::ledger::{Ledger, LedgerShares};
use crate::sqlite::open::{Opened, SqliteOptions, open, open_to_read};
use crate::sqlite::rows::ChainColumns;
use crate::sqlite::schema::MIGRATIONS;

/// Checks every chain of the audit log, and shows each entry that follows the one before it, with that one's position.
///
/// # Errors
/// When the file is missing, is not ours, has another schema than this build's, or the table of chains cannot be read.
pub fn read_audit(
    database: &Path,
    show: &mut dyn FnMut(&ChainPosition, &StoredEntry),
) -> Result<Vec<AuditChain>, FileError> {
    let (connection, found) = open_to_read(database)?;
    let known = MIGRATIONS.len();
    if found < known {
        return Err(FileError::Older { path: database.to_owned(), found, known });
    }
    let failed = |failure: Failure| FileError::Store { path: database.to_owned(), failure: failure.0 };
    // The transaction ends with the connection.
    connection.execute_batch("BEGIN").map_err(|source| FileError::Sqlite { path: database.to_owned(), source })?;
    let chains = read_chains(&connection, "ORDER BY chain_no").map_err(failed)?;
    chains.iter().map(|chain| check_chain(&connection, chain, show).map_err(failed)).collect()
}

/// Follows one chain to its end or to its first break.
pub(crate) fn check_chain(
    connection: &Connection,
    columns: &ChainColumns,
    show: &mut dyn FnMut(&ChainPosition, &StoredEntry),
) -> Result<AuditChain, Failure> {
    let ChainColumns { chain_no, id, anchor, last_no } = columns;
    let mut chain = AuditChain { id: id.clone(), anchor: *anchor, last: *anchor, broken: None };
    let mut select =
        connection.prepare("SELECT entry_no, at, record, hash FROM audit WHERE chain_no = ?1 ORDER BY entry_no")?;
    let mut rows = select.query([chain_no])?;
    while let Some(row) = rows.next()? {
        let entry = stored_entry(row)?;
        match chain.last.follow(id, &entry) {
            Ok(next) => {
                show(&chain.last, &entry);
                chain.last = next;
            }
            Err(why) => {
                chain.broken = Some(why);
                return Ok(chain);
            }
        }
    }
    if chain.last.no != *last_no {
        chain.broken = Some(format!("entry {} is missing; the chain ends at entry {last_no}", chain.last.no + 1));
    }
    Ok(chain)
}

/// Adds an entry to the audit log of a database that no process has open.
///
/// # Errors
/// When there is no database, a process has it open, or it cannot be written.
pub fn append_audit(database: &Path, clock: Arc<dyn Clock>, entry: AuditEntry) -> Result<(), FileError> {
    if !database.exists() {
        return Err(FileError::Missing { path: database.to_owned() });
    }
    let Opened { lock, writer, readers, epoch, .. } = open(database, &SqliteOptions::default(), clock.now())?;
    drop(readers);
    let failed = |failure: Failure| FileError::Store { path: database.to_owned(), failure: failure.0 };
    write_one(&writer, clock, epoch, entry).map_err(failed)?;
    writer.close().map_err(|(_, source)| FileError::Sqlite { path: database.to_owned(), source })?;
    drop(lock);
    Ok(())
}

/// As [`append_audit`], unless the database is of an earlier version and would have to be migrated first; then it returns false.
///
/// # Errors
/// As [`append_audit`].
pub fn append_audit_unless_old(database: &Path, clock: Arc<dyn Clock>, entry: AuditEntry) -> Result<bool, FileError> {
    let (_, version) = open_to_read(database)?;
    if version < MIGRATIONS.len() {
        return Ok(false);
    }
    append_audit(database, clock, entry).map(|()| true)
}

pub(crate) fn write_one(
    connection: &Connection,
    clock: Arc<dyn Clock>,
    epoch: i64,
    entry: AuditEntry,
) -> Result<(), Failure> {
    let queue = Arc::new(AuditQueue::default());
    queue.push(entry);
    let shares = LedgerShares { audit: queue, ..LedgerShares::offline() };
    let mut ledger = Ledger::new(connection, clock, shares, epoch)?;
    ledger.begin()?;
    ledger.commit()
}
