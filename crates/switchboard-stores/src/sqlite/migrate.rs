//! Brings a file to the newest schema. A file that holds anything is copied first, under the name of the version it
//! had; a file from a newer build, or somebody else's, is refused untouched.

use std::path::{Path, PathBuf};

use rusqlite::backup::Backup;
use rusqlite::{Connection, TransactionBehavior};
use tracing::info;

use super::OpenError;
use super::lock::open_private;
use super::schema::APPLICATION_ID;

/// Migrates, and gives the path of the copy if one was taken.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[&str],
) -> Result<Option<PathBuf>, OpenError> {
    let sql = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found: usize = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sql)?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sql)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
    let known = migrations.len();
    if tables > 0 && application != APPLICATION_ID {
        return Err(OpenError::NotOurs { path: path.to_owned() });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    if found == known {
        return Ok(None);
    }
    let copy = if found > 0 { Some(copy_aside(connection, path, found)?) } else { None };
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
    for migration in &migrations[found..] {
        transaction.execute_batch(migration).map_err(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
    transaction.pragma_update(None, "user_version", known).map_err(sql)?;
    transaction.commit().map_err(sql)?;
    if let Some(copy) = &copy {
        info!(path = %path.display(), copy = %copy.display(), from = found, to = known, "database migrated");
    }
    Ok(copy)
}

fn copy_aside(connection: &Connection, path: &Path, version: usize) -> Result<PathBuf, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".v{version}-backup"));
    let copy_path = PathBuf::from(name);
    open_private(&copy_path).map_err(|source| OpenError::Io { path: copy_path.clone(), source })?;
    let sql = |source| OpenError::Sqlite { path: copy_path.clone(), source };
    let mut copy = Connection::open(&copy_path).map_err(sql)?;
    let backup = Backup::new(connection, &mut copy).map_err(sql)?;
    backup.run_to_completion(1024, std::time::Duration::ZERO, None).map_err(sql)?;
    drop(backup);
    copy.close().map_err(|(_, source)| sql(source))?;
    Ok(copy_path)
}
