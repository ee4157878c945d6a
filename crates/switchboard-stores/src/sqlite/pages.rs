//! A database copied page by page, for a backup or before a migration.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::FileError;

/// Pages copied between two looks at whether the file is still there to be read.
const PAGES_PER_STEP: i32 = 1024;

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
