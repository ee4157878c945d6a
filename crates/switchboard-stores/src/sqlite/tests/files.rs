//! The file itself: who may read it, and that one process at a time has it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::Pen;
use switchboard_engine::memory::ManualClock;

use super::super::files::lock_path;
use super::super::{FileError, SqliteOptions, SqliteStore};
use super::make;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn open(path: &Path) -> Result<SqliteStore, FileError> {
    SqliteStore::open(path, Arc::new(ManualClock::default()), SqliteOptions::default())
}

#[tokio::test]
async fn only_the_owner_may_read_what_is_stored() {
    let subject = make();
    Pen::completed(&subject, "t1").await;
    let path = subject.path();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for end in ["", "-wal", "-shm", ".lock"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        assert_eq!(mode(Path::new(&name)), 0o600, "{end}");
    }
}

#[tokio::test]
async fn a_file_that_was_open_to_others_is_closed_to_them() {
    let mut subject = make();
    subject.close();
    std::fs::set_permissions(subject.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    subject.restart();
    assert_eq!(mode(&subject.path()), 0o600);
}

#[test]
fn a_second_opening_is_refused_and_names_file_and_process() {
    let mut subject = make();
    let refused = open(&subject.path()).err().expect("one opening at a time");
    let expected = format!("{} is in use by process {}", subject.path().display(), std::process::id());
    assert!(refused.to_string().starts_with(&expected), "{refused}");

    // Without a pid to tell, the file is named all the same.
    std::fs::write(lock_path(&subject.path()), "").unwrap();
    let refused = open(&subject.path()).err().expect("one opening at a time");
    let expected = format!("{} is in use by another process", subject.path().display());
    assert!(refused.to_string().starts_with(&expected), "{refused}");

    subject.close();
    open(&subject.path()).expect("a lock goes with its holder");
}

#[test]
fn somebody_elses_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = open(&path).err().expect("it is not ours");
    assert!(matches!(refused, FileError::NotOurs { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let path = folder.path().join("text.db");
    std::fs::write(&path, "no database at all, but long enough to look like the header of one .........").unwrap();
    let refused = open(&path).err().expect("it is no database");
    assert!(refused.to_string().contains("text.db"), "{refused}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = open(&folder.path().join("file").join("tasks.db")).err().expect("a file is no folder");
    assert!(refused.to_string().contains("file"), "{refused}");
}
