//! `switchboard db`: looking after the database while no server runs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::cli::ResetArgs;
use crate::config::{DATABASE_NAME, Environment, Storage, gather};
use crate::failure::Failure;

/// Deletes the database, if nobody uses it; says what was deleted.
///
/// # Errors
/// Without `--yes`; while a server holds it; when a file cannot be deleted.
pub(crate) fn reset(args: &ResetArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let layers = gather(args.layer(), args.config.as_deref(), environment, folder)?;
    let data = match layers.settings.storage()? {
        Storage::Sqlite { folder, .. } => folder,
        Storage::Memory => {
            return Err(Failure::Usage(
                "the configuration keeps tasks in memory; name a folder with --data".to_owned(),
            ));
        }
    };
    let files = database_files(&folder.join(&data)).map_err(|error| cannot("read", &data, &error))?;
    if files.is_empty() {
        return Ok(format!("no database in {}; nothing to delete", data.display()));
    }
    let names: Vec<String> = files.iter().map(|file| format!("  {}", file.display())).collect();
    if !args.yes {
        let list = names.join("\n");
        return Err(Failure::Usage(format!("this would delete every task for ever:\n{list}\nsay --yes to do it")));
    }
    let _lock = lock(&folder.join(&data).join(DATABASE_NAME))?;
    for file in &files {
        std::fs::remove_file(file).map_err(|error| cannot("delete", file, &error))?;
    }
    Ok(format!("deleted\n{}", names.join("\n")))
}

/// The database, what SQLite keeps beside it, and the copies that migrations left. The lock file stays: whoever waits
/// for it must find the same one.
fn database_files(data: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let suffix = name.strip_prefix(DATABASE_NAME);
        if suffix.is_some_and(|suffix| matches!(suffix, "" | "-wal" | "-shm") || suffix.ends_with("-backup")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Takes the lock that a server holds while it uses the database.
fn lock(database: &Path) -> Result<File, Failure> {
    let path = PathBuf::from(format!("{}.lock", database.display()));
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|error| cannot("open", &path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::Runtime(format!("{} is in use; stop the server first", database.display())))
        }
        Err(TryLockError::Error(error)) => Err(cannot("lock", &path, &error)),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Runtime(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
#[path = "db_tests.rs"]
mod tests;
