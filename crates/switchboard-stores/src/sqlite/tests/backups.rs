//! A backup is the complete file at one moment, even while it is written, or there is none.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use switchboard_core::model::TaskState;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, status};

use super::super::copy::UnfinishedCopy;
use super::super::files::open_private;
use super::super::{Checked, FileError, SqliteOptions, SqliteStore, backup, verify};
use super::{BEGIN, OnFile, faults_of, make, sample};

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn checked(database: &Path) -> Checked {
    verify(database, BEGIN, &mut |fault| panic!("{fault}")).unwrap()
}

/// Puts a backup where a store looks for its file, as a restore does.
fn restore(subject: &mut OnFile, copy: &Path) {
    subject.close();
    super::super::reset(&subject.path()).unwrap();
    std::fs::copy(copy, subject.path()).unwrap();
    subject.restart();
}

#[tokio::test]
async fn a_backup_holds_everything_and_is_one_private_file() {
    let mut subject = make();
    let mut sample = sample::write(&subject).await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    let bytes = backup(&subject.path(), &copy).unwrap();
    assert_eq!(bytes, copy.metadata().unwrap().len());
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(checked(&copy), checked(&subject.path()));
    assert_eq!(names_in(folder.path()), ["copy.db"], "neither making nor reading the backup leaves a file beside it");
    restore(&mut subject, &copy);
    sample::check_calls(&subject).await;
    sample::check(&subject, &mut sample).await;
}

#[tokio::test]
async fn what_is_committed_after_the_backup_is_not_in_it() {
    let mut subject = make();
    let before = RecordWriter::completed(&subject, "before").await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    backup(&subject.path(), &copy).unwrap();
    let after = RecordWriter::completed(&subject, "after").await;
    restore(&mut subject, &copy);
    before.check(&subject).await;
    assert!(subject.store().head(&after.scope, &after.head.id).await.unwrap().is_none());
}

/// Commits go on during the backups; each copy is one state of the file, and no commit is refused.
#[test]
fn a_backup_of_a_busy_file_is_one_moment_of_it() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        // The writers must stop also if an assertion here fails.
        let _stop = StopOnDrop(&done);
        for number in 0..3 {
            let (subject, done) = (&subject, &done);
            threads.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut writer = RecordWriter::opened(subject, &format!("t{number}")).await;
                    while !done.load(Relaxed) {
                        writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
                    }
                });
            });
        }
        let mut commits = 0;
        for number in 0..5 {
            let copy = folder.path().join(format!("{number}.db"));
            backup(&subject.path(), &copy).unwrap();
            let found = checked(&copy);
            assert!(found.commits >= commits, "a later backup has at least the commits of an earlier one");
            commits = found.commits;
        }
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn a_backup_never_overwrites_and_leaves_nothing_when_it_fails() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::write(&copy, "mine").unwrap();
    let refused = backup(&subject.path(), &copy).unwrap_err();
    assert_eq!(refused.to_string(), format!("{} exists already, and nothing is overwritten", copy.display()));
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "mine");

    let missing = folder.path().join("missing.db");
    let refused = backup(&missing, &folder.path().join("other.db")).unwrap_err();
    assert_eq!(refused.to_string(), format!("{} does not exist", missing.display()));
    assert_eq!(names_in(folder.path()), ["copy.db"]);

    let refused = backup(&subject.path(), &folder.path().join("nowhere").join("copy.db")).unwrap_err();
    assert!(refused.to_string().contains("nowhere") && !refused.to_string().contains(".part"), "{refused}");
}

#[test]
fn a_backup_that_was_cut_off_is_no_hindrance_and_one_under_way_is() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let (copy, part) = (folder.path().join("copy.db"), folder.path().join("copy.db.part"));
    let under_way = std::fs::File::create(&part).unwrap();
    under_way.try_lock().unwrap();
    let refused = backup(&subject.path(), &copy).unwrap_err();
    assert!(matches!(&refused, FileError::Exists { path } if *path == part), "{refused}");
    drop(under_way);

    std::fs::write(&part, vec![7; 1_000_000]).unwrap();
    backup(&subject.path(), &copy).unwrap();
    assert_eq!(faults_of(&copy), [] as [String; 0]);
    assert_eq!(names_in(folder.path()), ["copy.db"]);
}

/// Another backup to the same target has opened the unfinished file, but locks it only after it was renamed.
#[test]
fn a_finished_backup_is_not_emptied_by_one_that_comes_late() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let (copy, part) = (folder.path().join("copy.db"), folder.path().join("copy.db.part"));
    let late = open_private(&part).unwrap();
    let bytes = backup(&subject.path(), &copy).unwrap();
    assert!(UnfinishedCopy::hold(late, &part).unwrap().is_none(), "the file it opened has become the backup");
    assert_eq!(copy.metadata().unwrap().len(), bytes);
    assert_eq!(faults_of(&copy), [] as [String; 0]);
    assert_eq!(names_in(folder.path()), ["copy.db"]);
}

/// Many backups to one target at once: one succeeds, and its copy is complete from the beginning and stays.
#[test]
fn of_many_backups_to_one_place_one_is_taken() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        let copy = folder.path().join(format!("copy-{round}.db"));
        let taken: usize = std::thread::scope(|threads| {
            let take = || match backup(&subject.path(), &copy) {
                Ok(bytes) => {
                    assert_eq!(copy.metadata().unwrap().len(), bytes);
                    1
                }
                Err(FileError::Exists { .. }) => 0,
                Err(error) => panic!("{error}"),
            };
            let threads: Vec<_> = (0..4).map(|_| threads.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1);
        assert_eq!(faults_of(&copy), [] as [String; 0]);
    }
}

#[test]
fn a_backup_is_ours_to_open() {
    let subject = make();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    backup(&subject.path(), &copy).unwrap();
    drop(SqliteStore::open(&copy, subject.clock.clone(), SqliteOptions::default()).unwrap());
    let notes = folder.path().join("notes.db");
    rusqlite::Connection::open(&notes).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    let refused = backup(&notes, &folder.path().join("other.db")).unwrap_err();
    assert!(matches!(refused, FileError::NotOurs { .. }), "{refused}");
}
