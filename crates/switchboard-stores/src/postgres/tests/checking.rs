//! What `verify` finds, and the audit chains of processes that are gone.

use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, now, status, write_parts};
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, AuditRetention, Decision};
use switchboard_engine::ports::{AuditLog, Upkeep};

use super::super::{AuditChain, read_audit, thread, verify};
use super::OnSchema;

/// Runs what has a runtime of its own.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn faults(subject: &OnSchema) -> Vec<String> {
    apart(|| {
        let mut faults = Vec::new();
        verify(&subject.options, &mut |fault| faults.push(fault.to_string())).unwrap();
        faults
    })
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn the_bytes_that_a_task_counts_are_those_of_its_rows() {
    let subject = OnSchema::new();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    // Large enough to be in pieces of its own.
    let large = switchboard_core::model::Part::text("x".repeat(200_000));
    writer.append(&subject, vec![write_parts("a", vec![large], false)]).await;
    writer.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
    assert_eq!(faults(&subject), [""; 0]);
    subject.sql("update task set bytes = bytes + 1");
    let found = faults(&subject);
    assert!(found.len() == 1 && found[0].contains("bytes stored, and has"), "{found:?}");
    // The sum is right, but two commits are not.
    subject.sql("update task set bytes = bytes - 1");
    subject.sql("update log set weight = weight + case version when 1 then 5 else -5 end where version in (1, 2)");
    let found = faults(&subject);
    assert!(found.len() == 1 && found[0].contains("2 of its commits count other bytes"), "{found:?}");
}

fn record(subject: &OnSchema, log: &dyn AuditLog, principal: &str) {
    let entry = AuditEntry::new(now(subject), AuditEvent::Refusal, Decision::Refused, "SendMessage");
    log.record(AuditEntry { principal: principal.to_owned(), ..entry });
}

fn chains(subject: &OnSchema) -> Vec<AuditChain> {
    let chains = apart(|| read_audit(&subject.options, &mut |_, _| {}).unwrap());
    assert!(chains.iter().all(|chain| chain.broken.is_none()), "{chains:?}");
    chains
}

/// The anchor and the last entry of the second chain.
fn second_chain(subject: &OnSchema) -> (u64, u64) {
    let found = chains(subject).into_iter().find(|chain| chain.id == "second").unwrap();
    (found.anchor.no, found.last.no)
}

/// Waits until PostgreSQL has noticed that the first handle is the only one.
async fn until_alone(subject: &OnSchema) {
    let shared = &subject.first.as_ref().unwrap().shared;
    for _ in 0..1_000 {
        thread::count_replicas(shared).await.unwrap();
        if shared.share.processes() == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the other process is still counted");
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn entries_of_a_process_that_is_gone_are_forgotten_by_their_age() {
    let mut subject = OnSchema::shared();
    let second = subject.second.as_ref().unwrap().audit().unwrap();
    for principal in ["a", "b", "c"] {
        record(&subject, second, principal);
        second.flush().await.unwrap();
        subject.clock.advance_ms(1000);
    }
    let forget = async |subject: &OnSchema, entries_ms: i64, limit: usize| {
        let retention = AuditRetention { now: now(subject), entries_ms, entries_max: 1 };
        subject.store().audit().unwrap().forget(retention, limit).await.unwrap()
    };
    assert_eq!(forget(&subject, 2000, 10).await, 0, "the other process lives, and decides for itself");
    subject.second = None;
    until_alone(&subject).await;
    assert_eq!(forget(&subject, 2000, 1).await, 1, "no more at once than was asked for");
    assert_eq!(forget(&subject, 2000, 10).await, 1, "too many are not too old");
    assert_eq!(forget(&subject, 2000, 10).await, 0);
    assert_eq!(second_chain(&subject), (2, 3));
    assert_eq!(forget(&subject, 0, 10).await, 1);
    assert_eq!(second_chain(&subject), (3, 3), "the anchor stays");
    // Under its name the chain goes on.
    let second = subject.open("second");
    record(&subject, &second, "d");
    second.flush().await.unwrap();
    drop(second);
    until_alone(&subject).await;
    assert_eq!(second_chain(&subject), (3, 4));

    // An entry that does not follow stays, with the proof that it does not.
    subject.sql("update audit set record = replace(record, '\"d\"', '\"e\"')");
    assert_eq!(forget(&subject, 0, 10).await, 0);
    let found = apart(|| read_audit(&subject.options, &mut |_, _| {}).unwrap());
    assert_eq!(found.iter().filter(|chain| chain.broken.is_some()).count(), 1, "{found:?}");
}
