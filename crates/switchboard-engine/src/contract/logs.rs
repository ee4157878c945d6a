//! Behaviours of the log: a reader with a cursor gets every event.

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Json, TaskState};

use super::Subject;
use super::given::{RecordWriter, chunk, inbound, read_log, status};
use crate::ports::store::StoreStats;

pub async fn a_reader_gets_what_is_above_its_cursor(subject: &mut dyn Subject) {
    let writer = mixed(subject).await;
    for after in 0..=writer.head.seq {
        let read = read_log(subject.store(), writer.key(), after, 100).await.expect("the log is kept");
        let last = |commit: &crate::ports::store::LoggedCommit| {
            commit.first_seq + commit.events.iter().filter(|event| event.is_visible()).count() as u64 - 1
        };
        assert!(read.iter().all(|commit| last(commit) > after), "after {after}");
        let first = read.first().map(|commit| commit.first_seq);
        assert!(first.is_none_or(|first| first <= after + 1), "after {after} nothing is passed over");
        assert_eq!(read.last().map(last), (after < writer.head.seq).then_some(writer.head.seq), "after {after}");
    }
}

pub async fn commits_without_visible_events_are_passed_over(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for turn in 2..30 {
        writer.append(subject, vec![Event::MessageAdded { inbound: inbound(turn, "more") }]).await;
    }
    writer.append(subject, vec![chunk("a", "x", false)]).await;
    let page = subject.store().log(writer.key(), 1, 5).await.expect("the log is kept");
    let found: Vec<_> = page.commits.iter().map(|commit| (commit.version, commit.first_seq)).collect();
    assert_eq!(found, [(30, 2)]);
    writer.check(subject).await;
}

pub async fn pages_join_up_without_gap_or_repeat(subject: &mut dyn Subject) {
    let writer = mixed(subject).await;
    for page in 1..8 {
        let read = read_log(subject.store(), writer.key(), 0, page).await.expect("the log is kept");
        let mut next = 1;
        for commit in read {
            assert_eq!(commit.first_seq, next);
            next += commit.events.iter().filter(|event| event.is_visible()).count() as u64;
        }
        assert_eq!(next, writer.head.seq + 1);
    }
}

pub async fn a_cursor_at_the_end_gets_an_empty_page(subject: &mut dyn Subject) {
    let writer = mixed(subject).await;
    for after in [writer.head.seq, writer.head.seq + 1, u64::MAX] {
        let page = subject.store().log(writer.key(), after, 10).await.expect("the log is kept");
        assert_eq!(page.commits.len(), 0, "after {after}");
    }
}

/// A hundred thousand events, most of them many per commit; with `SWITCHBOARD_TEST_LONG` a million, one per commit.
pub async fn an_event_costs_the_same_early_and_late(subject: &mut dyn Subject) {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let (events, together) = if long { (1_000_000, 1) } else { (100_000, 50) };
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.hints = false;
    writer.append(subject, vec![chunk("a", "word", false)]).await;
    // A store may write chunks together with the next commit of another kind, so that is where the measurement begins.
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    let mut early: Option<[(u64, u64); 2]> = None;
    let event = |subject: &dyn Subject, number: u64| match number % 2 {
        0 => chunk("a", "word", true),
        _ => status(subject, TaskState::Working, Some("busy")),
    };
    while writer.head.seq < events {
        let mut costs = [(0, 0); 2];
        for (number, cost) in (0..).zip(&mut costs) {
            let before = subject.store().stats();
            write_lightly(subject, &mut writer, vec![event(subject, number)]).await;
            *cost = cost_since(&before, subject);
        }
        let expected = *early.get_or_insert(costs);
        for ((rows, bytes), (early_rows, early_bytes)) in costs.into_iter().zip(expected) {
            assert_eq!(rows, early_rows, "rows of event {}", writer.head.seq);
            assert!(bytes <= early_bytes + 32, "bytes of event {}: {bytes} after {early_bytes}", writer.head.seq);
        }
        if together > 1 {
            let filling = (0..together).map(|number| event(subject, number)).collect();
            write_lightly(subject, &mut writer, filling).await;
        }
    }
}

/// Commits without keeping the log in the writer, because that would grow with the task, and only the store is
/// measured.
async fn write_lightly(subject: &dyn Subject, writer: &mut RecordWriter, events: Vec<Event>) {
    let commit = writer.commit(subject, events);
    writer.head = commit.head.clone();
    subject.store().commit(commit).await.expect("the store takes the commit");
}

/// The rows and bytes written since.
fn cost_since(before: &StoreStats, subject: &dyn Subject) -> (u64, u64) {
    let after = subject.store().stats();
    (after.rows_written - before.rows_written, after.bytes_written - before.bytes_written)
}

/// A log in which commits with none, one and several visible events take turns.
async fn mixed(subject: &dyn Subject) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for step in 0..30 {
        let note = Event::Checkpoint { value: Json::from_trusted("1") };
        let events = match step % 5 {
            0 => vec![note],
            1 => vec![status(subject, TaskState::Working, None)],
            2 => vec![note.clone(), chunk("a", "x", step > 2), note, chunk("a", "y", true)],
            3 => vec![chunk("b", "x", false), chunk("b", "y", true), status(subject, TaskState::Working, Some("s"))],
            _ => vec![note],
        };
        writer.append(subject, events).await;
    }
    writer.check(subject).await;
    writer
}
