//! Ensures that only one process uses a file, by two advisory locks. One is on a lock file beside the database, which
//! also names the process. The other, on Linux, is on the database itself, so that a second path (a link) or a removed
//! lock file does not defeat the lock. (On Linux, SQLite uses locks of another kind, which do not conflict with it;
//! elsewhere they would.) The system releases the locks when the process ends.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use super::error::FileError;
use super::files::{lock_path, open_private};

/// How long to wait for a lock whose holder is dead. A child process that the holder was starting also has the lock
/// between fork and exec.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);

/// Holds a database until it is dropped.
pub(super) struct FileLock {
    file: File,
    /// Set as soon as the database exists. It is closed only after SQLite has closed the file, because closing any
    /// handle of a file drops all of SQLite's locks on it.
    database: Option<File>,
    /// What the previous holder has left in the lock file.
    pub(super) note: LockNote,
}

/// The content of a lock file: which process had the database open, and whether the database contained data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LockNote {
    pub(super) pid: Option<u32>,
    pub(super) had_data: bool,
}

const HAD_DATA: &str = "has data";

impl LockNote {
    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let pid = lines.next().and_then(|line| line.trim().parse().ok());
        Self { pid, had_data: lines.any(|line| line == HAD_DATA) }
    }
}

impl FileLock {
    /// Locks the database of this path, whose links are resolved.
    pub(super) fn take(database: &Path) -> Result<Self, FileError> {
        Self::take_within(database, PATIENCE)
    }

    pub(super) fn take_within(database: &Path, patience: Duration) -> Result<Self, FileError> {
        let path = lock_path(database);
        let io = |source| FileError::of_writing(path.clone(), source);
        let mut file = open_private(&path).map_err(io)?;
        wait_for(&file, database, patience, || read_note(&mut &file)).map_err(|error| match error {
            LockError::Held(pid) => FileError::InUse { path: database.to_owned(), pid },
            LockError::Failed(source) => io(source),
        })?;
        let note = read_note(&mut &file);
        // A full disk must not prevent the start: only the lock matters, the text is for people.
        let _ = write_note(&mut file, note.had_data);
        let mut lock = Self { file, database: None, note };
        if database.exists() {
            lock.take_database(database, patience)?;
        }
        Ok(lock)
    }

    /// Locks the database itself, once it exists.
    #[cfg(target_os = "linux")]
    fn take_database(&mut self, database: &Path, patience: Duration) -> Result<(), FileError> {
        let file = File::open(database).map_err(|source| FileError::Io { path: database.to_owned(), source })?;
        let pid = self.note.pid;
        match wait_for(&file, database, patience, || LockNote { pid, had_data: true }) {
            Ok(()) => {}
            Err(LockError::Held(_)) => return Err(FileError::InUse { path: database.to_owned(), pid: None }),
            // The file system has no such locks, so the lock file must suffice.
            Err(LockError::Failed(error)) => tracing::debug!(%error, "the database itself cannot be locked"),
        }
        self.database = Some(file);
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn take_database(&mut self, _: &Path, _: Duration) -> Result<(), FileError> {
        Ok(())
    }

    /// Records that the database contains data, so that the next start reports an error if the data is missing.
    pub(super) fn note_data(&mut self, database: &Path) -> Result<(), FileError> {
        if self.database.is_none() {
            self.take_database(database, PATIENCE)?;
        }
        let _ = write_note(&mut self.file, true);
        Ok(())
    }

    /// Records that the database was removed on purpose.
    pub(super) fn forget_data(&mut self) {
        let _ = write_note(&mut self.file, false);
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the files does not release the locks while a child process is between fork and exec, so they are
        // unlocked explicitly.
        if let Some(database) = &self.database {
            let _ = database.unlock();
        }
        let _ = self.file.unlock();
    }
}

enum LockError {
    /// Another process holds the lock; its pid, if known.
    Held(Option<u32>),
    Failed(std::io::Error),
}

/// Takes a lock, and waits a while if the process that held it is dead.
fn wait_for(file: &File, database: &Path, patience: Duration, note: impl Fn() -> LockNote) -> Result<(), LockError> {
    let mut waited = Duration::ZERO;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(source)) => return Err(LockError::Failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        let pid = note().pid;
        if waited >= patience || pid.is_some_and(is_alive) {
            return Err(LockError::Held(pid));
        }
        if waited.is_zero() {
            tracing::info!(path = %database.display(), pid, "the database is locked by a process that is gone; waiting");
        }
        std::thread::sleep(LOOK);
        waited += LOOK;
    }
}

/// Whether a process exists and has not ended. False where that cannot be determined.
fn is_alive(pid: u32) -> bool {
    if pid == std::process::id() {
        return true;
    }
    // The state follows the name, which is in parentheses and may hold anything.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

fn read_note(file: &mut &File) -> LockNote {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map(|_| LockNote::parse(&text)).unwrap_or_default()
}

/// The new text overwrites the old one before the file is truncated, because that works on a full disk, too.
fn write_note(file: &mut File, had_data: bool) -> std::io::Result<()> {
    let mut text = format!("{}\n", std::process::id());
    if had_data {
        text.push_str(HAD_DATA);
        text.push('\n');
    }
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}
