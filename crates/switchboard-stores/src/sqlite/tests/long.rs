//! Long tasks: the cost of reading them does not grow with commits that readers need not fold.

use rusqlite::Connection;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::TaskState;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, inbound, status};

use super::super::fold::records_to_fold;
use super::super::read::{find, task};
use super::make;
use crate::record::Want;

fn records_read(connection: &Connection, writer: &RecordWriter) -> usize {
    let row = find(connection, &writer.scope, &writer.head.id).unwrap_or_else(|_| panic!("reads work")).unwrap();
    records_to_fold(connection, row.task_no, row.chains, Want::Everything)
        .unwrap_or_else(|_| panic!("reads work"))
        .len()
}

#[tokio::test]
async fn a_task_of_very_many_notes_is_read_by_a_few_records() {
    let notes = if std::env::var_os("SWITCHBOARD_TEST_LONG").is_some() { 1_000_000 } else { 20_000 };
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    writer.append(&subject, vec![chunk("a", "x", false)]).await;
    let connection = subject.connect();
    for note in 0..notes / 100 {
        // A hundred progress notes in one commit, so that the log gets long quickly; the last one is a separate commit.
        let many = if note + 1 == notes / 100 { 1 } else { 100 };
        let events = (0..many).map(|_| status(&subject, TaskState::Working, Some("busy"))).collect();
        let commit = writer.commit(&subject, events);
        writer.head = commit.head.clone();
        subject.store().commit(commit).await.unwrap();
        if note % 50 == 0 {
            assert_eq!(records_read(&connection, &writer), 3, "the opening, the artifact, the newest status");
        }
    }
    assert_eq!(records_read(&connection, &writer), 3);
}

#[tokio::test]
async fn messages_that_are_not_shown_are_not_read() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    for turn in 2..=20 {
        let added = Event::MessageAdded { inbound: inbound(turn, &"x".repeat(1 << 20)) };
        writer.append(&subject, vec![added]).await;
    }
    let connection = subject.connect();
    let read = |history_max: Option<u32>| {
        let (scope, id) = (&writer.scope, &writer.head.id);
        let stored = task(&connection, scope, id, 32 << 20, history_max).unwrap_or_else(|_| panic!("reads work"));
        let folded = stored.expect("it is there").folded;
        let held: usize = folded.open_turns.iter().map(|open| open.message.text().len()).sum();
        (folded.task.history.len(), held)
    };
    assert_eq!(read(Some(0)), (0, 0), "no message is held");
    assert_eq!(read(Some(2)), (2, 2 << 20));
    assert_eq!(read(None).0, 20);
}
