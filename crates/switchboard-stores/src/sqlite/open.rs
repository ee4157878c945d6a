//! Opening: folder, lock, file, schema, epoch, in this order, each refused with a sentence that names the file.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use switchboard_core::model::Timestamp;

use super::FileError;
use super::checksums::of_push_times;
use super::error::Failure;
use super::files::{create_private_folder, folder_of, open_private};
use super::ledger::{read_meta, write_meta};
use super::lock::FileLock;
use super::migrate::{migrate, schema_version};
use super::schema::MIGRATIONS;

/// What a crash may cost. Neither loses anything when only the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Every answered commit is on disk: it survives power loss.
    #[default]
    Full,
    /// Power loss may take the last commits, in order, and never damages the file.
    Normal,
}

/// Settings of a file.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub synchronous: Synchronous,
    /// Threads that read.
    pub readers: usize,
    /// Requests that may wait for the writer; more are refused after a short wait.
    pub queue_max: usize,
    /// Whole records kept in memory.
    pub cache_records_max: usize,
    pub cache_bytes_max: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            readers: 2,
            queue_max: 4096,
            cache_records_max: 4096,
            cache_bytes_max: 8 << 20,
        }
    }
}

/// An open file, before anything runs on it.
pub(super) struct Opened {
    pub(super) lock: FileLock,
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    pub(super) epoch: i64,
}

/// Pages of the write-ahead log after which a commit tidies up by itself; when idle the writer does so earlier.
const CHECKPOINT_PAGES: i64 = 4000;
const WRITER_CACHE_KIB: i64 = 8 * 1024;
const READER_CACHE_KIB: i64 = 2 * 1024;
const WAL_BYTES_KEPT: i64 = 64 << 20;
const BUSY_WAIT_MS: i64 = 5_000;

pub(super) fn open(path: &Path, options: &SqliteOptions, now: Timestamp) -> Result<Opened, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    let sql = |source| FileError::Sqlite { path: path.to_owned(), source };
    let folder = folder_of(path);
    create_private_folder(folder).map_err(|source| FileError::Io { path: folder.to_owned(), source })?;
    let lock = FileLock::take(path)?;
    // SQLite gives its side files the mode of the main one.
    open_private(path).map_err(io)?;
    let mut writer =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(sql)?;
    writer.pragma_update(None, "busy_timeout", BUSY_WAIT_MS).map_err(sql)?;
    migrate(&mut writer, path, MIGRATIONS)?;
    configure_writer(&writer, options).map_err(sql)?;
    let epoch =
        begin_epoch(&writer, now).map_err(|failure| FileError::Store { path: path.to_owned(), failure: failure.0 })?;
    let mut readers = Vec::new();
    for _ in 0..options.readers.max(1) {
        readers.push(open_reader(path).map_err(sql)?);
    }
    Ok(Opened { lock, writer, readers, epoch })
}

fn configure_writer(connection: &Connection, options: &SqliteOptions) -> rusqlite::Result<()> {
    connection.pragma_update(None, "journal_mode", "wal")?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "full",
        Synchronous::Normal => "normal",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "busy_timeout", BUSY_WAIT_MS)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Opens a file for a look, and says which schema it has: it may be in use, and nothing is written to it.
pub(super) fn open_to_read(path: &Path) -> Result<(Connection, usize), FileError> {
    if !path.exists() {
        return Err(FileError::Missing { path: path.to_owned() });
    }
    let connection = open_reader(path).map_err(|source| FileError::Sqlite { path: path.to_owned(), source })?;
    let found = schema_version(&connection, path, MIGRATIONS.len())?;
    let found = found.ok_or_else(|| FileError::NotOurs { path: path.to_owned() })?;
    Ok((connection, found))
}

/// Whoever opened the file before is gone: the lock says so. Their leases are older than this epoch, and deliveries
/// they had under way are due again.
fn begin_epoch(connection: &Connection, now: Timestamp) -> Result<i64, Failure> {
    let transaction = connection.unchecked_transaction()?;
    let epoch = read_meta(&transaction, EPOCH)?.unwrap_or(0) + 1;
    write_meta(&transaction, EPOCH, epoch)?;
    transaction.execute(
        "UPDATE push SET due_at = ?1, claimed_until = NULL, times_checksum = ?2
          WHERE due_at IS NOT NULL AND claimed_until IS NOT NULL",
        [now.as_ms(), of_push_times(Some(now.as_ms()), None)],
    )?;
    transaction.commit()?;
    Ok(epoch)
}

/// How often the file has been opened for writing.
pub(super) const EPOCH: &str = "epoch";
