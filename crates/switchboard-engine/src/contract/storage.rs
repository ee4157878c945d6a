//! Behaviours of the limits of stored bytes: what is stored is counted with each commit and given back with each removal, and what
//! exceeds a limit is refused.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Dialect, TaskState};

use super::Subject;
use super::given::{RecordWriter, TAKEN, anyone, chunk, claim, inbound, now, scope, status, webhook};
use super::retention::{DAY_MS, prune, retention};
use crate::ports::storage::{ENDING_BYTES_MAX, WEBHOOK_BYTES};
use crate::ports::store::{Accept, Commit, CommitError, OverStorage, PushChange, Retention, Scope, StorageLimits};

fn stored(subject: &dyn Subject) -> u64 {
    subject.store().stats().stored_bytes.expect("few tasks are counted at once")
}

/// Everything that ended is removed by this.
fn remove_all(subject: &dyn Subject) -> Retention {
    Retention { now: now(subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 1_000_000, tasks_batch: 0 }
}

/// A commit that opens a task of this owner, with a text of so many bytes.
fn opening(subject: &dyn Subject, scope: Scope, id: &str, bytes: usize) -> (RecordWriter, Commit) {
    let writer = RecordWriter::new(scope, id, "ctx");
    let opened = writer.opening(subject, &"x".repeat(bytes));
    let mut commit = writer.commit(subject, vec![opened]);
    commit.lease = TAKEN;
    (writer, commit)
}

/// A commit that the run of a task makes.
fn of_run(subject: &dyn Subject, writer: &RecordWriter, events: Vec<Event>, limits: StorageLimits) -> Commit {
    let mut commit = writer.commit(subject, events);
    commit.fence = Some(writer.head.fence);
    commit.storage = limits;
    commit
}

async fn refusal(subject: &dyn Subject, writer: &mut RecordWriter, commit: Commit) -> OverStorage {
    let before = (stored(subject), subject.store().stats().rows_written);
    match writer.try_write(subject, commit).await {
        Err(CommitError::OverStorage(over)) => {
            assert_eq!((stored(subject), subject.store().stats().rows_written), before, "nothing was written");
            over
        }
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub async fn stored_bytes_follow_every_change(subject: &mut dyn Subject) {
    assert_eq!(stored(subject), 0);
    let mut task = RecordWriter::opened(subject, "t1").await;
    let opened = stored(subject);
    assert!(opened > 0);
    task.append(subject, vec![status(subject, TaskState::Working, Some(&"x".repeat(50_000)))]).await;
    let after_note = stored(subject);
    assert!((50_000..60_000).contains(&(after_note - opened)), "{opened} {after_note}");
    task.append(subject, vec![chunk("a", &"y".repeat(1_000), false)]).await;
    let after_chunk = stored(subject);
    assert!((1_000..3_000).contains(&(after_chunk - after_note)), "{after_note} {after_chunk}");
    // A webhook counts while it is there.
    let mut commit = task.commit(subject, Vec::new());
    commit.push = vec![PushChange::Put { config: webhook(&task, "p1"), dialect: Dialect::V1_0, after_seq: 9 }];
    Arc::make_mut(&mut commit.head).push_configs += 1;
    task.write(subject, commit).await;
    let with_webhook = stored(subject);
    assert!(with_webhook >= after_chunk + WEBHOOK_BYTES);
    let mut commit = task.commit(subject, Vec::new());
    commit.push = vec![PushChange::Delete { id: "p1".into() }];
    Arc::make_mut(&mut commit.head).push_configs -= 1;
    task.write(subject, commit).await;
    assert!(stored(subject) < with_webhook - WEBHOOK_BYTES / 2);
    task.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let completed = stored(subject);
    subject.restart();
    assert_eq!(stored(subject), completed, "a restart changes nothing");
    // The note leaves no trace in the task, so compaction removes it.
    subject.clock().advance_ms(8 * DAY_MS);
    prune(subject, retention(subject)).await;
    let compacted = stored(subject);
    assert!(compacted < completed - 45_000, "{completed} {compacted}");
    task.check_whole(subject).await;
    subject.restart();
    assert_eq!(stored(subject), compacted);
    prune(subject, remove_all(subject)).await;
    assert_eq!(stored(subject), 0, "everything is given back");
    subject.restart();
    assert_eq!(stored(subject), 0);
}

pub async fn each_limit_refuses_a_message_and_is_named(subject: &mut dyn Subject) {
    let none = StorageLimits::NONE;
    let first = RecordWriter::opened(subject, "t1").await;
    let kinds = [
        (StorageLimits { task_bytes_max: 10_000, ..none }, OverStorage::Task(10_000)),
        (StorageLimits { owner_bytes_max: 10_000, ..none }, OverStorage::Owner(10_000)),
        (StorageLimits { bytes_max: 10_000, ..none }, OverStorage::All(10_000)),
    ];
    for (limits, over) in kinds {
        // A message that begins a task, and one for a task.
        let (mut writer, mut commit) = opening(subject, anyone(), "t2", 20_000);
        commit.storage = limits;
        assert_eq!(refusal(subject, &mut writer, commit).await, over);
        let mut writer = first.clone();
        let more = Event::MessageAdded { inbound: inbound(2, &"x".repeat(20_000)) };
        let mut commit = writer.commit(subject, vec![more]);
        commit.storage = limits;
        assert_eq!(refusal(subject, &mut writer, commit).await, over);
    }
    first.check(subject).await;
    let (mut writer, mut commit) = opening(subject, anyone(), "t2", 20_000);
    commit.storage = StorageLimits { task_bytes_max: 30_000, owner_bytes_max: 30_000, bytes_max: 30_000 };
    writer.write(subject, commit).await;
    writer.check(subject).await;
}

pub async fn an_owner_at_its_limit_touches_no_other(subject: &mut dyn Subject) {
    let limits = StorageLimits { owner_bytes_max: 50_000, ..StorageLimits::NONE };
    let (ann, bob) = (scope("acme", "ann", "echo"), scope("acme", "bob", "echo"));
    let (mut first, mut commit) = opening(subject, ann.clone(), "t1", 40_000);
    commit.storage = limits;
    first.write(subject, commit).await;
    subject.restart();
    // All agents of an owner share the limit.
    for (number, of) in [ann, scope("acme", "ann", "other")].into_iter().enumerate() {
        let (mut writer, mut commit) = opening(subject, of, &format!("no{number}"), 20_000);
        commit.storage = limits;
        assert_eq!(refusal(subject, &mut writer, commit).await, OverStorage::Owner(50_000));
    }
    for (number, of) in [bob, scope("globex", "ann", "echo")].into_iter().enumerate() {
        let (mut writer, mut commit) = opening(subject, of, &format!("yes{number}"), 20_000);
        commit.storage = limits;
        writer.write(subject, commit).await;
        writer.check(subject).await;
    }
    // A task that was removed makes room.
    first.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    prune(subject, remove_all(subject)).await;
    let (mut writer, mut commit) = opening(subject, scope("acme", "ann", "other"), "t3", 40_000);
    commit.storage = limits;
    writer.write(subject, commit).await;
}

pub async fn the_end_of_a_turn_always_fits(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let limits = StorageLimits { task_bytes_max: stored(subject), ..StorageLimits::NONE };
    let refused = OverStorage::Task(limits.task_bytes_max);
    let word = of_run(subject, &writer, vec![chunk("a", "word", false)], limits);
    assert_eq!(refusal(subject, &mut writer, word).await, refused, "a run that goes on");
    let note = of_run(subject, &writer, vec![status(subject, TaskState::Working, None)], limits);
    assert_eq!(refusal(subject, &mut writer, note).await, refused);
    // Being taken over and a request to cancel need no room.
    subject.restart();
    let claimed = claim(subject, 1).await.remove(0);
    let event = Event::Claimed { fence: claimed.stored.head.fence, attempt: 2, at: now(subject) };
    writer.remember(claimed.stored.head, [event].into(), writer.head.seq + 1);
    let mut cancel = writer.commit(subject, vec![Event::CancelRequested { metadata: None, at: now(subject) }]);
    cancel.storage = limits;
    writer.write(subject, cancel).await;
    let large = "x".repeat(usize::try_from(ENDING_BYTES_MAX).unwrap_or(usize::MAX));
    let end = of_run(subject, &writer, vec![status(subject, TaskState::Failed, Some(&large))], limits);
    assert_eq!(refusal(subject, &mut writer, end).await, refused, "a large end");
    let end = of_run(subject, &writer, vec![status(subject, TaskState::Failed, Some("no room"))], limits);
    writer.write(subject, end).await;
    writer.check(subject).await;
}

pub async fn a_chunk_counts_once_however_it_is_stored(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![chunk("a", "word", false)]).await;
    let mut last = stored(subject);
    let mut costs = Vec::new();
    for number in 0..200 {
        writer.append(subject, vec![chunk("a", "word", true)]).await;
        // Reading the task files what waits.
        if number % 50 == 0 {
            writer.check(subject).await;
        }
        costs.push(stored(subject) - last);
        last = stored(subject);
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    subject.restart();
    assert_eq!(stored(subject), last);
    let limits = StorageLimits { task_bytes_max: last, ..StorageLimits::NONE };
    let one_more = of_run(subject, &writer, vec![chunk("a", "word", true)], limits);
    assert_eq!(refusal(subject, &mut writer, one_more).await, OverStorage::Task(last));
    writer.append(subject, vec![chunk("a", "word", true), status(subject, TaskState::Completed, None)]).await;
    let ended = stored(subject);
    subject.restart();
    assert_eq!(stored(subject), ended);
}

pub async fn a_send_writes_no_row_for_the_count(subject: &mut dyn Subject) {
    // The first one may note its owner.
    RecordWriter::completed(subject, "t0").await;
    let before = subject.store().stats().rows_written;
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let events =
        vec![writer.opening(subject, "hello"), chunk("a", "hello", false), status(subject, TaskState::Completed, None)];
    let mut commit = writer.commit(subject, events);
    let expires = now(subject).plus_ms(DAY_MS);
    commit.accept = Some(Accept { key: [7; 32], digest: [8; 32], turn: 1, after_seq: 0, expires });
    commit.storage = StorageLimits { task_bytes_max: 1 << 30, owner_bytes_max: 1 << 30, bytes_max: 1 << 30 };
    writer.write(subject, commit).await;
    assert_eq!(subject.store().stats().rows_written - before, 3, "the task, its commit and its key");
}
