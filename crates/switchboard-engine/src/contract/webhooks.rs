//! Behaviours of push configs and their delivery cursors.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_core::model::{ConfigId, Dialect, TaskState};

use super::Subject;
use super::given::{AGENT, RecordWriter, now, scope, status, webhook};
use crate::ports::outbox::{OutboxEntry, OutboxState};
use crate::ports::store::{Delivery, DeliveryOutcome, PushChange, Scope};

const CLAIM_MS: u32 = 20_000;

async fn put(subject: &dyn Subject, writer: &mut RecordWriter, id: &str, after_seq: u64) {
    Arc::make_mut(&mut writer.head).push_configs += 1;
    replace(subject, writer, id, after_seq).await;
}

/// Replaces the config with the same id.
async fn replace(subject: &dyn Subject, writer: &mut RecordWriter, id: &str, after_seq: u64) {
    let config = webhook(writer, id);
    let mut commit = writer.commit(subject, Vec::new());
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq }];
    writer.write(subject, commit).await;
}

async fn delete(subject: &dyn Subject, writer: &mut RecordWriter, id: &str) {
    let mut commit = writer.commit(subject, Vec::new());
    commit.push = vec![PushChange::Delete { id: id.into() }];
    Arc::make_mut(&mut commit.head).push_configs -= 1;
    writer.write(subject, commit).await;
}

async fn claim(subject: &dyn Subject, limit: usize) -> Vec<Delivery> {
    subject.store().claim_deliveries(limit, CLAIM_MS).await.expect("deliveries are claimed")
}

async fn settle(subject: &dyn Subject, delivery: &Delivery, outcome: DeliveryOutcome) {
    subject.store().settle_deliveries(vec![(delivery.claim(), outcome)]).await.expect("deliveries are settled");
}

async fn next_at(subject: &dyn Subject) -> Option<i64> {
    let next = subject.store().next_delivery_at().await.expect("answers");
    next.map(|at| at.as_ms() - now(subject).as_ms())
}

async fn progress(subject: &dyn Subject, writer: &mut RecordWriter) {
    writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
}

pub async fn a_config_is_read_back_and_replaced_and_deleted(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 1).await;
    put(subject, &mut writer, "p2", 1).await;
    writer.check(subject).await;
    let ids =
        |configs: Vec<_>| configs.into_iter().map(|c: switchboard_core::model::PushConfig| c.id).collect::<Vec<_>>();
    let stored = subject.store().push_configs(writer.key()).await.expect("answers");
    assert_eq!(stored, [webhook(&writer, "p1"), webhook(&writer, "p2")]);

    let mut other = webhook(&writer, "p1");
    other.url = "https://example.com/other".to_owned();
    other.token = None;
    other.authentication = None;
    let mut commit = writer.commit(subject, Vec::new());
    let change = PushChange::Put { config: other.clone(), dialect: Dialect::V1_0, after_seq: 1 };
    commit.push = vec![change];
    writer.write(subject, commit).await;
    subject.restart();
    let stored = subject.store().push_configs(writer.key()).await.expect("answers");
    assert_eq!(stored.len(), 2);
    assert!(stored.contains(&other), "{stored:?}");

    delete(subject, &mut writer, "p1").await;
    let stored = subject.store().push_configs(writer.key()).await.expect("answers");
    assert_eq!(ids(stored), [ConfigId::from("p2")]);
    writer.check(subject).await;
}

pub async fn a_commit_makes_a_webhook_due_and_a_delivery_settles_it(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 1).await;
    assert_eq!(next_at(subject).await, None);
    assert_eq!(claim(subject, 10).await.len(), 0);

    progress(subject, &mut writer).await;
    assert_eq!(next_at(subject).await, Some(0));
    let claimed = claim(subject, 10).await;
    let delivery = claimed.first().expect("one is due");
    assert_eq!(claimed.len(), 1);
    assert_eq!((delivery.task_key, &delivery.task_id), (writer.key(), &writer.head.id));
    assert_eq!((&delivery.context_id, &delivery.config), (&writer.head.context_id, &webhook(&writer, "p1")));
    assert_eq!((delivery.dialect, delivery.delivered_seq, delivery.failures), (Dialect::V1_0, 1, 0));
    settle(subject, delivery, DeliveryOutcome::Delivered { seq: 2 }).await;
    assert_eq!(next_at(subject).await, None);

    // Commits without visible events give it nothing to deliver.
    writer.append(subject, Vec::new()).await;
    assert_eq!(next_at(subject).await, None);
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    assert_eq!(claim(subject, 10).await[0].delivered_seq, 2);
}

pub async fn a_cursor_starts_after_what_it_is_told(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    progress(subject, &mut writer).await;
    put(subject, &mut writer, "from-the-start", 0).await;
    put(subject, &mut writer, "from-now", 2).await;
    let claimed = claim(subject, 10).await;
    let found: Vec<_> = claimed.iter().map(|d| (d.config.id.as_str(), d.delivered_seq)).collect();
    assert_eq!(found, [("from-the-start", 0)]);

    // A config that comes with the message that opens the task.
    let mut writer = RecordWriter::new(writer.scope, "t2", "c2");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    let config = webhook(&writer, "inline");
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
    Arc::make_mut(&mut commit.head).push_configs = 1;
    writer.write(subject, commit).await;
    let claimed = claim(subject, 10).await;
    let found: Vec<_> = claimed.iter().map(|d| (d.config.id.as_str(), d.delivered_seq)).collect();
    assert_eq!(found, [("inline", 0)]);
    writer.check(subject).await;
}

pub async fn a_claimed_delivery_is_hidden_until_its_claim_runs_out(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    assert_eq!(claim(subject, 10).await.len(), 1);
    assert_eq!(claim(subject, 10).await.len(), 0);
    assert_eq!(next_at(subject).await, Some(i64::from(CLAIM_MS)));
    subject.clock().advance_ms(i64::from(CLAIM_MS) - 1);
    assert_eq!(claim(subject, 10).await.len(), 0);
    subject.clock().advance_ms(1);
    assert_eq!(claim(subject, 10).await.len(), 1);
}

pub async fn events_during_a_delivery_make_it_due_again(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    let delivery = claim(subject, 1).await.remove(0);
    progress(subject, &mut writer).await;
    assert_eq!(claim(subject, 1).await.len(), 0, "one delivery at a time");
    settle(subject, &delivery, DeliveryOutcome::Delivered { seq: 1 }).await;
    let delivery = claim(subject, 1).await.remove(0);
    assert_eq!(delivery.delivered_seq, 1);
    settle(subject, &delivery, DeliveryOutcome::Delivered { seq: 2 }).await;
    assert_eq!(next_at(subject).await, None);
}

pub async fn a_failed_delivery_waits_and_counts(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    for failures in 0..3 {
        let delivery = claim(subject, 1).await.remove(0);
        assert_eq!((delivery.delivered_seq, delivery.failures), (0, failures));
        let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 5000, error: "500".to_owned() };
        settle(subject, &delivery, outcome).await;
        // New updates do not bring the next attempt forward.
        progress(subject, &mut writer).await;
        assert_eq!(next_at(subject).await, Some(5000));
        subject.clock().advance_ms(4999);
        assert_eq!(claim(subject, 1).await.len(), 0);
        subject.clock().advance_ms(1);
    }
    // Accepted updates count, and the count of failures is reset.
    let delivery = claim(subject, 1).await.remove(0);
    let outcome = DeliveryOutcome::Retry { delivered_seq: 2, wait_ms: 0, error: "reset".to_owned() };
    settle(subject, &delivery, outcome).await;
    let delivery = claim(subject, 1).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.failures), (2, 1));
    settle(subject, &delivery, DeliveryOutcome::Delivered { seq: 3 }).await;
    let delivery = claim(subject, 1).await.remove(0);
    assert_eq!((delivery.delivered_seq, delivery.failures), (3, 0));
}

pub async fn a_parked_delivery_waits_for_nobody(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    let delivery = claim(subject, 1).await.remove(0);
    settle(subject, &delivery, DeliveryOutcome::Parked { delivered_seq: 0, error: "gone".to_owned() }).await;
    progress(subject, &mut writer).await;
    assert_eq!(next_at(subject).await, None);
    subject.restart();
    assert_eq!(claim(subject, 1).await.len(), 0);
    assert_eq!(subject.store().push_configs(writer.key()).await.expect("answers").len(), 1);
}

pub async fn a_late_outcome_for_a_replaced_config_is_ignored(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    let old = claim(subject, 1).await.remove(0);
    replace(subject, &mut writer, "p1", 0).await;
    settle(subject, &old, DeliveryOutcome::Parked { delivered_seq: 1, error: "gone".to_owned() }).await;
    let new = claim(subject, 1).await.remove(0);
    assert_ne!(new.key, old.key);
    assert_eq!(new.delivered_seq, 0);
    delete(subject, &mut writer, "p1").await;
    settle(subject, &new, DeliveryOutcome::Delivered { seq: 1 }).await;
    assert_eq!(next_at(subject).await, None);
}

pub async fn a_late_outcome_of_a_lost_claim_tells_only_what_was_taken(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    progress(subject, &mut writer).await;
    progress(subject, &mut writer).await;
    let lost = claim(subject, 1).await.remove(0);
    subject.clock().advance_ms(CLAIM_MS.into());
    let held = claim(subject, 1).await.remove(0);
    let found = async |subject: &dyn Subject| {
        subject.store().outbox().find(held.key).await.expect("answers").expect("it is not over")
    };
    let under_way = found(subject).await;
    assert_eq!((under_way.state, under_way.due), (OutboxState::UnderWay, Some(held.claimed_until)));
    let late = |delivered_seq| {
        [
            DeliveryOutcome::Parked { delivered_seq, error: "gone".to_owned() },
            DeliveryOutcome::Retry { delivered_seq, wait_ms: 5, error: "500".to_owned() },
            DeliveryOutcome::Postponed { delivered_seq, wait_ms: 5 },
            DeliveryOutcome::Delivered { seq: delivered_seq },
        ]
    };
    for outcome in late(0) {
        settle(subject, &lost, outcome).await;
        assert_eq!(found(subject).await, under_way);
    }
    settle(subject, &lost, DeliveryOutcome::Delivered { seq: 1 }).await;
    assert_eq!(found(subject).await, OutboxEntry { delivered_seq: 1, ..under_way.clone() });

    // The holder of the claim settles it as before.
    let due = now(subject).plus_ms(60_000);
    let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 60_000, error: "reset".to_owned() };
    settle(subject, &held, outcome).await;
    let waiting = found(subject).await;
    assert_eq!((waiting.state, waiting.delivered_seq, waiting.failures), (OutboxState::Waiting, 1, 1));
    assert_eq!(waiting.due, Some(due));
    for outcome in late(2) {
        settle(subject, &lost, outcome).await;
        assert_eq!(found(subject).await, OutboxEntry { delivered_seq: 2, ..waiting.clone() });
    }
    writer.check(subject).await;
}

pub async fn a_claim_that_ran_out_and_that_nobody_took_still_settles(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    let delivery = claim(subject, 1).await.remove(0);
    subject.clock().advance_ms(10 * i64::from(CLAIM_MS));
    let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 5_000, error: "500".to_owned() };
    settle(subject, &delivery, outcome).await;
    assert_eq!(next_at(subject).await, Some(5_000));
    subject.clock().advance_ms(5_000);
    assert_eq!(claim(subject, 1).await.remove(0).failures, 1);
}

pub async fn deliveries_come_in_the_order_they_fell_due(subject: &mut dyn Subject) {
    for number in [3, 1, 2] {
        let mut writer = RecordWriter::opened(subject, &format!("t{number}")).await;
        subject.clock().advance_ms(5);
        put(subject, &mut writer, "p", 0).await;
    }
    let ids = |claimed: Vec<Delivery>| claimed.into_iter().map(|d| d.task_id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(claim(subject, 2).await), ["t3", "t1"]);
    assert_eq!(ids(claim(subject, 2).await), ["t2"]);
}

/// Opens a task of an owner with so many webhooks, which are all due.
async fn due_for(subject: &dyn Subject, scope: Scope, id: &str, webhooks: usize) {
    let mut writer = RecordWriter::new(scope, id, "ctx");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    let put = |number: usize| {
        let config = webhook(&writer, &format!("{id}-{number}"));
        PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }
    };
    commit.push = (0..webhooks).map(put).collect();
    Arc::make_mut(&mut commit.head).push_configs = u32::try_from(webhooks).expect("a few");
    writer.write(subject, commit).await;
}

/// How many of a claim are for each principal, in order.
async fn claimed_by_owner(subject: &dyn Subject, limit: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for delivery in claim(subject, limit).await {
        *counts.entry(delivery.scope.owner.principal.as_str().to_owned()).or_default() += 1;
    }
    counts
}

fn counted<const N: usize>(counts: [(&str, usize); N]) -> BTreeMap<String, usize> {
    counts.into_iter().map(|(owner, count)| (owner.to_owned(), count)).collect()
}

pub async fn the_backlog_of_one_owner_does_not_hide_the_delivery_of_another(subject: &mut dyn Subject) {
    let subject = &*subject;
    for number in 0..50 {
        due_for(subject, scope("", "ann", AGENT), &format!("a{number}"), 100).await;
    }
    subject.clock().advance_ms(1);
    due_for(subject, scope("", "bob", AGENT), "b", 1).await;
    assert_eq!(claimed_by_owner(subject, 256).await, counted([("ann", 255), ("bob", 1)]));
    let mut left = 5_000 - 255;
    while left > 0 {
        let claimed = claimed_by_owner(subject, 1_000).await;
        assert_eq!(claimed, counted([("ann", left.min(1_000))]), "the others follow, each once");
        left -= left.min(1_000);
    }
    assert_eq!(claimed_by_owner(subject, 10).await, counted([]));
}

pub async fn owners_share_a_claim_whatever_agents_they_use(subject: &mut dyn Subject) {
    let subject = &*subject;
    for agent in ["one", "two", "three"] {
        due_for(subject, scope("", "ann", agent), &format!("a-{agent}"), 10).await;
        subject.clock().advance_ms(1);
    }
    due_for(subject, scope("", "bob", "one"), "b", 10).await;
    due_for(subject, scope("acme", "cid", "one"), "c", 1).await;
    // A third for each, and what one does not need goes to those that have waited longest.
    assert_eq!(claimed_by_owner(subject, 9).await, counted([("ann", 5), ("bob", 3), ("cid", 1)]));
    assert_eq!(claimed_by_owner(subject, 8).await, counted([("ann", 4), ("bob", 4)]));
    assert_eq!(claimed_by_owner(subject, 100).await, counted([("ann", 21), ("bob", 3)]));
}

pub async fn owners_take_turns_if_there_are_more_than_a_claim_takes(subject: &mut dyn Subject) {
    let subject = &*subject;
    due_for(subject, scope("", "hoarder", AGENT), "h", 40).await;
    subject.clock().advance_ms(1);
    for number in 0..9 {
        due_for(subject, scope("", &format!("owner-{number}"), AGENT), &format!("t{number}"), 3).await;
    }
    let mut owners = BTreeMap::new();
    for _ in 0..4 {
        owners.extend(claimed_by_owner(subject, 4).await);
    }
    assert_eq!(owners.len(), 10, "each has had a turn: {owners:?}");
}

pub async fn owners_whose_deliveries_wait_do_not_hide_those_that_are_due(subject: &mut dyn Subject) {
    let subject = &*subject;
    for number in 0..5 {
        due_for(subject, scope("", &format!("owner-{number}"), AGENT), &format!("t{number}"), 1).await;
    }
    for delivery in claim(subject, 10).await {
        let outcome = DeliveryOutcome::Retry { delivered_seq: 0, wait_ms: 3_600_000, error: "500".to_owned() };
        settle(subject, &delivery, outcome).await;
    }
    due_for(subject, scope("", "zoe", AGENT), "z", 5).await;
    for count in [2, 2, 1] {
        assert_eq!(claimed_by_owner(subject, 2).await, counted([("zoe", count)]));
    }
    assert_eq!(claimed_by_owner(subject, 2).await, counted([]));
}

pub async fn a_delivery_under_way_is_due_again_after_a_restart(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    put(subject, &mut writer, "p1", 0).await;
    progress(subject, &mut writer).await;
    let delivery = claim(subject, 1).await.remove(0);
    settle(subject, &delivery, DeliveryOutcome::Delivered { seq: 1 }).await;
    assert_eq!(claim(subject, 1).await.len(), 1);
    subject.restart();
    assert_eq!(next_at(subject).await, Some(0));
    assert_eq!(claim(subject, 1).await.remove(0).delivered_seq, 1);
}
