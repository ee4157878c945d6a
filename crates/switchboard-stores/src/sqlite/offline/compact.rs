//! Makes the file smaller: prunes by the retention policy, then rewrites the file without the free pages. A running
//! server prunes too, but keeps the free pages for later writes, because rewriting needs exclusive access.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::store::{Retention, StoreError};

use crate::record::unsigned;
use crate::sqlite::error::{Failure, FileError};
use crate::sqlite::files::beside;
use crate::sqlite::ledger::prune::candidates;
use crate::sqlite::ledger::{Ledger, LedgerShares};
use crate::sqlite::open::{Opened, SqliteOptions, open};
use crate::sqlite::totals::Totals;

/// How many tasks are removed in one transaction.
const BATCH: usize = 500;

/// What a database held before and holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted {
    pub before: Contents,
    pub after: Contents,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub tasks: u64,
    pub commits: u64,
    /// Bytes on disk, including the write-ahead log.
    pub bytes: u64,
}

/// Compacts a database that no process has open.
///
/// # Errors
/// When there is no database, a process has it open, or it cannot be read or written. Each step is a transaction, so
/// what was removed before an error stays removed, and nothing else is lost.
pub fn compact(database: &Path, clock: Arc<dyn Clock>, retention: &Retention) -> Result<Compacted, FileError> {
    if !database.exists() {
        return Err(FileError::Missing { path: database.to_owned() });
    }
    let sql = |source| FileError::Sqlite { path: database.to_owned(), source };
    let bytes = bytes_on_disk(database);
    let Opened { lock, writer, readers, epoch, .. } = open(database, &SqliteOptions::default(), clock.now())?;
    let before = contents(&writer, bytes).map_err(sql)?;
    prune(&writer, clock, epoch, retention)
        .map_err(|failure| FileError::Store { path: database.to_owned(), failure })?;
    drop(readers);
    // Rewriting puts a second copy of the file where temporary files go, so that must not be memory.
    writer.execute_batch("PRAGMA temp_store = file; VACUUM").map_err(sql)?;
    writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(sql)?;
    let after = contents(&writer, bytes_on_disk(database)).map_err(sql)?;
    writer.close().map_err(|(_, source)| sql(source))?;
    drop(lock);
    Ok(Compacted { before, after })
}

fn prune(connection: &Connection, clock: Arc<dyn Clock>, epoch: i64, retention: &Retention) -> Result<(), StoreError> {
    let work = || -> Result<(), Failure> {
        let (totals, mut after, mut done_this_round) = (Totals::default(), 0, 0);
        let mut ledger = Ledger::new(connection, clock, LedgerShares::offline(), epoch)?;
        ledger.empty_recent()?;
        loop {
            let found = candidates(connection, &totals, &ledger.quarantine, retention, after, BATCH)?;
            ledger.begin()?;
            let done = ledger.prune(retention, &found, BATCH)?;
            ledger.commit()?;
            totals.update(&ledger.count_changes);
            done_this_round += done;
            if found.at_end {
                if done_this_round == 0 {
                    return Ok(());
                }
                done_this_round = done;
            }
            after = found.next;
        }
    };
    work().map_err(|failure| failure.0)
}

fn contents(connection: &Connection, bytes: u64) -> rusqlite::Result<Contents> {
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (tasks, filed) = (count("SELECT count(*) FROM task")?, count("SELECT count(*) FROM log")?);
    let unfiled = count("SELECT count(*) FROM recent WHERE log_no NOT IN (SELECT log_no FROM log)")?;
    Ok(Contents { tasks: unsigned(tasks), commits: unsigned(filed + unfiled), bytes })
}

fn bytes_on_disk(database: &Path) -> u64 {
    let files = [database.to_owned(), beside(database, "-wal")];
    files.iter().map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
}
