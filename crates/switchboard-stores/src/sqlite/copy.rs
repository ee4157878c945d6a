//! Copies a database, for a backup or before a migration. The copy is written to an unfinished file beside its target and
//! renamed when it is complete and on disk, so a file with the target's name is always a complete copy. A copy that was
//! interrupted leaves its unfinished file behind, and the next copy to the same target uses that file.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::error::FileError;
use super::files::{beside, folder_of, open_private, sync_folder};

/// How often opening the unfinished file is repeated because another copy has just renamed it.
const ATTEMPTS_MAX: u32 = 100;
/// How many pages are copied in one step.
const PAGES_PER_STEP: i32 = 1024;

/// An unfinished copy. Its lock keeps other processes from using the file while this exists.
pub(super) struct UnfinishedCopy {
    path: PathBuf,
    file: File,
}

impl UnfinishedCopy {
    /// Begins a copy to `target`, with an empty file.
    pub(super) fn begin(target: &Path) -> Result<Self, FileError> {
        let path = beside(target, ".part");
        for _ in 0..ATTEMPTS_MAX {
            let file = open_private(&path).map_err(|source| FileError::Io { path: path.clone(), source })?;
            if let Some(part) = Self::hold(file, &path)? {
                return Ok(part);
            }
        }
        Err(FileError::Exists { path })
    }

    /// Locks and empties an opened file. Returns none if the file no longer has this name, because another copy has
    /// renamed it since; emptying it would destroy that copy.
    pub(super) fn hold(file: File, path: &Path) -> Result<Option<Self>, FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Exists { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        // Only a process that holds the lock renames or removes the file, so the result of this check stays valid.
        if !is_named(&file, path).map_err(io)? {
            return Ok(None);
        }
        file.set_len(0).map_err(io)?;
        Ok(Some(Self { path: path.to_owned(), file }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the copy, renames it to `target`, and returns its size in bytes.
    pub(super) fn finish(self, target: &Path) -> Result<u64, FileError> {
        let io = |source| FileError::Io { path: target.to_owned(), source };
        if let Err(source) = self.file.sync_all().and_then(|()| std::fs::rename(&self.path, target)) {
            self.discard();
            return Err(io(source));
        }
        sync_folder(folder_of(target)).map_err(io)?;
        Ok(self.file.metadata().map_err(io)?.len())
    }

    /// Removes the unfinished file.
    pub(super) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether an open file is the one that this path names now.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let held = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// On other systems another process cannot rename an open file.
#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// Copies a database into an empty file. Nothing is durable until the file is synced.
pub(super) fn copy_pages(source: &Connection, to: &Path) -> Result<(), FileError> {
    let sql = |source| FileError::Sqlite { path: to.to_owned(), source };
    let mut copy = Connection::open(to).map_err(sql)?;
    // An interrupted copy is discarded, so it needs no journal, and it is synced only once, at the end.
    copy.execute_batch("PRAGMA synchronous = off; PRAGMA journal_mode = off").map_err(sql)?;
    let pages = Backup::new(source, &mut copy).map_err(sql)?;
    pages.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None).map_err(sql)?;
    drop(pages);
    // The copy must stay one file: without this, even a reader would create a write-ahead log beside it.
    copy.execute_batch("PRAGMA journal_mode = delete").map_err(sql)?;
    copy.close().map_err(|(_, source)| sql(source))
}
