//! Moves between a file and PostgreSQL: everything comes over, a move that was interrupted goes on, and nothing is overwritten. In tests a page
//! has two rows, so that every table has several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use switchboard_core::model::{Part, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, scope, status, write_parts};
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::{Clock as _, Store};

use super::{FileSide, Move, MoveError, Moved, Place, SchemaSide, Side, move_database};
use crate::moving_rows::{Cursor, Row, Stage};
use crate::postgres::moving::alone;
use crate::postgres::tests::{new_schema, server};
use crate::postgres::{PostgresError, PostgresOptions, PostgresStore};
use crate::sqlite::tests::sample::{self, Sample};
use crate::sqlite::tests::{OnFile, make};
use crate::sqlite::{SecretKeySource, SecretKeys, SqliteStore};
use crate::{postgres, sqlite};

/// A file with one of everything, and names that PostgreSQL cannot hold as they are. No process has it open.
fn filled() -> (OnFile, Sample) {
    let mut subject = make();
    let sample = block_on(async {
        let sample = sample::write(&subject).await;
        let mut odd = RecordWriter::new(scope("a\0b", "\u{10FFFF}", "echo"), "task \0", "talk \u{10FFFF}0");
        odd.append(&subject, vec![odd.opening(&subject, "large")]).await;
        // Two contents in one commit, each in several chunks, and a chunk that waits to be filed.
        let parts = vec![Part::raw(vec![1; 600_000]), Part::text("x".repeat(300_000))];
        odd.append(&subject, vec![write_parts("large \0", parts, false), chunk("small", "a", false)]).await;
        odd.append(&subject, vec![chunk("small", "b", true)]).await;
        odd.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
        sample
    });
    subject.close();
    (subject, sample)
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn schema(subject: &OnFile) -> PostgresOptions {
    let SecretKeySource::Keys(keys) = &subject.options.secrets else { panic!("the keys are given") };
    let options = PostgresOptions::new(server().url()).schema(new_schema()).secrets(keys.clone());
    options.readers(1).clock(subject.clock.clone()).replica("one")
}

fn wanted(subject: &OnFile, from: Place, to: Place) -> Move {
    let clock: Arc<ManualClock> = subject.clock.clone();
    let entry = AuditEntry::new(clock.now(), AuditEvent::Offline, Decision::Allowed, "db move".to_owned());
    Move { from, to, keys: subject.options.secrets.clone(), without_secrets: false, entry, clock }
}

fn moved(subject: &OnFile, from: Place, to: Place) -> Result<Moved, String> {
    move_database(&wanted(subject, from, to), &mut |_| {}).map_err(|error| error.to_string())
}

fn file(path: &Path) -> Place {
    Place::File(path.to_owned())
}

/// All rows of a place, as they are compared.
fn rows(subject: &OnFile, place: &Place) -> Vec<Row> {
    let read = async {
        let side = match place {
            Place::File(path) => Side::File(FileSide::source(path, &subject.options.secrets, subject.clock.clone())?),
            Place::Postgres(options) => Side::Schema(SchemaSide::source(options).await?),
        };
        let mut rows = Vec::new();
        for stage in Stage::ALL {
            let mut after = Cursor::default();
            loop {
                let page = side.read(stage, &after, subject.clock.now().as_ms()).await?;
                let Some(last) = page.last() else { break };
                after = last.cursor();
                rows.extend(page.into_iter().map(Row::comparable));
            }
        }
        Ok::<_, MoveError>(rows)
    };
    alone(async { Ok::<_, PostgresError>(read.await) }).unwrap().unwrap()
}

/// A store that was moved to, with the clock of the one that was moved.
struct Target<'a, S> {
    store: S,
    clock: &'a ManualClock,
}

impl<S: Store> Subject for Target<'_, S> {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn clock(&self) -> &ManualClock {
        self.clock
    }

    fn restart(&mut self) {
        panic!("not needed here");
    }
}

#[test]
#[ignore = "starts PostgreSQL"]
fn what_was_in_a_file_is_served_from_postgresql() {
    let (subject, mut sample) = filled();
    let options = schema(&subject);
    let done = moved(&subject, file(&subject.path()), Place::Postgres(options.clone())).unwrap();
    let checked = done.checked;
    assert_eq!((checked.tasks, checked.webhooks, checked.accepted, checked.calls), (7, 2, 1, 2));
    // Those of the sample, and the move itself.
    assert_eq!((checked.audit_entries, checked.faults, done.was_resumed), (3, 0, false));
    assert_eq!(checked.chunk_bytes, 33_000 + 900_000);
    let served = Target { store: PostgresStore::open(options).unwrap(), clock: &subject.clock };
    block_on(async {
        sample::check_calls(&served).await;
        sample::check(&served, &mut sample).await;
        // New numbers do not meet those that came.
        let mut new = RecordWriter::opened(&served, "task-new").await;
        new.append(&served, vec![chunk("text", "so far", false)]).await;
        new.check(&served).await;
    });
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_file_that_went_to_postgresql_and_back_is_the_same_row_by_row() {
    let (subject, mut sample) = filled();
    let options = schema(&subject);
    moved(&subject, file(&subject.path()), Place::Postgres(options.clone())).unwrap();
    let before = rows(&subject, &file(&subject.path()));
    assert!(before.len() > 30, "{}", before.len());
    assert_eq!(rows(&subject, &Place::Postgres(options.clone())), before);
    let back = subject.folder.path().join("back").join("tasks.db");
    moved(&subject, Place::Postgres(options), file(&back)).unwrap();
    let mut after = rows(&subject, &file(&back));
    // The second move is in the audit log, in a chain of its own.
    let is_new = |row: &Row| match row {
        Row::Entry { chain_no, .. } => *chain_no > 1,
        Row::Chain(chain) => chain.chain_no > 1,
        _ => false,
    };
    assert_eq!(after.iter().filter(|row| is_new(row)).count(), 2);
    after.retain(|row| !is_new(row));
    assert_eq!(after, before);
    let store = SqliteStore::open(&back, subject.clock.clone(), subject.options.clone()).unwrap();
    let served = Target { store, clock: &subject.clock };
    block_on(async {
        sample::check_calls(&served).await;
        sample::check(&served, &mut sample).await;
    });
}

/// Moves, and is interrupted after each page. Returns how often.
fn move_interrupted(subject: &OnFile, from: &Place, to: &Place) -> u32 {
    for interrupted in 0..1_000 {
        let wanted = wanted(subject, from.clone(), to.clone());
        let attempt = catch_unwind(AssertUnwindSafe(|| {
            move_database(&wanted, &mut |line| assert!(!line.contains("moved so far"), "interrupted"))
        }));
        if let Ok(done) = attempt {
            let done = done.unwrap();
            assert_eq!(done.was_resumed, interrupted > 0);
            return interrupted;
        }
    }
    panic!("it was never finished");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_move_to_postgresql_and_back_goes_on_wherever_it_was_interrupted() {
    let (subject, _) = filled();
    let (from, to) = (file(&subject.path()), Place::Postgres(schema(&subject)));
    let pages = move_interrupted(&subject, &from, &to);
    assert!(pages > 20, "{pages}");
    let before = rows(&subject, &from);
    assert_eq!(rows(&subject, &to), before);
    let back = file(&subject.folder.path().join("back").join("tasks.db"));
    assert!(move_interrupted(&subject, &to, &back) >= pages);
    let entries = |rows: &[Row]| rows.iter().filter(|row| matches!(row, Row::Entry { .. })).count();
    assert_eq!(entries(&rows(&subject, &back)), entries(&before) + 1, "each move was recorded once");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn no_server_opens_either_side_of_a_move_to_postgresql_before_it_is_finished() {
    let (mut subject, _) = filled();
    let (path, options) = (subject.path(), schema(&subject));
    let open_file = |subject: &OnFile, path: &PathBuf| {
        SqliteStore::open(path, subject.clock.clone(), subject.options.clone()).map_err(|error| error.to_string())
    };
    let (from, to) = (file(&path), Place::Postgres(options.clone()));
    let stopped = wanted(&subject, from.clone(), to.clone());
    catch_unwind(AssertUnwindSafe(|| move_database(&stopped, &mut |_| panic!("interrupted")))).unwrap_err();
    let source = open_file(&subject, &path).err().unwrap();
    assert!(source.contains("are being moved to PostgreSQL") && source.contains("--reopen"), "{source}");
    let target = PostgresStore::open(options.clone()).err().unwrap().to_string();
    assert!(target.contains("not everything was moved into it"), "{target}");
    let other = Place::Postgres(schema(&subject));
    let elsewhere = moved(&subject, from.clone(), other).unwrap_err();
    assert!(elsewhere.contains("are being moved to PostgreSQL"), "{elsewhere}");
    assert!(postgres::reopen(&options).unwrap_err().to_string().contains("not everything was moved"));

    moved(&subject, from.clone(), to.clone()).unwrap();
    let source = open_file(&subject, &path).err().unwrap();
    assert!(source.contains("its tasks were moved to PostgreSQL"), "{source}");
    let again = moved(&subject, from, to).unwrap_err();
    assert!(again.contains("its tasks were moved to PostgreSQL"), "{again}");
    PostgresStore::open(options).unwrap();
    assert!(sqlite::reopen(&path, subject.clock.now()).unwrap(), "it had a mark");
    assert!(!sqlite::reopen(&path, subject.clock.now()).unwrap(), "it has none any more");
    subject.store = Some(open_file(&subject, &path).unwrap());
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_move_to_postgresql_is_refused_where_it_would_lose_something() {
    let (mut subject, _) = filled();
    let (from, options) = (file(&subject.path()), schema(&subject));
    let to = Place::Postgres(options.clone());

    let serving = PostgresStore::open(options.clone()).unwrap();
    let why = moved(&subject, from.clone(), to.clone()).unwrap_err();
    assert!(why.contains("servers use the database (one)"), "{why}");
    drop(serving);

    subject.restart();
    let why = moved(&subject, from.clone(), to.clone()).unwrap_err();
    assert!(why.contains("is in use by process"), "{why}");
    subject.close();

    let mut other_key = wanted(&subject, from, to.clone());
    other_key.keys = SecretKeySource::Keys(SecretKeys::generate().unwrap());
    let why = move_database(&other_key, &mut |_| {}).unwrap_err().to_string();
    assert!(why.contains("the secrets of 2 webhooks cannot be read"), "{why}");
    // Neither side was marked.
    subject.restart();
    subject.close();
    drop(PostgresStore::open(options).unwrap());

    let nothing = Place::Postgres(schema(&subject));
    let why = moved(&subject, nothing, file(&subject.folder.path().join("new").join("tasks.db"))).unwrap_err();
    assert!(why.contains("there are no tables in the schema"), "{why}");
    let missing = moved(&subject, file(&subject.folder.path().join("none.db")), to.clone()).unwrap_err();
    assert!(missing.contains("does not exist"), "{missing}");

    other_key.without_secrets = true;
    assert_eq!(move_database(&other_key, &mut |_| {}).unwrap().unread_secrets, 2);
    let (second, _) = filled();
    let why = moved(&second, file(&second.path()), to).unwrap_err();
    assert!(why.contains("is not empty"), "{why}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_damaged_task_ends_a_move_to_postgresql_and_is_named() {
    let (mut subject, _) = filled();
    subject.is_damaged = true;
    subject.connect().execute_batch("UPDATE task SET seq = seq + 1 WHERE id = 'task-paused'").unwrap();
    let why = moved(&subject, file(&subject.path()), Place::Postgres(schema(&subject))).unwrap_err();
    assert!(why.contains("task task-paused is damaged") && why.contains("switchboard db verify"), "{why}");
    assert!(sqlite::reopen(&subject.path(), subject.clock.now()).unwrap());
    subject.restart();
}
