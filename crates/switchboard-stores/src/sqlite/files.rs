//! The files of a database: their names and permissions.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::FileError;

/// What SQLite keeps beside a database.
const SIDE_FILES: [&str; 2] = ["-wal", "-shm"];
const MIGRATION_COPY: &str = "-backup";

/// The path of a file whose name is the database's name with a suffix.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn lock_path(database: &Path) -> PathBuf {
    beside(database, ".lock")
}

/// Where a migration copies a file of this schema version before it changes it.
pub(super) fn migration_copy_path(database: &Path, version: usize) -> PathBuf {
    beside(database, &format!(".v{version}{MIGRATION_COPY}"))
}

/// The database, what SQLite keeps beside it, and the copies that migrations left: all that [`reset`](super::reset) deletes.
///
/// # Errors
/// When the folder cannot be read. A missing folder is no error: it contains no files.
pub fn files(database: &Path) -> Result<Vec<PathBuf>, FileError> {
    let (folder, database_name) = (folder_of(database), database.file_name().unwrap_or_default());
    let io = |source| FileError::Io { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(io)?.path();
        if path.file_name().is_some_and(|name| belongs(name, database_name)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn belongs(name: &OsStr, database: &OsStr) -> bool {
    let suffix = name.as_encoded_bytes().strip_prefix(database.as_encoded_bytes());
    suffix.is_some_and(|suffix| {
        let is = |known: &str| suffix == known.as_bytes();
        // An interrupted copy leaves a file with this suffix.
        let copy = suffix.strip_suffix(b".part".as_slice()).unwrap_or(suffix);
        suffix.is_empty() || SIDE_FILES.into_iter().any(is) || copy.ends_with(MIGRATION_COPY.as_bytes())
    })
}

/// The folder a file is in.
pub(super) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens or creates a file that only its owner may read.
pub(super) fn open_private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        let file = options.mode(0o600).open(path)?;
        let mut permissions = file.metadata()?.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(0o600);
            file.set_permissions(permissions)?;
        }
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

/// Creates a folder, and its missing parents, that only its owner may enter. An existing one is left as it is.
pub(super) fn create_private_folder(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // Without the sync, a power cut could remove the new folder and the database with it.
    sync_folder(folder_of(path))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}
