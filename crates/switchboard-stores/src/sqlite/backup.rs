//! A copy of a database, taken while a server writes it or while none does. It is one state of the file: the source is
//! read in one transaction, which holds up nobody; only the write-ahead log grows until the copy is done. The copy gets
//! its name when it is whole and on disk, so a file of that name is a good one.

use std::fs::TryLockError;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;

use super::FileError;
use super::files::{beside, folder_of, open_private, sync_folder};
use super::open::open_to_read;
use super::pages::copy_pages;

/// Copies a database to a file that does not exist yet, readable by its owner alone, and says how many bytes it has.
///
/// # Errors
/// When there is no database, the target exists, or one cannot be read or the other written. Nothing is left behind then.
pub fn backup(database: &Path, to: &Path) -> Result<u64, FileError> {
    let (source, _) = open_to_read(database)?;
    refuse_existing(to)?;
    let folder = folder_of(to);
    std::fs::metadata(folder).map_err(|source| FileError::Io { path: folder.to_owned(), source })?;
    let part = beside(to, ".part");
    let io = |source| FileError::Io { path: part.clone(), source };
    // A part that nobody holds was left by a backup that was cut off.
    let file = open_private(&part).map_err(io)?;
    match file.try_lock() {
        Ok(()) => file.set_len(0).map_err(io)?,
        Err(TryLockError::WouldBlock) => return Err(FileError::Exists { path: part }),
        Err(TryLockError::Error(source)) => return Err(io(source)),
    }
    let copied = copy_in_one_state(&source, database, &part).and_then(|()| {
        refuse_existing(to)?;
        std::fs::rename(&part, to).and_then(|()| sync_folder(folder_of(to))).map_err(io)?;
        Ok(file.metadata().map_err(io)?.len())
    });
    if copied.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    copied
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
    // The first read is what fixes the state; without it every commit meanwhile would start the copy over again.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").map_err(sql)?;
    copy_pages(source, to)?;
    source.execute_batch("COMMIT").map_err(sql)
}
