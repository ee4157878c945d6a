//! A file as one side of a move to another database: its rows in the form that both stores have in common, read and written in pages. The
//! file is locked for as long as this exists.

mod reading;
mod writing;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::system::ClockRecord;

use super::error::{Failure, FileError};
use super::ledger::{Ledger, LedgerShares};
use super::lock::FileLock;
use super::meta::write_meta;
use super::moved::{MOVE_TABLE, read_move};
use super::offline::audit_file::write_one;
use super::offline::reseal::seal_plain;
use super::open::{Opened, SqliteOptions, open_to_move};
use super::push_rows::file_under_owners;
use super::secrets::{SECRETS_SEALED, SecretKeySource, Secrets, secret_key_file};
use super::verify::verify_with_keys;
use super::wall_clock;
use crate::checked::{Checked, Fault};
use crate::moving_rows::{Cursor, Row, Stage};
use crate::moving_state::{MoveRole, MoveState};
use crate::secret_keys::SecretKeys;

/// A file that is moved.
pub(crate) struct FileSide {
    path: PathBuf,
    // Closed before the lock is released.
    connection: Connection,
    epoch: i64,
    clock: Arc<dyn Clock>,
    _lock: FileLock,
}

impl FileSide {
    /// Opens a file that exists and brings it into the form in which it can be read: no commit waits to be filed.
    pub(crate) fn source(path: &Path, keys: &SecretKeySource, clock: Arc<dyn Clock>) -> Result<Self, FileError> {
        if !path.exists() {
            return Err(FileError::Missing { path: path.to_owned() });
        }
        let side = Self::open(path, clock)?;
        let prepare = || -> Result<(), Failure> {
            seal_plain(&side.connection, &secrets(&side.path, keys)?)?;
            let shares = LedgerShares::offline();
            let mut ledger = Ledger::new(&side.connection, side.clock.clone(), shares, side.epoch)?;
            ledger.empty_recent()?;
            let left: i64 = side.connection.query_row("SELECT count(*) FROM recent", [], |row| row.get(0))?;
            if left > 0 {
                return Err(super::rows::mismatch("the newest chunk of a running task"));
            }
            Ok(())
        };
        prepare().map_err(|failure| side.failed(failure))?;
        Ok(side)
    }

    /// Opens a file that rows are moved into, and makes it if there is none.
    pub(crate) fn target(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, FileError> {
        Self::open(path, clock)
    }

    fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, FileError> {
        let Opened { lock, path, writer, readers, epoch, .. } =
            open_to_move(path, &SqliteOptions::default(), clock.now())?;
        drop(readers);
        Ok(Self { path, connection: writer, epoch, clock, _lock: lock })
    }

    fn failed(&self, failure: Failure) -> FileError {
        FileError::Store { path: self.path.clone(), failure: failure.0 }
    }

    pub(crate) fn describe(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn state(&self) -> Result<Option<MoveState>, FileError> {
        read_move(&self.connection).map_err(|error| self.failed(error.into()))
    }

    /// Marks the file, or removes its mark.
    pub(crate) fn set_state(&self, state: Option<&MoveState>) -> Result<(), FileError> {
        let write = || -> Result<(), Failure> {
            let transaction = self.connection.unchecked_transaction()?;
            match state {
                Some(state) => {
                    write_state(&transaction, state)?;
                    if state.role == MoveRole::Target {
                        // Secrets come encrypted.
                        write_meta(&transaction, SECRETS_SEALED, 1)?;
                    }
                }
                None => transaction.execute_batch(&format!("DROP TABLE IF EXISTS {MOVE_TABLE}"))?,
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|failure| self.failed(failure))
    }

    pub(crate) fn is_empty(&self) -> Result<bool, FileError> {
        let tables = ["scope", "task", "log", "chunk", "push", "accepted", "call", "audit_chain", "audit"];
        let any = tables.map(|table| format!("EXISTS (SELECT 1 FROM {table})")).join(" OR ");
        let found = self.connection.query_row(&format!("SELECT {any}"), [], |row| row.get::<_, bool>(0));
        found.map(|found| !found).map_err(|error| self.failed(error.into()))
    }

    /// Rows of a table after one, in the order in which they are moved; none if there are no more.
    pub(crate) fn read(&self, stage: Stage, after: &Cursor) -> Result<Vec<Row>, FileError> {
        reading::page(&self.connection, stage, after).map_err(|failure| self.failed(failure))
    }

    /// Writes rows and how far the move has come, all or nothing.
    pub(crate) fn write(&self, rows: &[Row], state: &MoveState) -> Result<(), FileError> {
        let write = || -> Result<(), Failure> {
            let transaction = self.connection.unchecked_transaction()?;
            writing::page(&transaction, rows)?;
            write_state(&transaction, state)?;
            Ok(transaction.commit()?)
        };
        write().map_err(|failure| self.failed(failure))
    }

    pub(crate) fn record(&self, entry: AuditEntry) -> Result<(), FileError> {
        write_one(&self.connection, self.clock.clone(), self.epoch, entry).map_err(|failure| self.failed(failure))
    }

    pub(crate) fn clock(&self) -> Result<ClockRecord, FileError> {
        wall_clock::read(&self.connection).map_err(|error| self.failed(error.into()))
    }

    /// What is left to do after all rows were moved.
    pub(crate) fn settle(&self, clock: ClockRecord) -> Result<(), FileError> {
        let settle = || -> Result<(), Failure> {
            let transaction = self.connection.unchecked_transaction()?;
            file_under_owners(&transaction)?;
            if let Some(seen) = clock.last_seen {
                wall_clock::write_seen(&transaction, seen)?;
            }
            if let Some(until) = clock.held_until {
                wall_clock::write_held_until(&transaction, until)?;
            }
            transaction.commit()?;
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).optional()?;
            Ok(())
        };
        settle().map_err(|failure| self.failed(failure))
    }

    pub(crate) fn verify(&self, keys: Option<&SecretKeys>, tell: &mut dyn FnMut(Fault)) -> Result<Checked, FileError> {
        verify_with_keys(&self.path, keys, self.clock.now(), tell)
    }
}

/// Removes the mark of a file; false if it has none.
///
/// # Errors
/// When there is no such file, a process has it open, or it cannot be written.
pub fn reopen(path: &Path, now: Timestamp) -> Result<bool, FileError> {
    if !path.exists() {
        return Err(FileError::Missing { path: path.to_owned() });
    }
    let Opened { lock, path, writer, readers, .. } = open_to_move(path, &SqliteOptions::default(), now)?;
    drop(readers);
    let sql = |source| FileError::Sqlite { path: path.clone(), source };
    let found = read_move(&writer).map_err(sql)?;
    if let Some(state) = &found {
        if state.role == MoveRole::Target {
            return Err(FileError::Moved { path, why: state.refusal() });
        }
        writer.execute_batch(&format!("DROP TABLE {MOVE_TABLE}")).map_err(sql)?;
    }
    writer.close().map_err(|(_, source)| sql(source))?;
    drop(lock);
    Ok(found.is_some())
}

/// The keys of a file: those that are given, or those beside it, if there are any.
pub(crate) fn keys_of(path: &Path, source: &SecretKeySource) -> Result<Option<SecretKeys>, FileError> {
    match source {
        SecretKeySource::Keys(keys) => Ok(Some(keys.clone())),
        SecretKeySource::Beside => SecretKeys::read(&secret_key_file(path))
            .map_err(|error| FileError::SecretKeys { path: path.to_owned(), why: error.to_string() }),
        SecretKeySource::Untouched => Ok(None),
    }
}

fn secrets(path: &Path, keys: &SecretKeySource) -> Result<Secrets, Failure> {
    use switchboard_engine::ports::store::StoreError;
    Secrets::of(path, keys).map_err(|error| Failure(StoreError::Unavailable(error.to_string())))
}

fn write_state(connection: &Connection, state: &MoveState) -> Result<(), Failure> {
    use switchboard_engine::ports::store::StoreError;
    let text = serde_json::to_string(state).map_err(|error| StoreError::Unavailable(error.to_string()))?;
    connection.execute_batch(&format!("CREATE TABLE IF NOT EXISTS {MOVE_TABLE} (state TEXT NOT NULL) STRICT"))?;
    connection.execute("DELETE FROM db_move", [])?;
    connection.execute("INSERT INTO db_move (state) VALUES (?1)", [text])?;
    Ok(())
}
