//! Behaviours when the wall clock is set back: each waiting time by the store's clock keeps its length. Each behaviour
//! runs with a store that stays open and with one that is opened after the clock was set.

use std::sync::Arc;

use switchboard_core::lifecycle::Head;
use switchboard_core::model::Dialect;

use super::Subject;
use super::given::{self, LEASE_MS, RecordWriter, anyone, now, webhook};
use crate::ports::store::{Accept, CommitError, Delivery, DeliveryOutcome, PushChange, Release};

const DAY_MS: i64 = 86_400_000;
const CLAIM_MS: u32 = 60_000;

async fn claimed(subject: &dyn Subject) -> usize {
    given::claim(subject, 10).await.len()
}

async fn deliveries(subject: &dyn Subject) -> Vec<Delivery> {
    subject.store().claim_deliveries(10, CLAIM_MS).await.expect("deliveries are claimed")
}

/// Sets the clock back by a day while the store is open, or while it is closed.
async fn set_back(subject: &mut dyn Subject, is_open: bool) {
    // A server calls its store all the time, so the store has seen this time.
    assert_eq!(claimed(subject).await, 0);
    let then = now(subject).plus_ms(-DAY_MS);
    subject.clock().set(then);
    if !is_open {
        subject.restart();
    }
    // A store reads the time when it is called.
    assert_eq!(claimed(subject).await, 0);
}

/// A record with a webhook that has something to deliver.
async fn with_webhook(subject: &dyn Subject, id: &str) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, id).await;
    let mut commit = writer.commit(subject, Vec::new());
    let config = webhook(&writer, "p1");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    commit.head = Arc::new(Head { push_configs: 1, ..Head::clone(&commit.head) });
    writer.write(subject, commit).await;
    writer
}

pub async fn a_lease_lasts_as_long_as_it_would_have_when_the_clock_is_set_back(subject: &mut dyn Subject) {
    let writer = RecordWriter::opened(subject, "t1").await;
    subject.clock().advance_ms(10_000);
    set_back(subject, true).await;
    subject.clock().advance_ms(i64::from(LEASE_MS) - 10_000 - 1);
    assert_eq!(claimed(subject).await, 0);
    subject.clock().advance_ms(1);
    assert_eq!(claimed(subject).await, 1);
    drop(writer);
}

pub async fn a_pause_lasts_as_long_as_it_would_have_when_the_clock_is_set_back(subject: &mut dyn Subject) {
    for (id, is_open) in [("t1", true), ("t2", false)] {
        let writer = RecordWriter::opened(subject, id).await;
        let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 300_000 };
        subject.store().release_leases(vec![released]).await.expect("leases are given back");
        set_back(subject, is_open).await;
        subject.clock().advance_ms(299_999);
        assert_eq!(claimed(subject).await, 0, "open: {is_open}");
        subject.clock().advance_ms(1);
        assert_eq!(claimed(subject).await, 1, "open: {is_open}");
        // The run is released for long, so that the next claim does not find it.
        let released = Release { key: writer.key(), fence: writer.head.fence + 1, pause_ms: 100 * DAY_MS };
        subject.store().release_leases(vec![released]).await.expect("leases are given back");
    }
}

pub async fn a_delivery_waits_as_long_as_it_would_have_when_the_clock_is_set_back(subject: &mut dyn Subject) {
    for (id, is_open) in [("t1", true), ("t2", false)] {
        let writer = with_webhook(subject, id).await;
        let delivery = deliveries(subject).await.remove(0);
        let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 20_000, error: "500".to_owned() };
        subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.expect("deliveries are settled");
        let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 100 * DAY_MS };
        subject.store().release_leases(vec![released]).await.expect("leases are given back");
        set_back(subject, is_open).await;
        subject.clock().advance_ms(19_999);
        assert_eq!(deliveries(subject).await.len(), 0, "open: {is_open}");
        subject.clock().advance_ms(1);
        let delivery = deliveries(subject).await.remove(0);
        assert_eq!((delivery.task_id.as_str(), delivery.failures), (id, 1));
        let outcome = DeliveryOutcome::Delivered { seq: 1 };
        subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.expect("deliveries are settled");
    }
}

pub async fn a_claim_of_a_delivery_is_known_after_the_clock_was_set_back(subject: &mut dyn Subject) {
    let writer = with_webhook(subject, "t1").await;
    let delivery = deliveries(subject).await.remove(0);
    set_back(subject, true).await;
    assert_eq!(deliveries(subject).await.len(), 0, "it is under way");
    let outcome = DeliveryOutcome::Delivered { seq: 1 };
    subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.expect("deliveries are settled");
    assert_eq!(subject.store().outbox().find(delivery.key).await.expect("answers"), None, "the outcome was recorded");

    // If it is not settled, the claim runs out like any other.
    let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 100 * DAY_MS };
    subject.store().release_leases(vec![released]).await.expect("leases are given back");
    with_webhook(subject, "t2").await;
    assert_eq!(deliveries(subject).await.len(), 1);
    subject.clock().set(now(subject).plus_ms(-DAY_MS));
    assert_eq!(deliveries(subject).await.len(), 0);
    subject.clock().advance_ms(CLAIM_MS.into());
    assert_eq!(deliveries(subject).await.len(), 1);
}

/// A message that was accepted a minute ago must still be recognised when the clock is set ahead by a month.
pub async fn a_key_is_known_while_ages_do_not_count(subject: &mut dyn Subject) {
    let accept = Accept { key: [1; 32], digest: [2; 32], turn: 1, after_seq: 0, expires: now(subject).plus_ms(DAY_MS) };
    let open = async |subject: &dyn Subject, id: &str| {
        let mut writer = RecordWriter::new(anyone(), id, "ctx");
        let opening = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opening]);
        let expires = now(subject).plus_ms(DAY_MS);
        (commit.lease, commit.accept) = (given::TAKEN, Some(Accept { expires, ..accept.clone() }));
        writer.try_write(subject, commit).await
    };
    open(subject, "t1").await.expect("it is new");
    subject.clock().advance_ms(31 * DAY_MS);
    subject.store().hold_until(now(subject).plus_ms(DAY_MS)).await.expect("it is remembered");
    for is_open in [true, false] {
        if !is_open {
            subject.restart();
        }
        let known = subject.store().find_accepted([1; 32]).await.expect("answers").expect("it is known");
        assert_eq!(known.task_id.as_str(), "t1", "open: {is_open}");
        let refused = open(subject, "t2").await;
        assert!(matches!(refused, Err(CommitError::Duplicate(_))), "open: {is_open}: {refused:?}");
    }
    // A day later the window has passed.
    subject.clock().advance_ms(DAY_MS);
    assert_eq!(subject.store().find_accepted([1; 32]).await.expect("answers"), None);
    open(subject, "t2").await.expect("the key can be used again");
}
