//! Maintenance of the database file of a durable server: copy it while it is in use, check it, compact it, delete it.
//!
//! This is what `switchboard db` does, for programs that bring their own server. The path is the one given to
//! [`Serve::durable`](crate::Serve::durable) or [`ServerBuilder::sqlite`](crate::ServerBuilder::sqlite).
//!
//! ```no_run
//! use std::path::Path;
//! use switchboard::database;
//!
//! let (file, copy) = (Path::new("data/tasks.db"), Path::new("backups/monday.db"));
//! database::backup(file, copy)?;
//! let checked = database::verify(copy, &mut |fault| eprintln!("{fault}"))?;
//! assert_eq!(checked.faults, 0);
//! # Ok::<(), database::FileError>(())
//! ```
//!
//! These functions wait for the disk: from async code, call them on a thread that may.

use std::path::Path;
use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_engine::limits::Limits;
use switchboard_engine::ports::Clock;
use switchboard_engine::system::SystemClock;

pub use switchboard_stores::sqlite::{
    Assigned, Checked, Compacted, Contents, Fault, FileError, Resealed, backup, files, reset, secret_key_file,
};
use switchboard_stores::sqlite::{SecretKeySource, SecretKeys};

/// Checks a file, its server running or not, and tells each fault as it is found.
///
/// # Errors
/// When the file is missing, is not Switchboard's, or has another schema than this build's. That it is damaged is a
/// fault, not an error.
pub fn verify(database: &Path, tell: &mut dyn FnMut(Fault)) -> Result<Checked, FileError> {
    switchboard_stores::sqlite::verify(database, SystemClock.now(), tell)
}

/// Hands the tasks of one owner over to another, those of one agent or of all, on a file that no process has open. The new owner sees
/// and changes them from then on, and the old one does not find them any more. What repeats of messages are known by, and names that
/// clients of NEXUS chose, stay with the old owner.
///
/// # Errors
/// When there is no such file, a process has it open, or it cannot be read or written; then nothing was handed over.
///
/// ```no_run
/// use std::path::Path;
/// use switchboard::call::Owner;
/// use switchboard::database;
///
/// let alice = Owner { tenant: "acme".into(), principal: "alice".into() };
/// let assigned = database::assign_owner(Path::new("data/tasks.db"), &Owner::default(), &alice, None)?;
/// println!("{} tasks are Alice's now", assigned.tasks);
/// # Ok::<(), database::FileError>(())
/// ```
pub fn assign_owner(database: &Path, from: &Owner, to: &Owner, agent: Option<&str>) -> Result<Assigned, FileError> {
    switchboard_stores::sqlite::assign_owner(database, SystemClock.now(), from, to, agent)
}

/// As [`verify`], for a database whose keys for the secrets of webhooks are not in the file beside it.
///
/// # Errors
/// As [`verify`].
pub fn verify_with_keys(
    database: &Path,
    keys: &SecretKeySource,
    tell: &mut dyn FnMut(Fault),
) -> Result<Checked, FileError> {
    match keys {
        SecretKeySource::Beside => verify(database, tell),
        SecretKeySource::Keys(keys) => {
            switchboard_stores::sqlite::verify_with_keys(database, Some(keys), SystemClock.now(), tell)
        }
        SecretKeySource::Untouched => {
            switchboard_stores::sqlite::verify_with_keys(database, None, SystemClock.now(), tell)
        }
    }
}

/// Encrypts the secrets of webhooks with the first of these keys, on a file that no process has open. All of the keys are
/// tried to read them.
///
/// # Errors
/// When there is no such file, a process has it open, or it cannot be read or written. Nothing is changed then.
pub fn reseal(database: &Path, keys: &SecretKeys) -> Result<Resealed, FileError> {
    switchboard_stores::sqlite::reseal(database, keys, SystemClock.now())
}

/// Makes a new key in a file of keys and encrypts the secrets of webhooks with it, on a database that no process has open.
/// Both keys are in the file until that is done.
///
/// # Errors
/// When there is no such database or no key yet, a process has the database open, or something cannot be read or written.
/// The keys in the file can read every secret at any moment.
pub fn rotate_secret_keys(database: &Path, file: &Path) -> Result<Resealed, FileError> {
    switchboard_stores::sqlite::rotate_secret_keys(database, file, SystemClock.now())
}

/// Removes what `limits` no longer keep and gives the space back, on a file that no process has open.
///
/// # Errors
/// When there is no such file, a process has it open, or it cannot be read or written. Nothing that is kept is lost.
pub fn compact(database: &Path, limits: &Limits) -> Result<Compacted, FileError> {
    let clock = Arc::new(SystemClock);
    let retention = limits.retention(clock.now());
    switchboard_stores::sqlite::compact(database, clock, &retention)
}
