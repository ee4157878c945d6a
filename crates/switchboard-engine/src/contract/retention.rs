//! Behaviours of pruning: old ended tasks are removed, and everything that is still needed is kept.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Dialect, Part, Role, TaskState};

use super::Subject;
use super::given::{RecordWriter, anyone, chunk, inbound, message, now, read_log, status, webhook, write_parts};
use super::lists::everything;
use crate::ports::store::{Accept, DeliveryOutcome, PushChange, Retention, StoreError};

pub(super) const DAY_MS: i64 = 86_400_000;

pub(super) fn retention(subject: &dyn Subject) -> Retention {
    Retention {
        now: now(subject),
        events_ms: 7 * DAY_MS,
        tasks_ms: 30 * DAY_MS,
        replies_ms: DAY_MS,
        tasks_max: 1_000_000,
        tasks_batch: 0,
    }
}

/// Prunes until nothing is left to do.
pub(super) async fn prune(subject: &dyn Subject, retention: Retention) -> usize {
    let mut done = 0;
    for _ in 0..1000 {
        let some = subject.store().prune(retention, 100).await.expect("pruning works");
        if some == 0 {
            return done;
        }
        done += some;
    }
    panic!("pruning does not come to an end");
}

async fn is_there(subject: &dyn Subject, writer: &RecordWriter) -> bool {
    let task = subject.store().task(&writer.scope, &writer.head.id, u64::MAX).await.expect("tasks are read");
    let head = subject.store().head(&writer.scope, &writer.head.id).await.expect("heads are read");
    assert_eq!(task.is_some(), head.is_some());
    task.is_some()
}

pub async fn tasks_are_counted_by_state(subject: &mut dyn Subject) {
    let counted = |subject: &dyn Subject| {
        let tasks = subject.store().stats().tasks.expect("few tasks are counted at once");
        let counts = TaskState::ALL.into_iter().zip(tasks);
        counts.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    assert_eq!(counted(subject), []);
    RecordWriter::opened(subject, "t1").await;
    let mut paused = RecordWriter::opened(subject, "t2").await;
    paused.append(subject, vec![status(subject, TaskState::InputRequired, Some("?"))]).await;
    RecordWriter::completed(subject, "t3").await;
    RecordWriter::completed(subject, "t4").await;
    let mut unborn = RecordWriter::new(anyone(), "t5", "c1");
    unborn.append(subject, vec![Event::Received { inbound: inbound(1, "x"), context_id: "c1".into() }]).await;
    let kept = [(TaskState::Submitted, 1), (TaskState::InputRequired, 1)];
    let all = [(TaskState::Submitted, 1), (TaskState::Completed, 2), (TaskState::InputRequired, 1)];
    assert_eq!(counted(subject), all);
    subject.restart();
    assert_eq!(counted(subject), all);
    subject.clock().advance_ms(31 * DAY_MS);
    prune(subject, retention(subject)).await;
    assert_eq!(counted(subject), kept);
    paused.append(subject, vec![status(subject, TaskState::Canceled, None)]).await;
    assert_eq!(counted(subject), [(TaskState::Submitted, 1), (TaskState::Canceled, 1)]);
}

pub async fn active_and_paused_tasks_are_never_pruned(subject: &mut dyn Subject) {
    let active = RecordWriter::opened(subject, "t1").await;
    let mut paused = RecordWriter::opened(subject, "t2").await;
    paused.append(subject, vec![status(subject, TaskState::InputRequired, Some("?"))]).await;
    let mut waiting = RecordWriter::opened(subject, "t3").await;
    waiting.append(subject, vec![status(subject, TaskState::AuthRequired, Some("?"))]).await;
    let mut unborn = RecordWriter::new(anyone(), "t4", "c1");
    unborn.append(subject, vec![Event::Received { inbound: inbound(1, "x"), context_id: "c1".into() }]).await;
    subject.clock().advance_ms(1000 * DAY_MS);
    prune(subject, Retention { tasks_max: 0, ..retention(subject) }).await;
    for writer in [&active, &paused, &waiting, &unborn] {
        writer.check(subject).await;
    }
}

pub async fn a_closed_task_goes_when_its_time_is_over(subject: &mut dyn Subject) {
    let mut slow = RecordWriter::opened(subject, "t0").await;
    let writer = RecordWriter::completed(subject, "t1").await;
    let younger = 29 * DAY_MS;
    subject.clock().advance_ms(younger);
    slow.append(subject, vec![status(subject, TaskState::Failed, None)]).await;
    let late = RecordWriter::completed(subject, "t2").await;
    prune(subject, retention(subject)).await;
    assert!(is_there(subject, &writer).await);
    subject.clock().advance_ms(DAY_MS);
    prune(subject, retention(subject)).await;
    assert!(!is_there(subject, &writer).await);
    let gone = subject.store().log(writer.key(), 0, 10).await;
    assert!(matches!(gone, Err(StoreError::Pruned)), "{gone:?}");
    // The age counts from the end of a task, not from its beginning.
    slow.check(subject).await;
    late.check(subject).await;
    let page = subject.store().list(&anyone(), &everything(10)).await.expect("lists are read");
    assert_eq!(page.total, 2);
    // The id of a removed task can be used again.
    RecordWriter::completed(subject, "t1").await.check(subject).await;
}

pub async fn a_direct_reply_goes_after_its_own_window(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    let received = Event::Received { inbound: inbound(1, "x"), context_id: "c1".into() };
    let replied = Event::Replied { message: message(Role::Agent, "r", "y") };
    writer.append(subject, vec![received, replied]).await;
    subject.clock().advance_ms(DAY_MS - 1);
    prune(subject, retention(subject)).await;
    assert!(is_there(subject, &writer).await);
    subject.clock().advance_ms(1);
    prune(subject, retention(subject)).await;
    assert!(!is_there(subject, &writer).await);
}

pub async fn the_oldest_closed_tasks_go_first_when_there_are_too_many(subject: &mut dyn Subject) {
    let active = RecordWriter::opened(subject, "active").await;
    let mut writers = Vec::new();
    for number in 0..10 {
        subject.clock().advance_ms(10);
        writers.push(RecordWriter::completed(subject, &format!("t{number}")).await);
    }
    assert_eq!(prune(subject, Retention { tasks_max: 5, ..retention(subject) }).await, 6);
    active.check(subject).await;
    for (number, writer) in writers.iter().enumerate() {
        assert_eq!(is_there(subject, writer).await, number >= 6, "t{number}");
    }
}

pub async fn a_compacted_log_is_pruned_for_old_cursors_and_the_task_is_whole(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for step in 0..50 {
        writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
        if step % 10 == 0 {
            writer.append(subject, vec![chunk("a", "x", step > 0)]).await;
            writer.append(subject, vec![Event::MessageAdded { inbound: inbound(writer.head.turns + 1, "more") }]).await;
        }
    }
    writer.append(subject, vec![write_parts("b", vec![Part::raw(vec![1; 100_000])], false)]).await;
    writer.append(subject, vec![status(subject, TaskState::Failed, Some("no"))]).await;
    subject.clock().advance_ms(7 * DAY_MS - 1);
    assert_eq!(prune(subject, retention(subject)).await, 0);
    writer.check(subject).await;
    subject.clock().advance_ms(1);
    assert!(prune(subject, retention(subject)).await > 0);

    for restarted in [false, true] {
        if restarted {
            subject.restart();
        }
        writer.check_whole(subject).await;
        for after in [0, 1, writer.head.seq - 1] {
            let pruned = read_log(subject.store(), writer.key(), after, 10).await;
            assert!(matches!(pruned, Err(StoreError::Pruned)), "after {after}");
        }
        let end =
            read_log(subject.store(), writer.key(), writer.head.seq, 10).await.expect("nothing is missing at the end");
        assert_eq!(end.len(), 0);
    }
    // A compacted task can still be written to, for example by a push config.
    writer.append(subject, Vec::new()).await;
    writer.check_whole(subject).await;
    assert!(prune(subject, retention(subject)).await <= 1);
    writer.check_whole(subject).await;
}

pub async fn an_unfinished_delivery_keeps_the_task_and_its_log(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut commit = writer.commit(subject, vec![status(subject, TaskState::Completed, None)]);
    let config = webhook(&writer, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    Arc::make_mut(&mut commit.head).push_configs = 1;
    writer.write(subject, commit).await;
    subject.clock().advance_ms(1000 * DAY_MS);
    let strict = |subject: &dyn Subject| Retention { tasks_max: 0, ..retention(subject) };
    assert_eq!(prune(subject, strict(subject)).await, 0);
    writer.check(subject).await;
    let store = subject.store();
    let delivery = store.claim_deliveries(1, 1000).await.expect("answers").remove(0);
    assert_eq!(prune(subject, strict(subject)).await, 0, "not while the delivery is under way either");

    // A dead letter can be redriven, so the log is kept until the task itself is removed.
    let parked = DeliveryOutcome::Parked { delivered_seq: 1, error: "no".to_owned() };
    store.settle_deliveries(vec![(delivery.claim(), parked)]).await.expect("answers");
    let keep_tasks = Retention { tasks_ms: i64::MAX, ..retention(subject) };
    assert_eq!(prune(subject, keep_tasks).await, 0);
    writer.check(subject).await;
    assert!(prune(subject, retention(subject)).await > 0);
    assert!(!is_there(subject, &writer).await);
    assert_eq!(subject.store().next_delivery_at().await.expect("answers"), None);
    assert_eq!(subject.store().push_configs(writer.key()).await.expect("answers"), []);
}

pub async fn a_large_task_goes_completely(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for _ in 0..9000 {
        let commit = writer.commit(subject, vec![status(subject, TaskState::Working, None)]);
        writer.head = commit.head.clone();
        subject.store().commit(commit).await.expect("the store takes the commit");
    }
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let small = RecordWriter::completed(subject, "t2").await;
    subject.clock().advance_ms(8 * DAY_MS);
    prune(subject, retention(subject)).await;
    let stored = subject
        .store()
        .task(&writer.scope, &writer.head.id, u64::MAX)
        .await
        .expect("tasks are read")
        .expect("it is there");
    assert_eq!(stored.folded.task.state(), TaskState::Completed);
    small.check_whole(subject).await;
    subject.clock().advance_ms(30 * DAY_MS);
    prune(subject, retention(subject)).await;
    assert!(!is_there(subject, &writer).await);
    assert!(!is_there(subject, &small).await);
}

pub async fn at_most_so_many_go_at_once(subject: &mut dyn Subject) {
    for number in 0..10 {
        RecordWriter::completed(subject, &format!("t{number}")).await;
    }
    subject.clock().advance_ms(31 * DAY_MS);
    let mut done = Vec::new();
    for _ in 0..5 {
        done.push(subject.store().prune(retention(subject), 3).await.expect("pruning works"));
    }
    assert_eq!(done, [3, 3, 3, 1, 0]);
}

pub async fn keys_whose_window_has_passed_are_forgotten(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    for number in 1..4 {
        let event = match number {
            1 => writer.opening(subject, "hello"),
            _ => Event::MessageAdded { inbound: inbound(number, "more") },
        };
        let mut commit = writer.commit(subject, vec![event]);
        let expires = now(subject).plus_ms(DAY_MS);
        let key = [u8::try_from(number).unwrap_or(0); 32];
        commit.accept = Some(Accept { key, digest: key, turn: number, after_seq: 0, expires });
        writer.write(subject, commit).await;
    }
    assert_eq!(prune(subject, retention(subject)).await, 0);
    assert!(subject.store().find_accepted([1; 32]).await.expect("answers").is_some());
    subject.clock().advance_ms(3 * DAY_MS);
    assert_eq!(prune(subject, retention(subject)).await, 3);
    writer.check(subject).await;
}
