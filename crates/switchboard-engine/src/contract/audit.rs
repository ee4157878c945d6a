//! Behaviours of the audit log.

use switchboard_core::model::TaskState;

use super::Subject;
use super::given::{RecordWriter, now, status};
use crate::ports::AuditLog;
use crate::ports::audit::{AuditEntry, AuditEvent, AuditPage, AuditRetention, Decision};
use crate::ports::store::CommitError;

fn log(subject: &dyn Subject) -> &dyn AuditLog {
    subject.store().audit().expect("this store keeps an audit log")
}

fn entry(subject: &dyn Subject, principal: &str) -> AuditEntry {
    let entry = AuditEntry::new(now(subject), AuditEvent::Refusal, Decision::Refused, "SendMessage");
    AuditEntry { principal: principal.to_owned(), ..entry }
}

/// Everything that is kept, after the chain was checked.
async fn kept(subject: &dyn Subject) -> AuditPage {
    let log = log(subject);
    log.flush().await.expect("entries are written");
    let page = log.page(0, 1000).await.expect("entries are read");
    let mut position = page.anchor;
    for entry in &page.entries {
        position = position.follow(&page.chain, entry).expect("the chain is whole");
    }
    page
}

/// The principals of the entries, which tests count with.
async fn principals(subject: &dyn Subject) -> Vec<String> {
    let principal = |record: &str| {
        let value: serde_json::Value = serde_json::from_str(record).expect("a record is JSON");
        value["principal"].as_str().unwrap_or_default().to_owned()
    };
    kept(subject).await.entries.iter().map(|entry| principal(&entry.record)).collect()
}

pub async fn entries_are_chained_in_the_order_in_which_they_came(subject: &mut dyn Subject) {
    assert_eq!(kept(subject).await.entries, []);
    log(subject).record(entry(subject, "ann"));
    RecordWriter::completed(subject, "t1").await;
    log(subject).record(entry(subject, "bob"));
    log(subject).record(entry(subject, "cid"));
    assert_eq!(principals(subject).await, ["ann", "bob", "cid"]);
    let page = kept(subject).await;
    assert_eq!(page.anchor.no, 0);
    assert_eq!(page.entries[0].record, entry(subject, "ann").record(&page.chain, 1));
    let rest = log(subject).page(1, 1).await.expect("entries are read");
    assert_eq!(rest.entries, page.entries[1..2]);
}

pub async fn the_entry_of_a_commit_is_written_if_the_commit_is(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let stale = writer.clone();
    let working = |subject: &dyn Subject| vec![status(subject, TaskState::Working, Some("half way"))];
    let mut commit = writer.commit(subject, working(subject));
    commit.audit = Some(Box::new(entry(subject, "first")));
    writer.write(subject, commit).await;
    let mut commit = stale.commit(subject, working(subject));
    commit.audit = Some(Box::new(entry(subject, "late")));
    let refused = subject.store().commit(commit).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(principals(subject).await, ["first"]);
}

pub async fn the_chain_goes_on_after_a_restart(subject: &mut dyn Subject) {
    log(subject).record(entry(subject, "before"));
    // Not flushed: closing a store writes what it was given.
    subject.restart();
    log(subject).record(entry(subject, "after"));
    assert_eq!(principals(subject).await, ["before", "after"]);
    assert_eq!(kept(subject).await.anchor.no, 0);
}

pub async fn old_entries_are_forgotten_and_the_rest_is_verifiable(subject: &mut dyn Subject) {
    for principal in ["a", "b", "c"] {
        log(subject).record(entry(subject, principal));
        log(subject).flush().await.expect("entries are written");
        subject.clock().advance_ms(1000);
    }
    let retention = AuditRetention { now: now(subject), entries_ms: 2000, entries_max: 100 };
    assert_eq!(log(subject).forget(retention, 1).await.expect("answers"), 1);
    assert_eq!(log(subject).forget(retention, 10).await.expect("answers"), 1);
    assert_eq!(log(subject).forget(retention, 10).await.expect("answers"), 0);
    for is_open in [true, false] {
        if !is_open {
            subject.restart();
        }
        assert_eq!(kept(subject).await.anchor.no, 2, "open: {is_open}");
        assert_eq!(principals(subject).await, ["c"]);
    }
    // If nothing is left, the chain goes on where it was.
    let retention = AuditRetention { entries_ms: 0, ..retention };
    assert_eq!(log(subject).forget(retention, 10).await.expect("answers"), 1);
    subject.restart();
    log(subject).record(entry(subject, "d"));
    let page = kept(subject).await;
    assert_eq!((page.anchor.no, page.entries[0].no), (3, 4));
}

pub async fn the_oldest_of_too_many_entries_are_forgotten(subject: &mut dyn Subject) {
    for principal in ["a", "b", "c", "d"] {
        log(subject).record(entry(subject, principal));
    }
    log(subject).flush().await.expect("entries are written");
    let retention = AuditRetention { now: now(subject), entries_ms: 1000, entries_max: 2 };
    assert_eq!(log(subject).forget(retention, 10).await.expect("answers"), 2);
    assert_eq!(principals(subject).await, ["c", "d"]);
}
