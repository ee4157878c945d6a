//! Opens a file: folder, lock, file, schema, epoch, in this order. Each error names the file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::system::ClockRecord;

use super::epoch::{NO_EPOCH, begin_epoch};
use super::error::FileError;
use super::files::{beside, create_private_folder, folder_of, open_private};
use super::lock::FileLock;
use super::migrate::{migrate, schema_version};
use super::moved::check_not_moved;
use super::presence::{check_not_lost, resolve};
use super::schema::MIGRATIONS;
use super::secrets::SecretKeySource;
use super::wall_clock;

/// What a power loss may cost. Neither setting loses anything when only the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Every answered commit is on disk: it survives power loss.
    #[default]
    Full,
    /// Power loss may lose the last commits, newest first, but never damages the file.
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
    /// Where the keys are that the secrets of webhooks are encrypted with.
    pub secrets: SecretKeySource,
    /// After this time without work the writer files the newest chunks and moves the write-ahead log into the file.
    pub idle: Duration,
}

const IDLE: Duration = Duration::from_millis(250);

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            readers: 2,
            queue_max: 4096,
            cache_records_max: 4096,
            cache_bytes_max: 8 << 20,
            secrets: SecretKeySource::default(),
            idle: IDLE,
        }
    }
}

/// An open file, before anything runs on it.
pub(super) struct Opened {
    pub(super) lock: FileLock,
    /// The path with its links resolved.
    pub(super) path: PathBuf,
    pub(super) writer: Connection,
    pub(super) readers: Vec<Connection>,
    /// [`NO_EPOCH`] if the disk had no space to record one.
    pub(super) epoch: i64,
    /// What the file had recorded about the wall clock.
    pub(super) clock: ClockRecord,
}

/// Pages of the write-ahead log after which a commit runs a checkpoint; an idle writer does so earlier.
const CHECKPOINT_PAGES: i64 = 4000;
/// Small, because commits write to the ends of tables and so use few pages again, and because SQLite looks at every page of its cache after a
/// commit that has split a page, while the file is below 1 GiB. With 8 MiB that took 2.7 % of the CPU of an ordinary send.
const WRITER_CACHE_KIB: i64 = 2 * 1024;
const READER_CACHE_KIB: i64 = 2 * 1024;
const WAL_BYTES_KEPT: i64 = 64 << 20;
const BUSY_WAIT_MS: i64 = 5_000;

pub(super) fn open(path: &Path, options: &SqliteOptions, now: Timestamp) -> Result<Opened, FileError> {
    open_if(path, options, now, check_not_moved)
}

/// As [`open`], also for a file that is moved to another database or from one.
#[cfg(feature = "postgres")]
pub(super) fn open_to_move(path: &Path, options: &SqliteOptions, now: Timestamp) -> Result<Opened, FileError> {
    open_if(path, options, now, |_, _| Ok(()))
}

/// Opens a file if `check` does not refuse it, before anything in it is changed.
fn open_if(
    path: &Path,
    options: &SqliteOptions,
    now: Timestamp,
    check: impl FnOnce(&Connection, &Path) -> Result<(), FileError>,
) -> Result<Opened, FileError> {
    let folder = folder_of(path);
    create_private_folder(folder).map_err(|source| FileError::of_writing(folder.to_owned(), source))?;
    let path = &*resolve(path)?;
    let mut lock = FileLock::take(path)?;
    check_not_lost(path, lock.note)?;
    // SQLite gives its side files the permissions of the main file. Once SQLite has the file open, no handle of ours
    // may be closed.
    open_private(path).map_err(|source| FileError::of_writing(path.to_owned(), source))?;
    let sql = |source| FileError::Sqlite { path: path.to_owned(), source };
    let mut writer =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(sql)?;
    writer.pragma_update(None, "busy_timeout", BUSY_WAIT_MS).map_err(sql)?;
    check(&writer, path)?;
    migrate(&mut writer, path, MIGRATIONS)?;
    configure_writer(&writer, options).map_err(sql)?;
    let clock = wall_clock::read(&writer).map_err(sql)?;
    let epoch = match begin_epoch(&writer, clock, now) {
        Ok(epoch) => epoch,
        // Reads must work on a full disk, too. The writer begins the epoch when the disk has space.
        Err(error) if is_no_room(&error) => {
            tracing::error!(path = %path.display(), %error, "the database takes no writes; serving what is in it");
            NO_EPOCH
        }
        Err(error) => return Err(sql(error)),
    };
    lock.note_data(path)?;
    let mut readers = Vec::new();
    for _ in 0..options.readers.max(1) {
        readers.push(open_reader(path).map_err(sql)?);
    }
    Ok(Opened { lock, path: path.to_owned(), writer, readers, epoch, clock })
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

pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "busy_timeout", BUSY_WAIT_MS)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Opens a file for reading only, and returns its schema version. The file may be in use, and nothing is written to it.
pub(super) fn open_to_read(path: &Path) -> Result<(Connection, usize), FileError> {
    if !path.exists() {
        return Err(FileError::Missing { path: path.to_owned() });
    }
    let read = |open: fn(&Path) -> rusqlite::Result<Connection>| {
        let connection = open(path).map_err(|source| FileError::Sqlite { path: path.to_owned(), source })?;
        let found = schema_version(&connection, path, MIGRATIONS.len())?;
        Ok((connection, found))
    };
    let (connection, found) = match read(open_reader) {
        // Even for reading, SQLite creates files beside the database. Without a write-ahead log it need not.
        Err(FileError::Sqlite { source, .. }) if is_not_writable(&source) => {
            let wal = beside(path, "-wal");
            if wal.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                return Err(FileError::Unmerged { path: path.to_owned(), wal });
            }
            read(open_unchanging)?
        }
        read => read?,
    };
    let found = found.ok_or_else(|| FileError::NotOurs { path: path.to_owned() })?;
    Ok((connection, found))
}

/// Whether an error means that the disk is full or not writable.
fn is_no_room(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}

/// Whether an error means that SQLite could not create its files beside the database.
fn is_not_writable(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Opens a file on a medium that does not change.
fn open_unchanging(path: &Path) -> rusqlite::Result<Connection> {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
