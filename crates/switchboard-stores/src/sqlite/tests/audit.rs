//! The audit log in the file: with which transactions it is written, and what `verify` says of a log that was changed.

use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, now};
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, AuditRetention, Decision, read_export_line};

use super::super::{append_audit, read_audit};
use super::{OnFile, faults_of, make};

fn record(subject: &OnFile, principal: &str) {
    let entry = AuditEntry::new(now(subject), AuditEvent::Refusal, Decision::Refused, "SendMessage");
    subject.store().audit().unwrap().record(AuditEntry { principal: principal.to_owned(), ..entry });
}

async fn three_entries() -> OnFile {
    let subject = make();
    for principal in ["ann", "bob", "cid"] {
        record(&subject, principal);
    }
    subject.store().audit().unwrap().flush().await.unwrap();
    subject
}

fn count(subject: &OnFile) -> i64 {
    subject.connect().query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn entries_are_written_with_the_next_commit() {
    let subject = make();
    let batches = subject.store().stats().batches;
    for principal in ["ann", "bob", "cid"] {
        record(&subject, principal);
    }
    RecordWriter::completed(&subject, "t1").await;
    assert_eq!(subject.store().stats().batches, batches + 1, "they share the transaction of the commit");
    assert_eq!(count(&subject), 3);
}

#[tokio::test]
async fn an_entry_that_no_commit_follows_is_written_all_the_same() {
    let subject = make();
    record(&subject, "ann");
    // The writer wakes by itself; the watchdog ends the test if it does not.
    while count(&subject) == 0 {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn more_entries_than_a_transaction_takes_are_all_written() {
    let subject = make();
    for _ in 0..2_500 {
        record(&subject, "ann");
    }
    subject.store().audit().unwrap().flush().await.unwrap();
    assert_eq!(count(&subject), 2_500);
    for _ in 0..10_010 {
        record(&subject, "bob");
    }
    subject.store().audit().unwrap().flush().await.unwrap();
    let sql = "SELECT coalesce(sum(record ->> '$.count'), 0) FROM audit WHERE record ->> '$.event' = 'entries-lost'";
    let lost: i64 = subject.connect().query_row(sql, [], |row| row.get(0)).unwrap();
    let marks: i64 = i64::from(lost > 0);
    assert_eq!(count(&subject) - marks + lost, 12_510, "what is not written is counted");
}

#[tokio::test]
async fn verify_names_the_first_entry_that_was_changed() {
    let cases = [
        ("UPDATE audit SET record = replace(record, 'bob', 'bab')", "entry 2 does not match its hash"),
        ("UPDATE audit SET at = at + 1 WHERE entry_no = 2", "the record of entry 2 is about another entry"),
        ("DELETE FROM audit WHERE entry_no = 2", "entry 2 is missing; entry 3 comes next"),
        ("DELETE FROM audit WHERE entry_no = 3", "entry 3 is missing; the chain ends at entry 3"),
        ("DELETE FROM audit WHERE entry_no = 1", "entry 1 is missing; entry 2 comes next"),
    ];
    for (sql, broken) in cases {
        let mut subject = three_entries().await;
        subject.is_damaged = true;
        assert!(subject.connect().execute(sql, []).unwrap() > 0);
        let chains = read_audit(&subject.path(), &mut |_, _| {}).unwrap();
        assert_eq!(chains.len(), 1);
        assert_eq!(chains[0].broken.as_deref(), Some(broken), "{sql}");
        let fault = format!("the audit log is broken: {broken} (chain {})", chains[0].id);
        assert_eq!(faults_of(&subject.path()), [fault], "{sql}");
    }
}

#[tokio::test]
async fn a_chain_that_lost_its_end_is_not_continued() {
    let mut subject = three_entries().await;
    subject.is_damaged = true;
    subject.close();
    subject.connect().execute("DELETE FROM audit WHERE entry_no = 3", []).unwrap();
    subject.restart();
    record(&subject, "dan");
    subject.store().audit().unwrap().flush().await.unwrap();
    let chains = read_audit(&subject.path(), &mut |_, _| {}).unwrap();
    let found: Vec<_> = chains.iter().map(|chain| (chain.last.no, chain.broken.is_some())).collect();
    assert_eq!(found, [(2, true), (1, false)]);

    // What is left of it is forgotten by its age; that its end is missing can be seen all the same.
    subject.clock.advance_ms(5_000);
    record(&subject, "eve");
    subject.store().audit().unwrap().flush().await.unwrap();
    let retention = AuditRetention { now: now(&subject), entries_ms: 5_000, entries_max: 100 };
    for forgotten in [1, 2, 0] {
        let limit = 2 - usize::from(forgotten == 1);
        assert_eq!(subject.store().audit().unwrap().forget(retention, limit).await.unwrap(), forgotten);
    }
    let chains = read_audit(&subject.path(), &mut |_, _| {}).unwrap();
    let found: Vec<_> = chains.iter().map(|chain| (chain.anchor.no, chain.last.no, chain.broken.is_some())).collect();
    assert_eq!(found, [(2, 2, true), (1, 2, false)]);
}

#[tokio::test]
async fn an_entry_can_be_added_and_exported_without_a_server() {
    let mut subject = three_entries().await;
    let entry = AuditEntry::new(now(&subject), AuditEvent::Offline, Decision::Allowed, "db compact");
    let refused = append_audit(&subject.path(), subject.clock.clone(), entry.clone()).unwrap_err();
    assert!(matches!(refused, super::super::FileError::InUse { .. }), "{refused}");
    subject.close();
    append_audit(&subject.path(), subject.clock.clone(), entry).unwrap();
    let mut lines = Vec::new();
    let chains = read_audit(&subject.path(), &mut |before, entry| lines.push(entry.export_line(&before.hash))).unwrap();
    assert_eq!((chains[0].last.no, chains[0].broken.as_deref()), (4, None));
    assert!(lines[3].contains("\"operation\":\"db compact\""), "{}", lines[3]);
    let (_, prev, _) = read_export_line(&lines[3]).unwrap();
    let (_, _, hash) = read_export_line(&lines[2]).unwrap();
    assert_eq!(prev, hash);
    subject.restart();
}
