//! Migrates a file to the newest schema. A file that contains data is copied first, under a name with its old version.
//! A file of a newer build, or of another application, is refused and not changed.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, TransactionBehavior};
use tracing::info;

use super::copy::{UnfinishedCopy, copy_pages};
use super::error::FileError;
use super::files::migration_copy_path;
use super::schema::{APPLICATION_ID, Migration};

/// Migrates, and returns the path of the copy if one was made.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<Option<PathBuf>, FileError> {
    let sql = |source| FileError::Sqlite { path: path.to_owned(), source };
    let known = migrations.len();
    let found = schema_version(connection, path, known)?.unwrap_or(0);
    if found == known {
        return Ok(None);
    }
    let copy = if found > 0 { Some(copy_before_migration(connection, path, found)?) } else { None };
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    for migration in &migrations[found..] {
        transaction.execute_batch(migration.sql).map_err(sql)?;
        if let Some(fill) = migration.fill {
            fill(&transaction).map_err(|failure| FileError::Store { path: path.to_owned(), failure: failure.0 })?;
        }
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    transaction.pragma_update(None, "user_version", known).map_err(sql)?;
    transaction.commit().map_err(sql)?;
    if let Some(copy) = &copy {
        info!(path = %path.display(), copy = %copy.display(), from = found, to = known, "database migrated");
    }
    Ok(copy)
}

/// The schema version of a file; none if it is empty. Files of another application or a newer build are refused.
pub(super) fn schema_version(connection: &Connection, path: &Path, known: usize) -> Result<Option<usize>, FileError> {
    let sql = |source| FileError::Sqlite { path: path.to_owned(), source };
    let found: usize = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sql)?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sql)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(FileError::NotOurs { path: path.to_owned() });
    }
    if found > known {
        return Err(FileError::Newer { path: path.to_owned(), found, known });
    }
    Ok((tables > 0).then_some(found))
}

/// Copies the file durably. If an earlier attempt was interrupted after its copy, the same copy is made again.
fn copy_before_migration(connection: &Connection, path: &Path, version: usize) -> Result<PathBuf, FileError> {
    let copy = migration_copy_path(path, version);
    let part = UnfinishedCopy::begin(&copy)?;
    match copy_pages(connection, part.path()) {
        Ok(()) => part.finish(&copy)?,
        Err(error) => {
            part.discard();
            return Err(error);
        }
    };
    Ok(copy)
}
