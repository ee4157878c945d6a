//! Behaviours of the operator's view of deliveries.

use std::sync::Arc;

use switchboard_core::model::{Dialect, TaskState};

use super::Subject;
use super::given::{RecordWriter, now, status, webhook};
use crate::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use crate::ports::store::{Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, PushChange};

/// A task with one webhook that has one update to deliver.
async fn due(subject: &dyn Subject, id: &str) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, id).await;
    let config = webhook(&writer, "p");
    let mut commit = writer.commit(subject, Vec::new());
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    Arc::make_mut(&mut commit.head).push_configs += 1;
    writer.write(subject, commit).await;
    writer
}

async fn claim(subject: &dyn Subject) -> Vec<Delivery> {
    subject.store().claim_deliveries(100, 20_000).await.expect("deliveries are claimed")
}

/// A task whose only delivery became a dead letter.
async fn dead(subject: &dyn Subject, id: &str) -> (RecordWriter, DeliveryKey) {
    let writer = due(subject, id).await;
    let delivery = claim(subject).await.remove(0);
    let outcome = DeliveryOutcome::Parked { delivered_seq: 0, error: "410".to_owned() };
    settle(subject, &delivery, outcome).await;
    (writer, delivery.key)
}

async fn settle(subject: &dyn Subject, delivery: &Delivery, outcome: DeliveryOutcome) {
    subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.expect("deliveries are settled");
}

async fn page(
    subject: &dyn Subject,
    state: Option<OutboxState>,
    after: Option<DeliveryKey>,
    limit: usize,
) -> OutboxPage {
    subject.store().outbox().page(OutboxQuery { state, after, limit }).await.expect("answers")
}

async fn find(subject: &dyn Subject, key: DeliveryKey) -> Option<OutboxEntry> {
    subject.store().outbox().find(key).await.expect("answers")
}

async fn redrive(subject: &dyn Subject, keys: Vec<DeliveryKey>) -> usize {
    subject.store().outbox().redrive(keys).await.expect("answers")
}

async fn purge(subject: &dyn Subject, keys: Vec<DeliveryKey>) -> usize {
    subject.store().outbox().purge(keys).await.expect("answers")
}

pub async fn the_outbox_shows_what_waits_is_under_way_or_was_given_up_on(subject: &mut dyn Subject) {
    let (writer, key) = dead(subject, "t-dead").await;
    let under_way = due(subject, "t-under-way").await;
    claim(subject).await;
    let waiting = due(subject, "t-waiting").await;
    let mut done = due(subject, "t-done").await;
    done.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    for delivery in claim(subject).await {
        let outcome = if delivery.task_id == done.head.id {
            DeliveryOutcome::Delivered { seq: 2 }
        } else {
            DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 700, error: "500".to_owned() }
        };
        settle(subject, &delivery, outcome).await;
    }

    let all = page(subject, None, None, 100).await;
    let shown: Vec<_> = all.entries.iter().map(|entry| (entry.task_id.clone(), entry.state)).collect();
    let expected = [
        (writer.head.id.clone(), OutboxState::Dead),
        (under_way.head.id.clone(), OutboxState::UnderWay),
        (waiting.head.id.clone(), OutboxState::Waiting),
    ];
    assert_eq!((shown.as_slice(), all.next), (expected.as_slice(), None));
    for (id, state) in expected {
        let some = page(subject, Some(state), None, 100).await.entries;
        assert_eq!(some.iter().map(|entry| &entry.task_id).collect::<Vec<_>>(), [&id]);
    }
    let expected = OutboxEntry {
        key,
        scope: writer.scope.clone(),
        task_key: writer.key(),
        task_id: writer.head.id.clone(),
        config_id: "p".into(),
        url: webhook(&writer, "p").url,
        dialect: Dialect::V1_0,
        state: OutboxState::Dead,
        delivered_seq: 0,
        task_seq: 1,
        failures: 1,
        due: None,
        last_error: Some("410".to_owned()),
        last_attempt_at: Some(now(subject)),
        created_at: now(subject),
    };
    assert_eq!(find(subject, key).await, Some(expected.clone()));
    let waiting = &all.entries[2];
    assert_eq!((waiting.due, waiting.failures), (Some(now(subject).plus_ms(700)), 1));
    subject.restart();
    assert_eq!(find(subject, key).await, Some(expected));
    assert_eq!(find(subject, DeliveryKey(9_999)).await, None);
}

pub async fn outbox_pages_join_up(subject: &mut dyn Subject) {
    let mut keys = Vec::new();
    for number in 0..7 {
        keys.push(dead(subject, &format!("t{number}")).await.1);
        due(subject, &format!("other-{number}")).await;
        claim(subject).await;
    }
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = page(subject, Some(OutboxState::Dead), after, 3).await;
        assert!(page.entries.len() <= 3);
        found.extend(page.entries.iter().map(|entry| entry.key));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, keys);
}

pub async fn a_redriven_delivery_is_due_and_counts_anew(subject: &mut dyn Subject) {
    let (mut writer, key) = dead(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    assert_eq!(redrive(subject, vec![key, DeliveryKey(9_999)]).await, 1);
    let delivery = claim(subject).await.remove(0);
    assert_eq!((delivery.key, delivery.delivered_seq, delivery.failures), (key, 0, 0));
    // A delivery under way is not changed.
    assert_eq!(redrive(subject, vec![key]).await, 0);
    let outcome = DeliveryOutcome::Retry { delivered_seq: 1, wait_ms: 60_000, error: "500".to_owned() };
    settle(subject, &delivery, outcome).await;
    assert_eq!(claim(subject).await.len(), 0);
    // A delivery that waits becomes due.
    assert_eq!(redrive(subject, vec![key]).await, 1);
    let delivery = claim(subject).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.failures), (1, 0));
    settle(subject, &delivery, DeliveryOutcome::Delivered { seq: 2 }).await;
    assert_eq!(redrive(subject, vec![key]).await, 0, "it has delivered everything");
    assert_eq!(find(subject, key).await, None);
}

pub async fn what_waits_is_counted_up_to_a_limit(subject: &mut dyn Subject) {
    let depth = async |subject: &dyn Subject, at_most| subject.store().outbox().depth(at_most).await.expect("answers");
    assert_eq!(depth(subject, 10).await, 0);
    for id in ["t1", "t2", "t3"] {
        due(subject, id).await;
    }
    assert_eq!((depth(subject, 10).await, depth(subject, 2).await), (3, 2));
    let claimed = claim(subject).await;
    assert_eq!(depth(subject, 10).await, 3, "one that is under way may come back");
    settle(subject, &claimed[0], DeliveryOutcome::Delivered { seq: 1 }).await;
    settle(subject, &claimed[1], DeliveryOutcome::Parked { delivered_seq: 0, error: "410".to_owned() }).await;
    assert_eq!(depth(subject, 10).await, 1, "neither what was delivered nor a dead letter waits");
}

pub async fn a_purged_delivery_drops_its_backlog_and_keeps_its_webhook(subject: &mut dyn Subject) {
    let (mut writer, key) = dead(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    assert_eq!(purge(subject, vec![key, DeliveryKey(9_999)]).await, 1);
    assert_eq!(find(subject, key).await, None);
    assert_eq!(claim(subject).await.len(), 0);
    assert_eq!(subject.store().push_configs(writer.key()).await.expect("answers").len(), 1);
    subject.restart();
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let delivery = claim(subject).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.task_seq, delivery.failures), (2, 3, 0));
    // Only dead letters can be dropped.
    assert_eq!(purge(subject, vec![key]).await, 0);
}

pub async fn a_postponed_delivery_has_not_failed(subject: &mut dyn Subject) {
    let mut writer = due(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    let delivery = claim(subject).await.remove(0);
    let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 0, error: "500".to_owned() };
    settle(subject, &delivery, outcome).await;
    let before = find(subject, delivery.key).await.expect("it waits");
    subject.clock().advance_ms(10);
    let delivery = claim(subject).await.remove(0);
    let due = now(subject).plus_ms(1_000);
    settle(subject, &delivery, DeliveryOutcome::Postponed { delivered_seq: 0, wait_ms: 1_000 }).await;
    let after = find(subject, delivery.key).await.expect("it waits");
    assert_eq!(after, OutboxEntry { due: Some(due), ..before });
    assert_eq!(claim(subject).await.len(), 0);
    subject.clock().advance_ms(1_000);
    let delivery = claim(subject).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.failures), (0, 1));
    settle(subject, &delivery, DeliveryOutcome::Postponed { delivered_seq: 1, wait_ms: 0 }).await;
    let delivery = claim(subject).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.failures), (1, 0), "an accepted update resets the count of failures");
}

pub async fn many_deliveries_are_settled_at_once(subject: &mut dyn Subject) {
    for number in 0..5 {
        due(subject, &format!("t{number}")).await;
    }
    let settled = claim(subject).await.into_iter().map(|delivery| {
        let outcome = match delivery.task_id.as_str() {
            "t0" => DeliveryOutcome::Parked { delivered_seq: 0, error: "410".to_owned() },
            "t1" => DeliveryOutcome::Postponed { delivered_seq: 0, wait_ms: 5 },
            _ => DeliveryOutcome::Delivered { seq: 1 },
        };
        (delivery.claim(), outcome)
    });
    // A delivery whose config was deleted meanwhile does not affect the others.
    let gone = (DeliveryClaim { key: DeliveryKey(9_999), until: now(subject) }, DeliveryOutcome::Delivered { seq: 1 });
    let settled = std::iter::once(gone).chain(settled).collect();
    subject.store().settle_deliveries(settled).await.expect("deliveries are settled");
    let left = page(subject, None, None, 100).await.entries;
    let left: Vec<_> = left.iter().map(|entry| (entry.task_id.as_str(), entry.state)).collect();
    assert_eq!(left, [("t0", OutboxState::Dead), ("t1", OutboxState::Waiting)]);
}
