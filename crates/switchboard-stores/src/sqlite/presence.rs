//! Checks that the database files exist. Before opening: a file that is missing or empty, although it contained data
//! before, is not replaced by an empty one. While open: a server whose files were deleted would continue and lose
//! everything when it ends.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::FileError;
use super::files::{beside, files, folder_of};
use super::lock::LockNote;

/// The path of a database with its links resolved, so that one database has one name.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, FileError> {
    let io = |source| FileError::Io { path: path.to_owned(), source };
    match std::fs::canonicalize(path) {
        Ok(resolved) => Ok(resolved),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Ok(target) = std::fs::read_link(path) {
                return Err(FileError::BrokenLink { path: path.to_owned(), target });
            }
            let folder = std::fs::canonicalize(folder_of(path)).map_err(io)?;
            Ok(folder.join(path.file_name().unwrap_or_default()))
        }
        Err(error) => Err(io(error)),
    }
}

/// Refuses a database whose data is missing. `note` is the lock file's content from the previous process.
pub(super) fn check_not_lost(database: &Path, note: LockNote) -> Result<(), FileError> {
    let bytes = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    if bytes(database) > 0 {
        return Ok(());
    }
    let path = database.to_owned();
    let wal = beside(database, "-wal");
    if bytes(&wal) > 0 {
        return Err(FileError::Lost { path, left: wal });
    }
    let is_there = database.exists();
    let copy = files(database)?.into_iter().find(|file| file != database && bytes(file) > 0 && is_copy(file));
    match (is_there, copy) {
        (true, Some(left)) => Err(FileError::Lost { path, left }),
        (true, None) if note.had_data => Err(FileError::Emptied { path }),
        (true, None) => Ok(()),
        (false, _) => {
            if note.had_data {
                tracing::warn!(
                    path = %path.display(),
                    "the database is gone, and an empty one takes its place; if that is not what you want, stop the \
                     server and put the database, or a backup of it, there"
                );
            }
            Ok(())
        }
    }
}

fn is_copy(file: &Path) -> bool {
    file.as_os_str().as_encoded_bytes().ends_with(b"-backup")
}

/// The files of an open database, as they were when it was opened.
pub(super) struct Presence {
    files: Vec<(PathBuf, Option<FileId>)>,
    is_missing: bool,
}

type FileId = (u64, u64);

impl Presence {
    pub(super) fn of(database: &Path) -> Self {
        let files = [database.to_owned(), beside(database, "-wal")];
        Self { files: files.into_iter().map(|file| (file.clone(), id_of(&file))).collect(), is_missing: false }
    }

    /// Whether the paths still name the open files. Each change is logged with its path.
    pub(super) fn files_exist(&mut self) -> bool {
        // A file that did not exist at first may be created later.
        let changed = self.files.iter().find(|(path, id)| id.is_some() && id_of(path) != *id);
        match changed {
            Some((path, _)) if !self.is_missing => tracing::error!(
                path = %path.display(),
                "a file of the database was deleted or replaced while the server has it open; nothing is committed until \
                 it is back. Put it back, or stop the server and restore a backup"
            ),
            None if self.is_missing => tracing::info!("the files of the database are back"),
            Some(_) | None => {}
        }
        self.is_missing = changed.is_some();
        !self.is_missing
    }
}

#[cfg(unix)]
fn id_of(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn id_of(path: &Path) -> Option<FileId> {
    std::fs::metadata(path).ok().map(|_| (0, 0))
}
