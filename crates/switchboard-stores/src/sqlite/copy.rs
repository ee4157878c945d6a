//! Copies a database, for a backup or before a migration. The copy is written to an unfinished file beside its target and
//! renamed when it is complete and on disk, so a file with the target's name is always a complete copy. A copy that was
//! interrupted leaves its unfinished file behind, and the next copy to the same target uses that file.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::FileError;
use super::files::{beside, folder_of, open_private, sync_folder};

/// How often the file is opened anew because another copy has just been finished with it.
const ATTEMPTS_MAX: u32 = 100;
/// Pages copied between two looks at whether the file is still there to be read.
const PAGES_PER_STEP: i32 = 1024;

/// The unfinished copy, which nobody else works on while this lives.
pub(super) struct UnfinishedCopy {
    path: PathBuf,
    file: File,
}

impl UnfinishedCopy {
    /// Begins a copy for a place, with an empty file.
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

    /// Takes an opened file, unless it is no longer the one of that name: another copy was finished with it since it was
    /// opened, and emptying it would empty that copy.
    pub(super) fn hold(file: File, path: &Path) -> Result<Option<Self>, FileError> {
        let io = |source| FileError::Io { path: path.to_owned(), source };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileError::Exists { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        // Only a process that holds the lock renames or removes the file, so what is seen here stays so.
        if !is_named(&file, path).map_err(io)? {
            return Ok(None);
        }
        file.set_len(0).map_err(io)?;
        Ok(Some(Self { path: path.to_owned(), file }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the copy its name, durably, and says how many bytes it has.
    pub(super) fn finish(self, target: &Path) -> Result<u64, FileError> {
        let io = |source| FileError::Io { path: target.to_owned(), source };
        if let Err(source) = self.file.sync_all().and_then(|()| std::fs::rename(&self.path, target)) {
            self.discard();
            return Err(io(source));
        }
        sync_folder(folder_of(target)).map_err(io)?;
        Ok(self.file.metadata().map_err(io)?.len())
    }

    /// Leaves nothing behind.
    pub(super) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a file is the one that a name stands for now.
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

/// Elsewhere a file that is open cannot be renamed by another process.
#[cfg(not(unix))]
fn is_named(_: &File, _: &Path) -> std::io::Result<bool> {
    Ok(true)
}

/// Copies a database into an empty file. Nothing is durable until the file is synced.
pub(super) fn copy_pages(source: &Connection, to: &Path) -> Result<(), FileError> {
    let sql = |source| FileError::Sqlite { path: to.to_owned(), source };
    let mut copy = Connection::open(to).map_err(sql)?;
    // A copy that was cut off is thrown away, so nothing is done to undo it, and it is made durable once, at its end.
    copy.execute_batch("PRAGMA synchronous = off; PRAGMA journal_mode = off").map_err(sql)?;
    let pages = Backup::new(source, &mut copy).map_err(sql)?;
    pages.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None).map_err(sql)?;
    drop(pages);
    // One file, whoever opens it: without this, even reading it would put a write-ahead log beside it.
    copy.execute_batch("PRAGMA journal_mode = delete").map_err(sql)?;
    copy.close().map_err(|(_, source)| sql(source))
}
