//! Backs up a database, whether a server is using it or not. The copy is one state of the file: the source is read in
//! one transaction, which blocks no reader or writer, but the write-ahead log grows until the copy is done.

use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use crate::sqlite::copy::{UnfinishedCopy, copy_pages};
use crate::sqlite::error::FileError;
use crate::sqlite::files::folder_of;
use crate::sqlite::open::open_to_read;

/// Copies a database to a file that does not exist yet, readable by its owner alone, and returns its size in bytes.
///
/// # Errors
/// When there is no database, the target exists, or one cannot be read or the other written. Nothing is left behind then.
pub fn backup(database: &Path, to: &Path) -> Result<u64, FileError> {
    let (source, _) = open_to_read(database)?;
    refuse_existing(to)?;
    let folder = folder_of(to);
    std::fs::metadata(folder).map_err(|source| FileError::Io { path: folder.to_owned(), source })?;
    let part = UnfinishedCopy::begin(to)?;
    // Another backup may have finished under this name since the check above. It is complete, so it stays.
    let copied = refuse_existing(to)
        .and_then(|()| copy_in_one_state(&source, database, part.path()))
        .and_then(|()| refuse_existing(to));
    match copied {
        Ok(()) => part.finish(to),
        Err(error) => {
            part.discard();
            Err(error)
        }
    }
}

fn refuse_existing(to: &Path) -> Result<(), FileError> {
    match std::fs::symlink_metadata(to) {
        Ok(_) => Err(FileError::Exists { path: to.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(FileError::Io { path: to.to_owned(), source }),
    }
}

fn copy_in_one_state(source: &Connection, database: &Path, to: &Path) -> Result<(), FileError> {
    let sql = |source| FileError::Sqlite { path: database.to_owned(), source };
    // The first read fixes the state of the transaction. Without it, every commit meanwhile would restart the copy.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(sql)?;
    copy_pages(source, to)?;
    source.execute_batch("COMMIT").map_err(sql)
}
