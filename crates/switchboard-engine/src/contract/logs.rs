//! Behaviours of the log: a reader is a cursor, and misses nothing.

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Json, TaskState};

use super::Subject;
use super::given::{Pen, chunk, inbound, read_log, status};
use crate::ports::store::StoreStats;

pub async fn a_reader_gets_what_is_above_its_cursor(subject: &mut dyn Subject) {
    let pen = mixed(subject).await;
    for after in 0..=pen.head.seq {
        let read = read_log(subject.store(), pen.key(), after, 100).await.expect("the log is kept");
        let last = |commit: &crate::ports::store::LoggedCommit| {
            commit.first_seq + commit.events.iter().filter(|event| event.is_visible()).count() as u64 - 1
        };
        assert!(read.iter().all(|commit| last(commit) > after), "after {after}");
        let first = read.first().map(|commit| commit.first_seq);
        assert!(first.is_none_or(|first| first <= after + 1), "after {after} nothing is passed over");
        assert_eq!(read.last().map(last), (after < pen.head.seq).then_some(pen.head.seq), "after {after}");
    }
}

pub async fn commits_without_visible_events_are_passed_over(subject: &mut dyn Subject) {
    let mut pen = Pen::opened(subject, "t1").await;
    for turn in 2..30 {
        pen.append(subject, vec![Event::MessageAdded { inbound: inbound(turn, "more") }]).await;
    }
    pen.append(subject, vec![chunk("a", "x", false)]).await;
    let page = subject.store().log(pen.key(), 1, 5).await.expect("the log is kept");
    let found: Vec<_> = page.commits.iter().map(|commit| (commit.version, commit.first_seq)).collect();
    assert_eq!(found, [(30, 2)]);
    pen.check(subject).await;
}

pub async fn pages_join_up_without_gap_or_repeat(subject: &mut dyn Subject) {
    let pen = mixed(subject).await;
    for page in 1..8 {
        let read = read_log(subject.store(), pen.key(), 0, page).await.expect("the log is kept");
        let mut next = 1;
        for commit in read {
            assert_eq!(commit.first_seq, next);
            next += commit.events.iter().filter(|event| event.is_visible()).count() as u64;
        }
        assert_eq!(next, pen.head.seq + 1);
    }
}

pub async fn a_cursor_at_the_end_gets_an_empty_page(subject: &mut dyn Subject) {
    let pen = mixed(subject).await;
    for after in [pen.head.seq, pen.head.seq + 1, u64::MAX] {
        let page = subject.store().log(pen.key(), after, 10).await.expect("the log is kept");
        assert_eq!(page.commits.len(), 0, "after {after}");
    }
}

/// A hundred thousand events, most of them written many at a time; a million, one at a time, if there is time for it.
pub async fn an_event_costs_the_same_early_and_late(subject: &mut dyn Subject) {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let (events, together) = if long { (1_000_000, 1) } else { (100_000, 50) };
    let mut pen = Pen::opened(subject, "t1").await;
    pen.hints = false;
    pen.append(subject, vec![chunk("a", "word", false)]).await;
    // A store may write chunks together with the next commit of another kind, so that is where the measurement begins.
    pen.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    let mut early: Option<[(u64, u64); 2]> = None;
    let event = |subject: &dyn Subject, number: u64| match number % 2 {
        0 => chunk("a", "word", true),
        _ => status(subject, TaskState::Working, Some("busy")),
    };
    while pen.head.seq < events {
        let mut costs = [(0, 0); 2];
        for (number, cost) in (0..).zip(&mut costs) {
            let before = subject.store().stats();
            write_lightly(subject, &mut pen, vec![event(subject, number)]).await;
            *cost = cost_since(&before, subject);
        }
        let expected = *early.get_or_insert(costs);
        for ((rows, bytes), (early_rows, early_bytes)) in costs.into_iter().zip(expected) {
            assert_eq!(rows, early_rows, "rows of event {}", pen.head.seq);
            assert!(bytes <= early_bytes + 32, "bytes of event {}: {bytes} after {early_bytes}", pen.head.seq);
        }
        if together > 1 {
            let filling = (0..together).map(|number| event(subject, number)).collect();
            write_lightly(subject, &mut pen, filling).await;
        }
    }
}

/// Writes without the pen's own memory of the log, which grows with the task; what is measured is the store's.
async fn write_lightly(subject: &dyn Subject, pen: &mut Pen, events: Vec<Event>) {
    let commit = pen.commit(subject, events);
    pen.head = commit.head.clone();
    subject.store().commit(commit).await.expect("the store takes the commit");
}

/// Rows and bytes written since.
fn cost_since(before: &StoreStats, subject: &dyn Subject) -> (u64, u64) {
    let after = subject.store().stats();
    (after.rows_written - before.rows_written, after.bytes_written - before.bytes_written)
}

/// A log in which commits with none, one and several visible events take turns.
async fn mixed(subject: &dyn Subject) -> Pen {
    let mut pen = Pen::opened(subject, "t1").await;
    for step in 0..30 {
        let note = Event::Checkpoint { value: Json::from_trusted("1") };
        let events = match step % 5 {
            0 => vec![note],
            1 => vec![status(subject, TaskState::Working, None)],
            2 => vec![note.clone(), chunk("a", "x", step > 2), note, chunk("a", "y", true)],
            3 => vec![chunk("b", "x", false), chunk("b", "y", true), status(subject, TaskState::Working, Some("s"))],
            _ => vec![note],
        };
        pen.append(subject, events).await;
    }
    pen.check(subject).await;
    pen
}
