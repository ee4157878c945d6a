//! Each kind of fault, planted in a record of what happened, is found.

use std::collections::BTreeMap;

use super::super::book::Book;
use super::super::faults::Kind;
use super::super::found::{Found, Logged, Shown, Text};
use super::super::ledger::{Entry, digest};
use super::super::wish::Wish;
use super::{Evidence, check};

const TASK: &str = "task-1";

/// A stream of two chunks with a webhook, as it should be: everything was shown, taken, and is there.
struct World {
    entries: Vec<Entry>,
    shown: Shown,
    listed: u64,
}

fn event(seq: u64) -> u64 {
    digest(format!("event {seq}").as_bytes())
}

fn seen(reader: u64, seq: u64) -> Entry {
    Entry::Seen { reader, task: TASK.to_owned(), seq, digest: event(seq) }
}

fn hooked(seq: u64, taken: bool) -> Entry {
    Entry::Hooked { task: TASK.to_owned(), seq, digest: event(seq), taken }
}

fn good() -> World {
    let wish = Wish::Chunks { chunks: 2 };
    let mut entries = vec![Entry::Sending { n: 1, wish, hook: true }, Entry::Accepted { n: 1, task: TASK.to_owned() }];
    entries.extend((1..=4).flat_map(|seq| [seen(1, seq), hooked(seq, false), hooked(seq, true)]));
    let state = |seq| (seq == 4).then(|| "TASK_STATE_COMPLETED".to_owned());
    let log = (1..=4).map(|seq| Logged { seq, digest: event(seq), state: state(seq) }).collect();
    let text = Text::of("chunk 1 of 2\nchunk 2 of 2\n");
    let shown = Shown {
        state: "TASK_STATE_COMPLETED".to_owned(),
        artifacts: text.clone(),
        assembled: text,
        log,
        ..Shown::default()
    };
    World { entries, shown, listed: 1 }
}

/// The kinds of faults that are found, with their counts.
fn found(world: World) -> Vec<(&'static str, u64)> {
    found_in(world.entries, Found::There(world.shown), world.listed)
}

fn found_in(entries: Vec<Entry>, found: Found, listed: u64) -> Vec<(&'static str, u64)> {
    let tasks = BTreeMap::from([(TASK.to_owned(), found)]);
    counted(&entries, &Evidence { tasks, listed: Some(listed), ..Evidence::default() })
}

fn counted(entries: &[Entry], evidence: &Evidence) -> Vec<(&'static str, u64)> {
    let faults = check(&Book::of(entries.to_vec()), evidence);
    let counts = Kind::ALL.map(|kind| (kind.key(), faults.count(kind)));
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

#[test]
fn nothing_is_wrong_with_a_good_run() {
    assert_eq!(found(good()), []);
}

#[test]
fn a_missing_task_is_lost_with_all_its_events() {
    let world = good();
    assert_eq!(found_in(world.entries, Found::Missing, 0), [("lost", 4)]);
}

#[test]
fn a_task_that_cannot_be_read_is_lost() {
    let world = good();
    assert_eq!(found_in(world.entries, Found::Unreadable("internal error".to_owned()), 1), [("lost", 4)]);
}

#[test]
fn an_event_that_was_shown_and_is_not_in_the_log_is_lost() {
    let mut world = good();
    world.shown.log.remove(1);
    // Its webhook arrived twice, with an event that is no longer there.
    assert_eq!(found(world), [("lost", 1), ("wrong_content", 2)]);
}

#[test]
fn the_last_event_can_be_lost_too() {
    let mut world = good();
    world.entries.retain(|entry| !matches!(entry, Entry::Hooked { seq: 4, .. }));
    world.shown.log.pop();
    assert_eq!(found(world), [("lost", 1)]);
}

#[test]
fn an_event_that_a_reader_was_never_shown_is_lost() {
    let mut world = good();
    world.entries.extend([seen(2, 1), seen(2, 3)]);
    assert_eq!(found(world), [("lost", 1)]);
}

#[test]
fn a_repeated_event_is_a_duplicate() {
    let mut world = good();
    world.entries.extend([seen(2, 1), seen(2, 2), seen(2, 2)]);
    assert_eq!(found(world), [("duplicated", 1)]);
}

#[test]
fn two_readers_of_the_same_events_are_no_duplicates() {
    let mut world = good();
    world.entries.extend([seen(2, 1), seen(2, 2)]);
    assert_eq!(found(world), []);
}

#[test]
fn an_event_after_a_later_one_is_out_of_order() {
    let mut world = good();
    world.entries.extend([seen(2, 2), seen(2, 1)]);
    assert_eq!(found(world), [("out_of_order", 1)]);
}

#[test]
fn more_tasks_than_messages_are_duplicates() {
    let mut world = good();
    world.listed = 3;
    assert_eq!(found(world), [("duplicated", 2)]);
}

#[test]
fn a_message_that_became_two_tasks_is_a_duplicate() {
    let mut world = good();
    world.entries.push(Entry::Accepted { n: 1, task: "task-2".to_owned() });
    assert_eq!(found(world), [("duplicated", 1)]);
}

#[test]
fn an_event_after_the_end_is_a_second_end() {
    let mut world = good();
    world.entries.push(hooked(5, true));
    world.shown.log.push(Logged { seq: 5, digest: event(5), state: Some("TASK_STATE_COMPLETED".to_owned()) });
    assert_eq!(found(world), [("two_terminals", 1)]);
}

#[test]
fn an_end_that_somebody_was_told_and_is_not_the_end_is_a_second_one() {
    let mut world = good();
    world.entries.push(Entry::Canceled { task: TASK.to_owned(), state: "TASK_STATE_CANCELED".to_owned() });
    assert_eq!(found(world), [("two_terminals", 1)]);
}

#[test]
fn a_task_that_does_not_end_is_stuck() {
    let mut world = good();
    world.shown.state = "TASK_STATE_WORKING".to_owned();
    assert_eq!(found(world), [("stuck", 1)]);
}

#[test]
fn a_message_that_nobody_answers_is_stuck() {
    let mut world = good();
    world.entries.push(Entry::Sending { n: 2, wish: Wish::Chunks { chunks: 1 }, hook: false });
    assert_eq!(found(world), [("stuck", 1)]);
}

#[test]
fn a_webhook_that_was_never_taken_is_lost() {
    let mut world = good();
    world.entries.retain(|entry| !matches!(entry, Entry::Hooked { seq: 4, taken: true, .. }));
    assert_eq!(found(world), [("webhooks_lost", 1)]);
}

#[test]
fn a_webhook_that_was_taken_before_an_earlier_one_is_out_of_order() {
    let mut world = good();
    world.entries.retain(|entry| !matches!(entry, Entry::Hooked { seq: 2, taken: true, .. }));
    world.entries.push(hooked(2, true));
    // The third and the fourth came before it.
    assert_eq!(found(world), [("out_of_order", 2)]);
}

#[test]
fn webhooks_may_be_repeated() {
    let mut world = good();
    world.entries.extend([hooked(3, true), hooked(4, true)]);
    assert_eq!(found(world), []);
}

#[test]
fn a_command_that_outlived_its_task_is_an_orphan() {
    let orphans = vec!["process 17 of task-1 was still there".to_owned()];
    assert_eq!(counted(&[], &Evidence { orphans, listed: Some(0), ..Evidence::default() }), [("orphans", 1)]);
}

#[test]
fn what_the_server_should_never_do_is_wrong() {
    let misdeeds = vec!["the server ended by itself".to_owned(), "a send was refused".to_owned()];
    assert_eq!(counted(&[], &Evidence { misdeeds, listed: Some(0), ..Evidence::default() }), [("wrong_content", 2)]);
    assert_eq!(counted(&[], &Evidence::default()), [("wrong_content", 1)], "it does not say how many tasks it has");
}

#[test]
fn webhooks_of_a_task_that_nobody_was_told_of_are_wrong() {
    let entries = [hooked(1, true), hooked(2, true)];
    assert_eq!(counted(&entries, &Evidence { listed: Some(0), ..Evidence::default() }), [("wrong_content", 2)]);
}

#[test]
fn an_event_that_is_not_what_was_shown_is_wrong() {
    let mut world = good();
    world.entries.push(Entry::Seen { reader: 2, task: TASK.to_owned(), seq: 1, digest: 17 });
    assert_eq!(found(world), [("wrong_content", 1)]);
}

#[test]
fn a_webhook_that_is_not_its_event_is_wrong() {
    let mut world = good();
    world.entries.push(Entry::Hooked { task: TASK.to_owned(), seq: 1, digest: 17, taken: true });
    assert_eq!(found(world), [("wrong_content", 1)]);
}

#[test]
fn artifacts_that_are_not_what_was_asked_for_are_wrong() {
    for spoil in
        [|shown: &mut Shown| shown.artifacts = Text::of("!"), |shown: &mut Shown| shown.assembled = Text::default()]
    {
        let mut world = good();
        spoil(&mut world.shown);
        assert_eq!(found(world), [("wrong_content", 1)]);
    }
}

#[test]
fn artifacts_that_are_not_what_was_told_are_wrong() {
    let mut world = good();
    let told = |text: &str| Entry::Told {
        task: TASK.to_owned(),
        state: "TASK_STATE_COMPLETED".to_owned(),
        digest: digest(text.as_bytes()),
    };
    world.entries.extend([told("chunk 1 of 2\nchunk 2 of 2\n"), told("something else")]);
    assert_eq!(found(world), [("wrong_content", 1)]);
}
