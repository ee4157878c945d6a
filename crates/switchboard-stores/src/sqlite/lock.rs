//! One process per file, held by an advisory lock on a file beside it. The lock goes with the process, however it
//! ends; the pid inside is only there to be told.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::FileError;
use super::files::{lock_path, open_private};

/// Holds the file until it is dropped.
pub(super) struct FileLock {
    file: File,
}

impl FileLock {
    pub(super) fn take(database: &Path) -> Result<Self, FileError> {
        let path = lock_path(database);
        let io = |source| FileError::Io { path: path.clone(), source };
        let mut file = open_private(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                let pid = read.ok().and_then(|_| text.trim().parse().ok());
                return Err(FileError::InUse { path: database.to_owned(), pid });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(io)?;
        Ok(Self { file })
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file is not enough while a command is being started: between fork and exec it has the file, too.
        let _ = self.file.unlock();
    }
}
