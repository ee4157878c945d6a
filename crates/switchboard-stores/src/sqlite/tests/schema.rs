//! Schema versions: every released version can be opened, and a newer one is refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Json, Timestamp};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk};
use switchboard_engine::memory::{ManualClock, MemoryStore};
use switchboard_engine::ports::{Clock, Store};

use super::super::migrate::migrate;
use super::super::schema::{APPLICATION_ID, MIGRATIONS, Migration};
use super::super::{FileError, SqliteOptions, SqliteStore, verify};
use super::{BEGIN, OnFile, faults_of, make, sample};

/// The first version whose file has calls.
const FIRST_WITH_CALLS: usize = 8;

fn fixture(version: usize) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("schema-v{version}.db"))
}

/// Writes the fixture of the newest schema. Run once when a version is added, by
/// `cargo test -p switchboard-stores write_the_fixture -- --ignored`; never again for that version.
#[tokio::test]
#[ignore = "writes a file into the source tree"]
async fn write_the_fixture_of_the_newest_schema() {
    let target = fixture(MIGRATIONS.len());
    assert!(!target.exists(), "{} has landed and stays as it is", target.display());
    let mut subject = make();
    sample::write(&subject).await;
    subject.close();
    Connection::open(subject.path()).unwrap().execute_batch("PRAGMA journal_mode = delete; VACUUM").unwrap();
    std::fs::copy(subject.path(), target).unwrap();
}

#[tokio::test]
async fn every_schema_that_landed_is_migrated_and_read() {
    for version in 1..=MIGRATIONS.len() {
        let mut subject = make();
        subject.close();
        std::fs::copy(fixture(version), subject.path()).unwrap();
        // The expected content of the fixture comes from writing the same sample to another store.
        let told = InMemory::new();
        let mut sample = sample::write(&told).await;
        subject.clock.set(switchboard_engine::contract::given::now(&told));
        subject.restart();
        for writer in &mut sample.writers {
            as_stored(&subject, writer).await;
        }
        if version >= FIRST_WITH_CALLS {
            sample::check_calls(&subject).await;
        }
        sample::check(&subject, &mut sample).await;
        // Values that the old file does not record about a run are no fault, also after a new build has written to it.
        let running = &mut sample.writers[sample.running];
        let stored = subject.store().head(&running.scope, &running.head.id).await.unwrap().expect("it is there");
        let (fence, attempt, at) = (stored.head.fence, stored.head.attempt, subject.clock.now());
        running.remember(stored.head, [Event::Claimed { fence, attempt, at }].into(), running.head.seq + 1);
        let checkpoint = Event::Checkpoint { value: Json::from_trusted("1") };
        running.append(&subject, vec![checkpoint.clone()]).await;
        assert_eq!(faults_of(&subject.path()), [""; 0]);
        running.append(&subject, vec![chunk("text", "anew", false), checkpoint]).await;
        running.check(&subject).await;
        assert_eq!(faults_of(&subject.path()), [""; 0]);
    }
}

/// Old files do not record which run wrote to an artifact last.
async fn as_stored(subject: &OnFile, writer: &mut RecordWriter) {
    let stored = subject.store().head(&writer.scope, &writer.head.id).await.unwrap().expect("the record is there");
    if stored.head.artifacts.iter().any(|artifact| artifact.fence == 0) {
        let head = Arc::make_mut(&mut writer.head);
        Arc::make_mut(&mut head.artifacts).iter_mut().for_each(|artifact| artifact.fence = 0);
    }
}

/// A released migration is never edited, because files that it has written exist.
#[test]
fn the_newest_schema_is_still_the_one_that_landed() {
    let tables = |path: &Path| -> Vec<(String, Option<String>)> {
        let connection = Connection::open(path).unwrap();
        let mut select = connection.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let landed = folder.path().join("landed.db");
    std::fs::copy(fixture(MIGRATIONS.len()), &landed).unwrap();
    assert_eq!(tables(&make().path()), tables(&landed));
}

/// The first real migration: a file from before checksums is copied, and then every row has one.
#[tokio::test]
async fn a_file_without_checksums_is_copied_and_given_them() {
    let mut subject = make();
    subject.close();
    std::fs::copy(fixture(1), subject.path()).unwrap();
    assert!(matches!(verify(&subject.path(), BEGIN, &mut |_| {}).unwrap_err(), FileError::Older { found: 1, .. }));
    let rows = |path: &Path| -> Vec<(i64, String)> {
        let connection = Connection::open(path).unwrap();
        let mut select = connection.prepare("SELECT log_no, record FROM log ORDER BY log_no").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let before = rows(&subject.path());
    subject.restart();
    subject.close();
    assert_eq!(rows(&subject.path()), before);
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);

    let copy = subject.path().with_file_name("tasks.db.v1-backup");
    assert_eq!(rows(&copy), before);
    let version: usize =
        Connection::open(&copy).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1, "the copy is the older build's file and can be opened");

    // Later changes are found, also in rows from before the migration.
    let damaged = subject.path().with_file_name("damaged.db");
    std::fs::copy(subject.path(), &damaged).unwrap();
    let sql = "UPDATE log SET record = replace(record, 'half way', 'half gay')";
    assert_eq!(Connection::open(&damaged).unwrap().execute(sql, []).unwrap(), before.len());
    assert_eq!(faults_of(&damaged), ["task task-done: commit 2 does not match its checksum"]);
}

/// An older build knows only the first versions, and does not change a file of this version.
#[test]
fn an_older_build_refuses_the_newer_file_untouched() {
    let mut subject = make();
    subject.close();
    let before = std::fs::read(subject.path()).unwrap();
    for known in 0..MIGRATIONS.len() {
        let refused = migrate(&mut subject.connect(), &subject.path(), &MIGRATIONS[..known]).unwrap_err();
        assert!(matches!(refused, FileError::Newer { found, .. } if found == MIGRATIONS.len()), "{refused}");
    }
    assert_eq!(std::fs::read(subject.path()).unwrap(), before);
}

/// One bad row of an older file gets no checksum, and the other rows are migrated.
#[tokio::test]
async fn a_damaged_row_does_not_stop_a_migration() {
    let mut subject = make();
    subject.close();
    std::fs::copy(fixture(1), subject.path()).unwrap();
    let sql = "UPDATE log SET record = CAST(x'7b22ff22' AS TEXT) WHERE record LIKE '%half way%'";
    assert_eq!(subject.connect().execute(sql, []).unwrap(), 1);
    subject.restart();
    subject.close();
    let faults = faults_of(&subject.path());
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].starts_with("task task-done: "), "{faults:#?}");
    std::fs::remove_file(subject.path()).unwrap();
    subject.restart();
}

struct InMemory {
    clock: Arc<ManualClock>,
    store: MemoryStore,
}

impl InMemory {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_ms(1_700_000_000_000)));
        Self { store: MemoryStore::new(clock.clone(), 100), clock }
    }
}

impl Subject for InMemory {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn restart(&mut self) {
        self.store.void_leases();
    }
}

#[test]
fn a_newer_schema_is_refused_with_both_versions() {
    let mut subject = make();
    subject.close();
    subject.connect().pragma_update(None, "user_version", 99).unwrap();
    let clock = subject.clock.clone();
    let refused = SqliteStore::open(&subject.path(), clock, SqliteOptions::default()).err().expect("it is newer");
    let expected = format!(
        "{} has schema version 99, and this build knows versions up to {}: use a newer build",
        subject.path().display(),
        MIGRATIONS.len()
    );
    assert_eq!(refused.to_string(), expected);
    subject.connect().pragma_update(None, "user_version", MIGRATIONS.len()).unwrap();
}

#[tokio::test]
async fn a_migration_copies_the_file_first() {
    let mut subject: OnFile = make();
    let writer = RecordWriter::completed(&subject, "t1").await;
    subject.close();
    let mut next = MIGRATIONS.to_vec();
    next.push(Migration {
        sql: "CREATE TABLE later (number INTEGER NOT NULL) STRICT; ALTER TABLE task ADD COLUMN later TEXT;",
        fill: None,
    });
    let mut connection = subject.connect();
    let copy = migrate(&mut connection, &subject.path(), &next).unwrap().expect("there was something to copy");
    assert_eq!(copy, subject.path().with_file_name(format!("tasks.db.v{}-backup", MIGRATIONS.len())));
    let version = |connection: &Connection| -> usize {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&connection), MIGRATIONS.len() + 1);
    assert_eq!(
        migrate(&mut connection, &subject.path(), &next).unwrap(),
        None,
        "a migrated file is not migrated again"
    );
    drop(connection);

    // The copy is the old file and can be opened as such.
    std::fs::copy(&copy, subject.path()).unwrap();
    assert_eq!(version(&subject.connect()), MIGRATIONS.len());
    subject.restart();
    writer.check(&subject).await;
}

#[test]
fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let mut subject = make();
    subject.close();
    let mut next = MIGRATIONS.to_vec();
    let steps = ["CREATE TABLE later (number INTEGER NOT NULL) STRICT", "CREATE NONSENSE"];
    next.extend(steps.map(|sql| Migration { sql, fill: None }));
    let mut connection = subject.connect();
    let refused = migrate(&mut connection, &subject.path(), &next).unwrap_err();
    assert!(matches!(refused, FileError::Sqlite { .. }), "{refused}");
    drop(connection);
    subject.restart();
}

#[test]
fn the_header_says_whose_file_it_is() {
    let subject = make();
    let id: i32 = subject.connect().pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    assert_eq!(id, APPLICATION_ID);
    assert_eq!(id.to_be_bytes(), *b"SWBD");
}
