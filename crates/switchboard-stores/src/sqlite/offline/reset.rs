//! Deletes a database that no process uses.

use std::path::{Path, PathBuf};

use crate::sqlite::error::FileError;
use crate::sqlite::files::files;
use crate::sqlite::lock::FileLock;
use crate::sqlite::presence::resolve;

/// Deletes a database and all its files, and returns their paths. The lock file stays, because a process that waits for
/// it must find the same file.
///
/// # Errors
/// While a process has the database open, or when a file cannot be deleted.
pub fn reset(database: &Path) -> Result<Vec<PathBuf>, FileError> {
    if files(database)?.is_empty() {
        return Ok(Vec::new());
    }
    let database = &*resolve(database)?;
    let mut lock = FileLock::take(database)?;
    let files = files(database)?;
    for path in &files {
        std::fs::remove_file(path).map_err(|source| FileError::Io { path: path.clone(), source })?;
    }
    lock.forget_data();
    Ok(files)
}
