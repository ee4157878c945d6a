//! The bytes that tasks count: they are found again after a crash, handed over with their tasks, and checked by `verify`.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::model::TaskState;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, now, scope, status};
use switchboard_engine::ports::store::{CommitError, OverStorage, StorageLimits};
use tokio::time::Instant;

use super::super::census::Census;
use super::super::usage::StoredSums;
use super::super::{assign_owner, backup};
use super::{OnFile, faults_of, make, sample};

fn stored(subject: &OnFile) -> u64 {
    subject.store().stats().stored_bytes.expect("few tasks are counted at once")
}

/// Opens a copy of the file as if its process had died now.
fn after_death(subject: &OnFile) -> OnFile {
    let mut next = make();
    next.close();
    std::fs::remove_file(next.path()).unwrap();
    backup(&subject.path(), &next.path()).unwrap();
    next.restart();
    next
}

/// Whether an owner has no room for a task when it may have so many bytes.
async fn is_full(subject: &OnFile, principal: &str, bytes_max: u64) -> bool {
    let mut writer = RecordWriter::new(scope("acme", principal, "echo"), &format!("probe-{principal}"), "ctx");
    let opened = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opened]);
    // The task may have no bytes, so that none is written.
    commit.storage = StorageLimits { owner_bytes_max: bytes_max, task_bytes_max: 0, ..StorageLimits::NONE };
    let over_task = writer.try_write(subject, commit).await;
    assert!(matches!(over_task, Err(CommitError::OverStorage(OverStorage::Task(0)))), "{over_task:?}");
    let opened = writer.opening(subject, &"x".repeat(1_000));
    let mut commit = writer.commit(subject, vec![opened]);
    commit.storage = StorageLimits { owner_bytes_max: bytes_max, bytes_max: 0, ..StorageLimits::NONE };
    match writer.try_write(subject, commit).await {
        Err(CommitError::OverStorage(OverStorage::Owner(_))) => true,
        Err(CommitError::OverStorage(OverStorage::All(0))) => false,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn task_of(subject: &OnFile, principal: &str, id: &str, bytes: usize) -> RecordWriter {
    let mut writer = RecordWriter::new(scope("acme", principal, "echo"), id, "ctx");
    let events = vec![writer.opening(subject, &"x".repeat(bytes)), status(subject, TaskState::Completed, None)];
    writer.append(subject, events).await;
    writer
}

#[tokio::test]
async fn the_sums_are_the_same_after_a_crash() {
    let subject = make();
    sample::write(&subject).await;
    let mut running = RecordWriter::opened(&subject, "running").await;
    for number in 0..5 {
        running.append(&subject, vec![chunk("a", "word ", number > 0)]).await;
    }
    let waiting: i64 = subject.connect().query_row("SELECT count(*) FROM recent", [], |row| row.get(0)).unwrap();
    assert!(waiting >= 5, "some chunks wait to be filed");
    let mut next = after_death(&subject);
    assert_eq!(stored(&next), stored(&subject));
    running.check(&next).await;
    assert_eq!(stored(&next), stored(&subject), "they are filed, and counted once");
    next.restart();
    assert_eq!(stored(&next), stored(&subject));
}

#[tokio::test]
async fn bytes_are_handed_over_with_their_tasks() {
    let mut subject = make();
    task_of(&subject, "ann", "t1", 50_000).await;
    task_of(&subject, "bob", "t2", 1_000).await;
    assert!(is_full(&subject, "ann", 40_000).await);
    assert!(!is_full(&subject, "bob", 40_000).await);
    let at = now(&subject);
    subject.close();
    let owner = |principal: &str| Owner { tenant: "acme".into(), principal: principal.into() };
    assign_owner(&subject.path(), at, &owner("ann"), &owner("bob"), None).unwrap();
    subject.restart();
    assert!(!is_full(&subject, "ann", 40_000).await);
    assert!(is_full(&subject, "bob", 40_000).await);
}

#[tokio::test]
async fn a_task_that_counts_wrongly_is_a_fault_and_one_wrong_bit_fills_nothing() {
    let mut subject = make();
    task_of(&subject, "ann", "t1", 1_000).await;
    let before = stored(&subject);
    subject.write_as_another_build("UPDATE task SET bytes = bytes + 1");
    let faults = faults_of(&subject.path());
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].starts_with("task t1: it counts "), "{faults:?}");
    assert_eq!(stored(&subject), before + 1);
    // The row does not match its checksum now.
    subject.damage("UPDATE task SET bytes = bytes + (1 << 45)");
    assert_eq!(stored(&subject), 0, "it is not counted");
}

#[tokio::test]
async fn a_large_file_is_counted_beside_the_writer() {
    let subject = make();
    task_of(&subject, "ann", "t1", 10_000).await;
    let expected = stored(&subject);
    let sums = Arc::new(StoredSums::default());
    let census = Census::begin(&subject.path(), &subject.connect(), &Arc::default(), &sums, 0);
    task_of(&subject, "ann", "t2", 10_000).await;
    let deadline = Instant::now() + Duration::from_secs(20);
    while sums.all().is_none() {
        assert!(Instant::now() < deadline, "never counted");
        std::thread::yield_now();
    }
    assert_eq!(sums.all(), Some(expected), "what came later is not in it");
    drop(census);
}

#[tokio::test]
async fn a_refused_batch_leaves_the_sums_as_they_were() {
    let subject = make();
    let first = task_of(&subject, "ann", "t1", 10_000).await;
    let before = stored(&subject);
    // The id is taken, so the commit is a conflict.
    let mut writer = RecordWriter::new(first.scope.clone(), "t1", "ctx");
    let opened = writer.opening(&subject, "hello");
    let commit = writer.commit(&subject, vec![opened]);
    assert!(matches!(writer.try_write(&subject, commit).await, Err(CommitError::Conflict)));
    assert_eq!(stored(&subject), before);
}
