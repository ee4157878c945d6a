//! The file itself: its permissions, and that only one process at a time can use it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::RecordWriter;
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::store::StoreError;

use super::super::files::{beside, lock_path};
use super::super::lock::FileLock;
use super::super::{FileError, SqliteOptions, SqliteStore, reset};
use super::{OnFile, make, quick};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn open(path: &Path) -> Result<SqliteStore, FileError> {
    SqliteStore::open(path, Arc::new(ManualClock::default()), SqliteOptions::default())
}

#[tokio::test]
async fn only_the_owner_may_read_what_is_stored() {
    let subject = make();
    RecordWriter::completed(&subject, "t1").await;
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

    // The error names the file even if the pid is not known.
    std::fs::write(lock_path(&subject.path()), "").unwrap();
    let refused = FileLock::take_within(&subject.path(), Duration::ZERO).err().expect("one opening at a time");
    let expected = format!("{} is in use by another process", subject.path().display());
    assert!(refused.to_string().starts_with(&expected), "{refused}");

    subject.close();
    open(&subject.path()).expect("a lock is released when its holder ends");
}

#[test]
fn somebody_elses_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = open(&path).err().expect("the file belongs to another application");
    assert!(matches!(refused, FileError::NotOurs { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let path = folder.path().join("text.db");
    std::fs::write(&path, "no database at all, but long enough to look like the header of one .........").unwrap();
    let refused = open(&path).err().expect("the file is not a database");
    assert!(refused.to_string().contains("text.db"), "{refused}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let refused = open(&folder.path().join("file").join("tasks.db")).err().expect("a file is no folder");
    assert!(refused.to_string().contains("file"), "{refused}");
}

/// The pid of a process that has ended.
fn gone() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// If a server is killed while it starts a command, a child between fork and exec still holds the lock.
#[test]
fn a_lock_whose_holder_is_gone_is_waited_for() {
    let mut subject = make();
    subject.close();
    let holding = std::fs::File::open(lock_path(&subject.path())).unwrap();
    holding.lock().unwrap();
    std::fs::write(lock_path(&subject.path()), format!("{}\nhas data\n", gone())).unwrap();
    let path = subject.path();
    #[expect(clippy::disallowed_methods, reason = "it is joined below")]
    let opening = std::thread::spawn(move || open(&path).map(drop));
    // The child ends a moment later. Without the wait, the second open would have been refused by now.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!opening.is_finished(), "it waits");
    drop(holding);
    opening.join().unwrap().expect("the lock is free");
}

#[test]
fn a_lock_whose_holder_is_alive_is_refused_at_once() {
    let mut subject = make();
    subject.close();
    let holding = std::fs::File::open(lock_path(&subject.path())).unwrap();
    holding.lock().unwrap();
    // The first process of the machine always exists.
    std::fs::write(lock_path(&subject.path()), "1\n").unwrap();
    let refused = FileLock::take_within(&subject.path(), Duration::MAX).err().expect("a live holder is not waited for");
    assert!(matches!(refused, FileError::InUse { pid: Some(1), .. }), "{refused}");
}

#[cfg(target_os = "linux")]
#[test]
fn neither_another_name_nor_a_removed_lock_file_lets_a_second_process_in() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let (symlink, hard_link) = (folder.path().join("link.db"), subject.path().with_file_name("hard.db"));
    std::os::unix::fs::symlink(subject.path(), &symlink).unwrap();
    let refused = open(&symlink).err().expect("it is the same database");
    let expected = format!("{} is in use by process {}", subject.path().display(), std::process::id());
    assert!(refused.to_string().starts_with(&expected), "{refused}");

    std::fs::hard_link(subject.path(), &hard_link).unwrap();
    let refused = FileLock::take_within(&hard_link, Duration::ZERO).err().expect("it is the same database");
    assert!(matches!(refused, FileError::InUse { .. }), "{refused}");
    std::fs::remove_file(&hard_link).unwrap();

    std::fs::remove_file(lock_path(&subject.path())).unwrap();
    let refused = FileLock::take_within(&subject.path(), Duration::ZERO).err().expect("it is still open");
    assert!(matches!(refused, FileError::InUse { .. }), "{refused}");
}

#[tokio::test]
async fn a_link_to_a_database_is_that_database() {
    let mut subject = make();
    RecordWriter::completed(&subject, "t1").await;
    subject.close();
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(subject.path(), &link).unwrap();
    drop(open(&link).unwrap());
    let beside: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(beside.len(), 1, "no file is created beside a link");
    std::fs::rename(subject.path(), subject.path().with_extension("away")).unwrap();
    let refused = open(&link).err().expect("the database is gone");
    assert!(refused.to_string().contains("is a link to"), "{refused}");
    std::fs::rename(subject.path().with_extension("away"), subject.path()).unwrap();
}

#[tokio::test]
async fn a_database_that_has_lost_its_content_is_not_replaced_by_an_empty_one() {
    let mut subject = make();
    RecordWriter::completed(&subject, "t1").await;
    // Copied while it is open, as a careless backup would.
    let (path, away) = (subject.path(), subject.path().with_extension("away"));
    let wal = std::fs::read(beside(&path, "-wal")).unwrap();
    subject.close();
    std::fs::rename(&path, &away).unwrap();

    std::fs::write(beside(&path, "-wal"), &wal).unwrap();
    let refused = open(&path).err().expect("it is gone, and its write-ahead log is not");
    assert!(matches!(refused, FileError::Lost { .. }), "{refused}");
    assert!(!path.exists(), "no file was created");
    std::fs::remove_file(beside(&path, "-wal")).unwrap();

    std::fs::write(&path, "").unwrap();
    let refused = open(&path).err().expect("it was not empty");
    assert!(matches!(refused, FileError::Emptied { .. }), "{refused}");
    assert!(refused.to_string().contains("restore a backup"), "{refused}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "nothing was written");

    // An operator who wants an empty database resets it explicitly.
    reset(&path).unwrap();
    drop(open(&path).unwrap());
    reset(&path).unwrap();
    std::fs::rename(&away, &path).unwrap();
}

#[tokio::test]
async fn a_database_that_is_deleted_under_a_server_takes_no_more_commits_until_it_is_back() {
    let subject = OnFile::new(quick());
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let (path, away) = (subject.path(), subject.path().with_extension("away"));
    for missing in [path.clone(), beside(&path, "-wal")] {
        std::fs::rename(&missing, &away).unwrap();
        // The writer checks this every second.
        let mut answers = 0;
        let refused = loop {
            match subject.store().probe().await {
                Ok(()) => answers += 1,
                Err(refused) => break refused,
            }
            assert!(answers < 1_000, "the deleted file was not noticed");
            std::thread::sleep(Duration::from_millis(5));
        };
        let expected =
            StoreError::Unavailable("the database was deleted or replaced while the server has it open".to_owned());
        assert_eq!(refused, expected);
        let commit = writer.commit(&subject, Vec::new());
        assert!(writer.try_write(&subject, commit).await.is_err());
        writer.check(&subject).await;
        std::fs::rename(&away, &missing).unwrap();
        subject.store().probe().await.unwrap();
    }
    writer.append(&subject, Vec::new()).await;
    writer.check(&subject).await;
}
