//! Errors: those of opening a file, for people to read, and those of an open store, for the engine to act on.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use switchboard_engine::ports::store::StoreError;

/// Why a file cannot be used.
#[derive(Debug)]
pub enum FileError {
    /// Another process has the file open; its pid, if it is known.
    InUse {
        path: PathBuf,
        pid: Option<u32>,
    },
    /// Written by a newer build.
    Newer {
        path: PathBuf,
        found: usize,
        known: usize,
    },
    /// Written by an older build and not opened by this one yet.
    Older {
        path: PathBuf,
        found: usize,
        known: usize,
    },
    /// A SQLite file of another application.
    NotOurs {
        path: PathBuf,
    },
    /// The file should be read, but does not exist.
    Missing {
        path: PathBuf,
    },
    /// The file is missing or empty, but this file of the same database is left.
    Lost {
        path: PathBuf,
        left: PathBuf,
    },
    /// The file is empty, but was not when a process last had it open.
    Emptied {
        path: PathBuf,
    },
    /// The path is a link to a file that does not exist.
    BrokenLink {
        path: PathBuf,
        target: PathBuf,
    },
    /// The location is not writable, and a server has to write.
    NotWritable {
        path: PathBuf,
        source: std::io::Error,
    },
    /// The folder is not writable, and the write-ahead log must be applied before the file can be read.
    Unmerged {
        path: PathBuf,
        wal: PathBuf,
    },
    /// The file should be created, but exists already.
    Exists {
        path: PathBuf,
    },
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    Sqlite {
        path: PathBuf,
        source: rusqlite::Error,
    },
    /// Its tasks were moved to another database, or are being moved.
    Moved {
        path: PathBuf,
        why: String,
    },
    /// The keys of the secrets in the file cannot be used.
    SecretKeys {
        path: PathBuf,
        why: String,
    },
    /// The file is open, but something in it could not be read or written.
    Store {
        path: PathBuf,
        failure: StoreError,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { path, pid: Some(pid) } => {
                write!(f, "{} is in use by process {pid}; one process at a time may open it", path.display())
            }
            Self::InUse { path, pid: None } => {
                write!(f, "{} is in use by another process; one process at a time may open it", path.display())
            }
            Self::Newer { path, found, known } => write!(
                f,
                "{} has schema version {found}, and this build knows versions up to {known}: use a newer build",
                path.display()
            ),
            Self::Older { path, found, known } => write!(
                f,
                "{} has schema version {found}, and this build needs version {known}: serve it once to migrate it",
                path.display()
            ),
            Self::NotOurs { path } => {
                write!(f, "{} is a SQLite database, but not one of Switchboard's", path.display())
            }
            Self::Missing { path } => write!(f, "{} does not exist", path.display()),
            Self::Lost { path, left } => write!(
                f,
                "{} is missing or empty, but {} is there: the tasks of an earlier server would be lost. Put the database \
                 back (or restore a backup), together with the files beside it; or begin anew with `switchboard db reset`",
                path.display(),
                left.display()
            ),
            Self::Emptied { path } => write!(
                f,
                "{} is empty (0 bytes), and was not when a server last had it open. Put the database back, or restore a \
                 backup; or begin anew with `switchboard db reset`",
                path.display()
            ),
            Self::BrokenLink { path, target } => write!(
                f,
                "{} is a link to {}, which does not exist. Put the database there (is its disk mounted?), or remove the \
                 link",
                path.display(),
                target.display()
            ),
            Self::NotWritable { path, source } => write!(
                f,
                "{} cannot be written ({source}). A server has to write to its data folder: mount it for writing, give \
                 it to this user, or copy the database into a folder that can be written and name that with --data. \
                 `switchboard db verify` and `switchboard db backup` read it where it is",
                path.display()
            ),
            Self::Unmerged { path, wal } => write!(
                f,
                "{} cannot be read here: its folder cannot be written, and {} holds commits that were not moved into the \
                 database. Copy both files into a folder that can be written, and work there",
                path.display(),
                wal.display()
            ),
            Self::Exists { path } => write!(f, "{} exists already, and nothing is overwritten", path.display()),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Sqlite { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Store {
                path,
                failure: StoreError::Unavailable(text) | StoreError::Corrupt(text) | StoreError::Damaged(text),
            } => {
                write!(f, "{}: {text}", path.display())
            }
            Self::Moved { path, why } => write!(f, "{}: {why}", path.display()),
            Self::SecretKeys { path, why } => {
                write!(f, "{} has secrets of webhooks whose keys cannot be used: {why}", path.display())
            }
            Self::Store { path, failure: StoreError::Pruned } => {
                write!(f, "{}: what was looked for is no longer kept", path.display())
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::NotWritable { source, .. } => Some(source),
            Self::Sqlite { source, .. } => Some(source),
            Self::InUse { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::NotOurs { .. }
            | Self::Missing { .. }
            | Self::Lost { .. }
            | Self::Emptied { .. }
            | Self::BrokenLink { .. }
            | Self::Unmerged { .. }
            | Self::Exists { .. }
            | Self::Moved { .. }
            | Self::SecretKeys { .. }
            | Self::Store { .. } => None,
        }
    }
}

impl FileError {
    /// Why a file or folder could not be opened for writing.
    pub(super) fn of_writing(path: PathBuf, source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => Self::NotWritable { path, source },
            _ => Self::Io { path, source },
        }
    }
}

/// The error for calls to a store that is being closed.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".to_owned())
}

/// Why work on an open file failed. It wraps the store's error, so that `?` converts SQLite's errors.
#[derive(Debug, Clone)]
pub(super) struct Failure(pub(super) StoreError);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let corrupt = match &error {
            rusqlite::Error::SqliteFailure(error, _) => {
                matches!(error.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            }
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => true,
            _ => false,
        };
        let text = match &error {
            rusqlite::Error::SqliteFailure(failed, _) => match failed.code {
                ErrorCode::DiskFull => "the disk is full".to_owned(),
                ErrorCode::SystemIoFailure => {
                    format!("the disk reports an error (SQLite's number {})", failed.extended_code)
                }
                _ => error.to_string(),
            },
            _ => error.to_string(),
        };
        Self(if corrupt { StoreError::Corrupt(text) } else { StoreError::Unavailable(text) })
    }
}
