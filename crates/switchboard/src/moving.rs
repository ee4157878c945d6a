//! Moves everything from one database into another, empty one: a file, or a schema in PostgreSQL. This is what `switchboard db move` does, for
//! programs that bring their own server.
//!
//! ```no_run
//! use switchboard::moving::{Place, Wish, move_database};
//! use switchboard::{PostgresOptions, SecretKeySource};
//!
//! let wish = Wish {
//!     from: Place::File("data/tasks.db".into()),
//!     to: Place::Postgres(PostgresOptions::new("postgres://switchboard@db.example/switchboard")),
//!     keys: SecretKeySource::Beside,
//!     without_secrets: false,
//!     who: "uid 1000".to_owned(),
//! };
//! let moved = move_database(wish, &mut |line| eprintln!("{line}"))?;
//! println!("{} tasks", moved.checked.tasks);
//! # Ok::<(), switchboard::moving::MoveError>(())
//! ```
//!
//! These functions wait for the disk and the server: from async code, call them on a thread that may.

use std::sync::Arc;

use switchboard_engine::ports::Clock as _;
use switchboard_engine::system::SystemClock;
use switchboard_stores::moving::Move;
use switchboard_stores::{postgres, sqlite};

use crate::SecretKeySource;
use crate::offline_entry::offline_entry;

pub use switchboard_stores::moving::{MoveError, Moved, Place};

/// What is to be moved, and how.
#[derive(Debug)]
pub struct Wish {
    /// What is moved.
    pub from: Place,
    /// Where it is moved to; nothing may be there yet.
    pub to: Place,
    /// The keys of the secrets of webhooks, which servers of the target must have, too. With [`SecretKeySource::Beside`] they are beside the
    /// file that is moved.
    pub keys: SecretKeySource,
    /// Whether webhooks are moved whose secrets the keys cannot read.
    pub without_secrets: bool,
    /// Who does it, as the audit log names them.
    pub who: String,
}

/// Moves a database that no server uses, or goes on with a move that was interrupted. `tell` gets a line about each step. No server opens
/// the source afterwards, unless it is [reopened](reopen).
///
/// # Errors
/// When a server uses one of the two, the target holds something else, rows are damaged, or a database cannot be reached, read or written.
/// What was moved until then stays, and the same call goes on with it.
pub fn move_database(wish: Wish, tell: &mut dyn FnMut(&str)) -> Result<Moved, MoveError> {
    let Wish { from, to, keys, without_secrets, who } = wish;
    let entry = offline_entry(&who, "db move", &format!("to {to}"));
    let wanted = Move { from, to, keys, without_secrets, entry, clock: Arc::new(SystemClock) };
    switchboard_stores::moving::move_database(&wanted, tell)
}

/// Lets servers open a database again that was moved away, or is being moved away; false if it is not. What the target has got since then is
/// not in it.
///
/// # Errors
/// When the database cannot be reached or changed, or is not the source of a move.
pub fn reopen(place: &Place) -> Result<bool, MoveError> {
    match place {
        Place::File(path) => Ok(sqlite::reopen(path, SystemClock.now())?),
        Place::Postgres(options) => Ok(postgres::reopen(options)?),
    }
}
