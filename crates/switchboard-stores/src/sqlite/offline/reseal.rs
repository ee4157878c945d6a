//! Encrypts the secrets of a whole file: of one that was written before secrets were encrypted, and of any with another key.

use std::fmt;
use std::path::Path;

use rusqlite::{Connection, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::StoreError;

use crate::secret_keys::SecretKeys;
use crate::sqlite::error::{Failure, FileError};
use crate::sqlite::meta::{read_meta, write_meta};
use crate::sqlite::open::{Opened, SqliteOptions, open};
use crate::sqlite::push_rows::{AFTER_PUSH, PUSH_COLUMNS, push_columns_unchecked};
use crate::sqlite::rows::PushColumns;
use crate::sqlite::secrets::{SECRETS_SEALED, Secrets, open_with, read_keys, seal_with};

/// How many rows are read before they are written.
const ROWS_MAX: i64 = 1_024;

/// What became of the secrets of a file that were encrypted anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resealed {
    /// Webhooks whose secrets are now encrypted with the first key.
    pub webhooks: u64,
    /// Webhooks whose secrets none of the keys can read. They stay as they are.
    pub unread: u64,
}

/// Encrypts every secret of a database that no process has open with the first of these keys.
///
/// # Errors
/// When there is no database, a process has it open, or it cannot be read or written. Nothing is changed then.
pub fn reseal(database: &Path, keys: &SecretKeys, now: Timestamp) -> Result<Resealed, FileError> {
    with_file(database, now, |writer| seal_anew(writer, keys))
}

/// Makes a new key in a file of keys, and encrypts every secret of a database that no process has open with it. Until that is
/// done, both keys are in the file; then the older ones leave it, unless they are all that could read some secret.
///
/// # Errors
/// When there is no database, a process has it open, there is no key yet, or something cannot be read or written. The
/// secrets can be read with the keys in the file at any moment.
pub fn rotate_secret_keys(database: &Path, file: &Path, now: Timestamp) -> Result<Resealed, FileError> {
    let unfit = |why: &dyn fmt::Display| FileError::SecretKeys { path: database.to_owned(), why: why.to_string() };
    let Some(older) = read_keys(database, file)? else {
        return Err(unfit(&format_args!("{} does not exist: there is no key to change yet", file.display())));
    };
    let keys = SecretKeys::generate().map_err(|error| unfit(&error))?.before(&older);
    let resealed = with_file(database, now, |writer| {
        let unwritten = |error| StoreError::Unavailable(format!("{} cannot be written: {error}", file.display()));
        keys.write(file).map_err(unwritten)?;
        seal_anew(writer, &keys)
    })?;
    if resealed.unread == 0 {
        keys.newest().write(file).map_err(|source| FileError::Io { path: file.to_owned(), source })?;
    }
    Ok(resealed)
}

/// Runs something on a file that no other process has open.
fn with_file<T>(
    database: &Path,
    now: Timestamp,
    run: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, FileError> {
    if !database.exists() {
        return Err(FileError::Missing { path: database.to_owned() });
    }
    let Opened { lock, writer, readers, .. } = open(database, &SqliteOptions::default(), now)?;
    drop(readers);
    let done = run(&writer).map_err(|failure| FileError::Store { path: database.to_owned(), failure: failure.0 });
    let closed = writer.close().map_err(|(_, source)| FileError::Sqlite { path: database.to_owned(), source });
    drop(lock);
    done.and_then(|done| closed.map(|()| done))
}

/// Encrypts the secrets of a file that was written before they were. What was written over is wiped.
pub(crate) fn seal_plain(connection: &Connection, secrets: &Secrets) -> Result<(), Failure> {
    if secrets.is_untouched || read_meta(connection, SECRETS_SEALED)? != Some(0) {
        return Ok(());
    }
    connection.pragma_update(None, "secure_delete", "on")?;
    let transaction = connection.unchecked_transaction()?;
    let changed = rewrite(&transaction, |columns| {
        secrets.seal(columns)?;
        Ok(true)
    })?;
    write_meta(&transaction, SECRETS_SEALED, 1)?;
    transaction.commit()?;
    if changed > 0 {
        // The write-ahead log holds pages from before, too.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        tracing::info!(webhooks = changed, "secrets of webhooks encrypted");
    }
    connection.pragma_update(None, "secure_delete", "off")?;
    Ok(())
}

/// Encrypts every secret with the first of the keys.
fn seal_anew(connection: &Connection, keys: &SecretKeys) -> Result<Resealed, Failure> {
    let is_sealed = read_meta(connection, SECRETS_SEALED)? != Some(0);
    connection.pragma_update(None, "secure_delete", "on")?;
    let mut unread = 0;
    let transaction = connection.unchecked_transaction()?;
    let webhooks = rewrite(&transaction, |columns| {
        let before = columns.clone();
        if is_sealed && !open_with(Some(keys), columns) {
            unread += 1;
            *columns = before;
            return Ok(false);
        }
        seal_with(keys, columns)?;
        Ok(true)
    })?;
    write_meta(&transaction, SECRETS_SEALED, 1)?;
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(Resealed { webhooks, unread })
}

/// Changes every webhook that has secrets, and returns how many were changed. Damaged rows are left as they are.
fn rewrite(
    connection: &Connection,
    mut change: impl FnMut(&mut PushColumns) -> Result<bool, Failure>,
) -> Result<u64, Failure> {
    let sql = format!(
        "SELECT {PUSH_COLUMNS} FROM push WHERE push_no > ?1 AND (token IS NOT NULL OR auth_credentials IS NOT NULL)
          ORDER BY push_no LIMIT ?2"
    );
    let mut select = connection.prepare(&sql)?;
    let mut update =
        connection.prepare("UPDATE push SET token = ?2, auth_credentials = ?3, checksum = ?4 WHERE push_no = ?1")?;
    let (mut last, mut changed) = (i64::MIN, 0);
    loop {
        let mut rows = select.query([last, ROWS_MAX])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            last = row.get(0)?;
            if let Ok(columns) = push_columns_unchecked(row)
                && row.get::<_, i64>(AFTER_PUSH - 1)? == columns.checksum()
            {
                found.push(columns);
            }
        }
        drop(rows);
        if found.is_empty() {
            return Ok(changed);
        }
        for mut columns in found {
            if change(&mut columns)? {
                changed += 1;
                let checksum = columns.checksum();
                update.execute(params![columns.push_no, columns.token, columns.auth_credentials, checksum])?;
            }
        }
    }
}
