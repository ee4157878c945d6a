//! The mark of a file that is moved to another database, or that another database is moved into. No server opens such a file.
//!
//! The mark is a table of its own with one text, which exists only while it is needed.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use super::error::FileError;
use crate::moving_state::MoveState;

/// The table of the mark.
pub(super) const MOVE_TABLE: &str = "db_move";

/// The mark of a file, if it has one.
pub(super) fn read_move(connection: &Connection) -> rusqlite::Result<Option<MoveState>> {
    let exists = "SELECT 1 FROM sqlite_schema WHERE name = ?1";
    if connection.query_row(exists, [MOVE_TABLE], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    let text: Option<String> = connection.query_row("SELECT state FROM db_move", [], |row| row.get(0)).optional()?;
    Ok(text.map(|text| MoveState::parse(&text)))
}

/// Refuses a file that has been moved, or is being moved.
pub(super) fn check_not_moved(connection: &Connection, path: &Path) -> Result<(), FileError> {
    let found = read_move(connection).map_err(|source| FileError::Sqlite { path: path.to_owned(), source })?;
    match found {
        Some(state) => Err(FileError::Moved { path: path.to_owned(), why: state.refusal() }),
        None => Ok(()),
    }
}
