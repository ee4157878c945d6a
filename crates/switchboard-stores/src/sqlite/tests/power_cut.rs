//! Simulates power failures. What the write-ahead log contained when the last answer was given is on disk; beyond that
//! the disk may hold anything: nothing, half a page, noise, or pages of later commits after a gap. In each case the
//! file must open, pass `verify`, and contain every commit that was answered.
//!
//! A reader with an open transaction from the beginning prevents checkpoints, so that all commits of a test stay in the
//! write-ahead log in order.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use switchboard_core::model::{Part, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, status, write_parts};
use tempfile::TempDir;

use super::super::files::beside;
use super::super::ledger::Ledger;
use super::super::{SqliteOptions, SqliteStore};
use super::{OnFile, faults_of};

/// The state when an answer was given: the length of the log, and every record as its writer saw it.
struct Answered {
    wal_bytes: usize,
    writers: Vec<RecordWriter>,
}

/// A file with its log, as bytes, and the answers that were given while it grew.
struct Written {
    database: Vec<u8>,
    wal: Vec<u8>,
    answered: Vec<Answered>,
    clock: std::sync::Arc<switchboard_engine::memory::ManualClock>,
}

pub(super) struct Dice(pub(super) u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % (bound.max(1) as u64)).unwrap()
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
}

async fn write(dice: &mut Dice) -> Written {
    let subject = OnFile::new(SqliteOptions::default());
    let path = subject.path();
    // What opening wrote is moved into the file before the reader begins.
    let opened = subject.store.as_ref().unwrap().writer_for_tests();
    let synchronous = opened.run(|ledger: &mut Ledger<'_>| {
        Ok(ledger.connection.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0))?)
    });
    assert_eq!(synchronous.await.unwrap(), 2, "every commit is synced before it is answered");
    let tidied = Connection::open(&path).unwrap();
    tidied.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let looker = Connection::open(&path).unwrap();
    looker.execute_batch("BEGIN; SELECT * FROM task").unwrap();
    let database = std::fs::read(&path).unwrap();

    let mut writers: Vec<RecordWriter> = Vec::new();
    let mut answered = Vec::new();
    for step in 0..40 {
        match dice.below(4) {
            0 => writers.push(RecordWriter::completed(&subject, &format!("done-{step}")).await),
            1 => writers.push(RecordWriter::opened(&subject, &format!("open-{step}")).await),
            _ => {}
        }
        let mut open: Vec<&mut RecordWriter> = writers.iter_mut().filter(|writer| !writer.head.is_closed()).collect();
        if !open.is_empty() {
            let place = dice.below(open.len());
            let event = match dice.below(4) {
                0 => status(&subject, TaskState::Working, Some("busy")),
                1 => chunk("a", "x", open[place].head.artifact("a").is_some()),
                2 => write_parts("b", vec![Part::raw(vec![7; 40_000])], false),
                _ => status(&subject, TaskState::Completed, None),
            };
            open[place].append(&subject, vec![event]).await;
        }
        let wal_bytes = usize::try_from(beside(&path, "-wal").metadata().unwrap().len()).unwrap();
        answered.push(Answered { wal_bytes, writers: writers.clone() });
    }
    assert_eq!(std::fs::read(&path).unwrap(), database, "nothing was moved into the file");
    let wal = std::fs::read(beside(&path, "-wal")).unwrap();
    assert_eq!(wal.len(), answered.last().unwrap().wal_bytes);
    drop(looker);
    Written { database, wal, answered, clock: subject.clock.clone() }
}

/// What the disk holds of the log after the cut, given what it must hold.
fn damaged(dice: &mut Dice, wal: &[u8], synced: usize) -> (String, Vec<u8>) {
    let beyond = wal.len() - synced;
    let mut left = wal.to_vec();
    match dice.below(5) {
        0 => {
            left.truncate(synced);
            ("ends where it was synced".to_owned(), left)
        }
        1 => {
            let end = dice.between(synced, wal.len());
            left.truncate(end);
            (format!("ends at byte {end}"), left)
        }
        2 if beyond > 0 => {
            let flips = dice.between(1, 20);
            for _ in 0..flips {
                let at = synced + dice.below(beyond);
                left[at] ^= 1 << dice.below(8);
            }
            (format!("has {flips} bits flipped"), left)
        }
        3 if beyond > 0 => {
            let from = synced + dice.below(beyond);
            let until = dice.between(from, wal.len());
            left[from..until].fill(0);
            (format!("has a hole from {from} to {until}"), left)
        }
        _ => {
            left.truncate(synced);
            let noise = dice.between(1, 20_000);
            left.extend((0..noise).map(|_| dice.roll().to_le_bytes()[0]));
            (format!("goes on with {noise} bytes of noise"), left)
        }
    }
}

struct AfterTheCut {
    store: SqliteStore,
    clock: std::sync::Arc<switchboard_engine::memory::ManualClock>,
}

impl Subject for AfterTheCut {
    fn store(&self) -> &dyn switchboard_engine::ports::Store {
        &self.store
    }

    fn clock(&self) -> &switchboard_engine::memory::ManualClock {
        &self.clock
    }

    fn restart(&mut self) {}
}

fn lay_out(folder: &TempDir, database: &[u8], wal: &[u8]) -> PathBuf {
    let path = folder.path().join("tasks.db");
    std::fs::write(&path, database).unwrap();
    std::fs::write(beside(&path, "-wal"), wal).unwrap();
    path
}

/// Opens what the power failure left, and checks every commit that was answered: the record is the same or a later
/// state of it.
async fn check(path: &Path, written: &Written, answered: &Answered) {
    let store = SqliteStore::open(path, written.clock.clone(), SqliteOptions::default()).unwrap();
    let subject = AfterTheCut { store, clock: written.clock.clone() };
    for writer in &answered.writers {
        let stored = subject.store().head(&writer.scope, &writer.head.id).await.unwrap().expect("it was answered");
        assert!(stored.head.version >= writer.head.version, "{}", writer.head.id);
        // Later commits may exist, too, but only complete: the record is one of the states that its writer saw.
        let states = written.answered.iter().flat_map(|answered| &answered.writers);
        let state =
            states.rev().find(|seen| seen.head.id == writer.head.id && seen.head.version == stored.head.version);
        state.expect("the record was written").check(&subject).await;
    }
    drop(subject);
    assert_eq!(faults_of(path), [] as [String; 0]);
}

async fn cut_power(seed: u64, cuts: usize) {
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let written = write(&mut dice).await;
    for _ in 0..cuts {
        let answered = &written.answered[dice.below(written.answered.len())];
        let (what, wal) = damaged(&mut dice, &written.wal, answered.wal_bytes);
        println!("answered up to byte {} of {}: the log {what}", answered.wal_bytes, written.wal.len());
        let folder = tempfile::tempdir().unwrap();
        check(&lay_out(&folder, &written.database, &wal), &written, answered).await;
    }
}

#[tokio::test]
async fn whatever_a_power_cut_leaves_beyond_the_last_answer_nothing_answered_is_lost() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    for seed in 1..=if long { 100 } else { 4 } {
        cut_power(seed, 40).await;
    }
}

/// Tests the test: a log that is cut before the answer loses a commit, and the check finds that.
#[tokio::test]
#[should_panic(expected = "it was answered")]
async fn a_log_cut_before_the_answer_would_be_noticed() {
    let written = write(&mut Dice(1)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = lay_out(&folder, &written.database, &[]);
    check(&path, &written, written.answered.last().unwrap()).await;
}

const PAGE_BYTES: usize = 4096;

/// The file when every page of the log has been moved into it.
fn moved(written: &Written) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = lay_out(&folder, &written.database, &written.wal);
    let connection = Connection::open(&path).unwrap();
    let busy: i64 = connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get(0)).unwrap();
    assert_eq!(busy, 0);
    let database = std::fs::read(&path).unwrap();
    assert_ne!(database, written.database);
    database
}

/// What the disk holds of the file when power fails while pages are moved into it: each page that is being written may
/// be there or not, half of it, or be noise; and the file may have grown or not.
fn half_moved(dice: &mut Dice, written: &Written, moved: &[u8]) -> Vec<u8> {
    let mut left = moved.to_vec();
    left.truncate(dice.between(written.database.len(), moved.len()));
    for (number, page) in left.chunks_mut(PAGE_BYTES).enumerate() {
        let start = number * PAGE_BYTES;
        let mut old =
            written.database.get(start..start + page.len()).map_or_else(|| vec![0; page.len()], <[u8]>::to_vec);
        if old == page {
            continue;
        }
        match dice.below(4) {
            0 => page.copy_from_slice(&old),
            1 => {
                let torn = dice.below(page.len());
                page[torn..].copy_from_slice(&old[torn..]);
            }
            2 => {
                old.iter_mut().for_each(|byte| *byte = dice.roll().to_le_bytes()[0]);
                page.copy_from_slice(&old);
            }
            _ => {}
        }
    }
    left
}

/// The log is kept until all its pages are in the file and synced, so the state of the file does not matter.
#[tokio::test]
async fn whatever_a_power_cut_leaves_of_pages_that_move_into_the_file_nothing_answered_is_lost() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    for seed in 11..=if long { 60 } else { 12 } {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let written = write(&mut dice).await;
        let moved = moved(&written);
        for _ in 0..20 {
            let database = half_moved(&mut dice, &written, &moved);
            let folder = tempfile::tempdir().unwrap();
            check(&lay_out(&folder, &database, &written.wal), &written, written.answered.last().unwrap()).await;
        }
    }
}

/// Tests the test: without the log, a file into which half of the pages were moved has lost something.
#[tokio::test]
#[should_panic]
async fn a_log_that_was_dropped_before_its_pages_were_synced_would_be_noticed() {
    let mut dice = Dice(13);
    let written = write(&mut dice).await;
    let moved = moved(&written);
    let database = half_moved(&mut dice, &written, &moved);
    let folder = tempfile::tempdir().unwrap();
    check(&lay_out(&folder, &database, &[]), &written, written.answered.last().unwrap()).await;
}
