//! One bad row affects one task: it is reported, and everything else works.

use std::sync::Arc;

use switchboard_core::lifecycle::Head;
use switchboard_core::model::{Dialect, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, anyone, chunk, claim, now, status, webhook};
use switchboard_engine::ports::outbox::OutboxQuery;
use switchboard_engine::ports::store::{
    Accept, CommitError, DeliveryOutcome, ListCursor, ListQuery, PushChange, Release, Retention, StoreError, TaskKey,
};
use switchboard_engine::ports::upkeep::{DamagedRow, Quarantine};

use super::{OnFile, faults_of, make};

const DAY_MS: i64 = 86_400_000;

/// Ways to damage a row of an open task.
const DAMAGES: [&str; 4] = ["artifacts = 'x'", "state = 99", "phase = 7", "attempt = -1"];

/// Three tasks at work; the one in the middle is damaged while no server runs.
async fn at_work(damage: &str) -> OnFile {
    let mut subject = make();
    for id in ["t1", "t2", "t3"] {
        let mut writer = RecordWriter::opened(&subject, id).await;
        writer.append(&subject, vec![chunk("a", "x", false)]).await;
    }
    subject.damage(&format!("UPDATE task SET {damage} WHERE id = 't2'"));
    subject
}

fn named(id: &str) -> Quarantine {
    Quarantine { rows: 1, named: vec![DamagedRow::Task { id: id.into() }] }
}

async fn listed(subject: &OnFile, page_size: usize, after: Option<ListCursor>) -> (Vec<String>, Option<ListCursor>) {
    let query = ListQuery {
        context_id: Some("ctx".into()),
        state: None,
        status_since: None,
        page_size,
        after,
        artifacts: true,
        bytes_max: u64::MAX,
        history_max: None,
    };
    let page = subject.store().list(&anyone(), &query).await.unwrap();
    (page.tasks.iter().map(|stored| stored.head.id.to_string()).collect(), page.next)
}

#[tokio::test]
async fn a_damaged_task_is_passed_over_by_the_claim_of_the_others() {
    for damage in DAMAGES {
        let subject = at_work(damage).await;
        let claimed = claim(&subject, 10).await;
        let ids: Vec<_> = claimed.iter().map(|run| run.stored.head.id.as_str()).collect();
        assert_eq!(ids, ["t1", "t3"], "{damage}");
        assert_eq!(subject.store().quarantine(), named("t2"), "{damage}");
        // The damaged task does not use up the limit of later queries either.
        assert_eq!(claim(&subject, 10).await.len(), 0, "{damage}");
        let held = claimed.iter().map(|run| (run.stored.key, run.stored.head.fence)).collect();
        assert_eq!(subject.store().renew_leases(held, 1000).await.unwrap(), [], "{damage}");
        let faults = faults_of(&subject.path());
        assert!(faults.iter().any(|fault| fault.starts_with("task t2: ")), "{damage}: {faults:?}");
    }
}

#[tokio::test]
async fn a_claim_of_few_is_not_taken_up_by_damaged_ones() {
    let mut subject = make();
    for number in 0..9 {
        RecordWriter::opened(&subject, &format!("t{number}")).await;
    }
    subject.damage("UPDATE task SET state = 99 WHERE task_no <= 6");
    let mut ids = Vec::new();
    for _ in 0..6 {
        let claimed = claim(&subject, 2).await;
        ids.extend(claimed.iter().map(|run| run.stored.head.id.to_string()));
    }
    assert_eq!(ids, ["t6", "t7", "t8"]);
    assert_eq!(subject.store().quarantine().rows, 6);
}

#[tokio::test]
async fn the_reader_of_a_damaged_task_is_told_and_the_list_goes_on() {
    for damage in DAMAGES {
        let subject = at_work(damage).await;
        let read = subject.store().task(&anyone(), &"t2".into(), u64::MAX).await;
        assert!(matches!(&read, Err(StoreError::Damaged(text)) if text.starts_with("task t2: ")), "{damage}: {read:?}");
        let head = subject.store().head(&anyone(), &"t2".into()).await;
        assert!(matches!(head, Err(StoreError::Damaged(_))), "{damage}: {head:?}");
        assert_eq!(subject.store().quarantine(), named("t2"), "{damage}");
        for id in ["t1", "t3"] {
            assert!(subject.store().task(&anyone(), &id.into(), u64::MAX).await.unwrap().is_some());
        }
        assert_eq!(listed(&subject, 10, None).await, (vec!["t3".to_owned(), "t1".to_owned()], None), "{damage}");
        // The same holds page by page: no page but the last is empty.
        let (first, next) = listed(&subject, 1, None).await;
        let (second, next) = listed(&subject, 1, next).await;
        assert_eq!((first, second, next), (vec!["t3".to_owned()], vec!["t1".to_owned()], None), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_log_costs_its_own_task() {
    let mut subject = make();
    for id in ["t1", "t2"] {
        let mut writer = RecordWriter::opened(&subject, id).await;
        writer.append(&subject, vec![status(&subject, TaskState::Working, Some("busy"))]).await;
    }
    subject.damage("UPDATE log SET record = '{' WHERE log_no >> 24 = 1");
    let read = subject.store().log(TaskKey(1), 0, 10).await;
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    assert_eq!(subject.store().quarantine(), named("t1"));
    let claimed = claim(&subject, 10).await;
    assert_eq!(claimed.iter().map(|run| run.stored.head.id.as_str()).collect::<Vec<_>>(), ["t2"]);
}

/// A webhook of this record, due now.
async fn with_webhook(subject: &OnFile, id: &str) {
    let mut writer = RecordWriter::opened(subject, id).await;
    let mut commit = writer.commit(subject, Vec::new());
    let config = webhook(&writer, "p");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    commit.head = Arc::new(Head { push_configs: 1, ..Head::clone(&commit.head) });
    writer.write(subject, commit).await;
}

/// A rollback to an older build leaves such rows.
#[tokio::test]
async fn a_webhook_of_an_unknown_dialect_stops_no_other() {
    let mut subject = make();
    for id in ["t1", "t2", "t3"] {
        with_webhook(&subject, id).await;
    }
    subject.write_as_another_build("UPDATE push SET dialect = '9.9' WHERE task_no = 1");
    let store = subject.store();
    let mut ids = Vec::new();
    for _ in 0..3 {
        for delivery in store.claim_deliveries(1, 60_000).await.unwrap() {
            ids.push(delivery.task_id.to_string());
            store.settle_deliveries(vec![(delivery.claim(), DeliveryOutcome::Delivered { seq: 1 })]).await.unwrap();
        }
    }
    assert_eq!(ids, ["t2", "t3"]);
    let webhook = DamagedRow::Webhook { task_id: "t1".into(), config_id: "p".into() };
    assert_eq!(store.quarantine(), Quarantine { rows: 1, named: vec![webhook] });
    assert_eq!(store.next_delivery_at().await.unwrap(), None, "a damaged delivery is not scheduled");
    let page = store.outbox().page(OutboxQuery { state: None, after: None, limit: 10 }).await.unwrap();
    assert_eq!(page.entries, []);
    assert_eq!(store.push_configs(TaskKey(1)).await.unwrap().len(), 1, "the config can still be read");
    let faults = faults_of(&subject.path());
    let expected = "task t1: webhook p is for the dialect 9.9, which this build does not know";
    assert!(faults.iter().any(|fault| fault == expected), "{faults:?}");
}

#[tokio::test]
async fn the_operators_list_passes_over_what_it_cannot_read() {
    let mut subject = make();
    for id in ["t1", "t2"] {
        with_webhook(&subject, id).await;
    }
    subject.write_as_another_build("UPDATE push SET dialect = '9.9', parked = 1, due_at = NULL WHERE task_no = 1");
    let store = subject.store();
    let outbox = store.outbox();
    let page = outbox.page(OutboxQuery { state: None, after: None, limit: 10 }).await.unwrap();
    assert_eq!(page.entries.iter().map(|entry| entry.task_id.as_str()).collect::<Vec<_>>(), ["t2"]);
    assert_eq!(store.quarantine().rows, 1);
    let key = switchboard_engine::ports::store::DeliveryKey(1);
    assert_eq!(outbox.find(key).await.unwrap(), None);
    assert_eq!(outbox.purge(vec![key]).await.unwrap(), 1, "it can be dropped by its key");
}

#[tokio::test]
async fn a_damaged_task_is_not_removed_and_keeps_no_other_from_going() {
    let mut subject = make();
    for id in ["t1", "t2", "t3"] {
        RecordWriter::completed(&subject, id).await;
    }
    subject.damage("UPDATE task SET state = 99 WHERE id = 't1'");
    subject.clock().advance_ms(40 * DAY_MS);
    // Pruning by age and by number.
    for tasks_max in [1, 1_000] {
        let retention = Retention {
            now: now(&subject),
            events_ms: 7 * DAY_MS,
            tasks_ms: 30 * DAY_MS,
            replies_ms: DAY_MS,
            tasks_max,
            tasks_batch: 0,
        };
        for _ in 0..3 {
            subject.store().prune(retention, 1).await.unwrap();
        }
    }
    let mut left = Vec::new();
    let connection = subject.connect();
    let mut select = connection.prepare("SELECT id FROM task").unwrap();
    let mut rows = select.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        left.push(row.get::<_, String>(0).unwrap());
    }
    assert_eq!(left, ["t1"]);
    assert_eq!(subject.store().quarantine(), named("t1"));
}

/// A damaged row is not written again, and other rows of the batch are not affected.
#[tokio::test]
async fn runs_begin_and_are_given_back_beside_a_damaged_one() {
    let mut subject = make();
    for id in ["t1", "t2", "t3"] {
        RecordWriter::opened(&subject, id).await;
    }
    subject.restart();
    let claimed = claim(&subject, 10).await;
    let held: Vec<_> = claimed.iter().map(|run| (run.stored.key, run.stored.head.fence)).collect();
    subject.is_damaged = true;
    subject.connect().execute("UPDATE task SET turns = 9 WHERE id = 't2'", []).unwrap();
    assert_eq!(subject.store().begin_runs(held.clone()).await.unwrap(), [TaskKey(2)]);
    let released = held.iter().map(|&(key, fence)| Release { key, fence, pause_ms: 0 }).collect();
    subject.store().release_leases(released).await.unwrap();
    let claimed = claim(&subject, 10).await;
    assert_eq!(claimed.iter().map(|run| run.stored.head.id.as_str()).collect::<Vec<_>>(), ["t1", "t3"]);
    assert_eq!(subject.store().quarantine(), named("t2"));
}

/// A repeated message to a damaged task gets an error; other messages do not.
#[tokio::test]
async fn a_key_of_a_damaged_task_costs_its_own_sender() {
    let mut subject = make();
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opening = writer.opening(&subject, "hello");
    let mut commit = writer.commit(&subject, vec![opening, status(&subject, TaskState::Completed, None)]);
    let accept =
        Accept { key: [1; 32], digest: [2; 32], turn: 1, after_seq: 0, expires: now(&subject).plus_ms(DAY_MS) };
    commit.accept = Some(accept.clone());
    writer.write(&subject, commit).await;
    subject.damage("UPDATE task SET turns = 9");
    let known = subject.store().find_accepted([1; 32]).await;
    assert!(matches!(known, Err(StoreError::Damaged(_))), "{known:?}");
    let mut again = RecordWriter::new(anyone(), "t2", "ctx");
    let opening = again.opening(&subject, "hello");
    let mut commit = again.commit(&subject, vec![opening]);
    commit.accept = Some(accept);
    let refused = again.try_write(&subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Damaged(_)))), "{refused:?}");
    assert_eq!(subject.store().find_accepted([9; 32]).await.unwrap(), None);
}

/// A damaged time does not prevent the start.
#[tokio::test]
async fn a_damaged_time_is_as_good_as_none() {
    let mut subject = make();
    RecordWriter::completed(&subject, "t1").await;
    let updated = now(&subject);
    subject.clock().advance_ms(5_000);
    subject.damage("UPDATE meta SET value = 1 WHERE name = 'clock_seen'");
    assert_eq!(subject.store().clock_record().last_seen, Some(updated));
}
