//! What can go wrong: when the file is opened, for people to read; and afterwards, for the engine to act on.

use std::fmt;
use std::path::PathBuf;

use rusqlite::ErrorCode;
use switchboard_engine::ports::store::StoreError;

/// Why a file cannot be used.
#[derive(Debug)]
pub enum FileError {
    /// Another process has it; its pid, if it left one.
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
    /// A SQLite file, but not one of ours.
    NotOurs {
        path: PathBuf,
    },
    /// It is to be read, and is not there.
    Missing {
        path: PathBuf,
    },
    /// It is to be made, and is there already.
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
    /// Open, but then something in it could not be read or written.
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
            Self::Exists { path } => write!(f, "{} exists already, and nothing is overwritten", path.display()),
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Sqlite { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Store { path, failure: StoreError::Unavailable(text) | StoreError::Corrupt(text) } => {
                write!(f, "{}: {text}", path.display())
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
            Self::Io { source, .. } => Some(source),
            Self::Sqlite { source, .. } => Some(source),
            Self::InUse { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::NotOurs { .. }
            | Self::Missing { .. }
            | Self::Exists { .. }
            | Self::Store { .. } => None,
        }
    }
}

/// The answer to whoever asks a store that is being closed.
pub(super) fn stopped() -> StoreError {
    StoreError::Unavailable("the store has stopped".to_owned())
}

/// Why work on an open file failed. A wrapper, so that `?` takes what SQLite says.
#[derive(Debug, Clone)]
pub(super) struct Failure(pub(super) StoreError);

impl Failure {
    /// Says of damage which task has it.
    pub(super) fn of_task(self, id: &str) -> Self {
        match self.0 {
            StoreError::Corrupt(text) => Self(StoreError::Corrupt(format!("task {id}: {text}"))),
            other @ (StoreError::Unavailable(_) | StoreError::Pruned) => Self(other),
        }
    }
}

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
