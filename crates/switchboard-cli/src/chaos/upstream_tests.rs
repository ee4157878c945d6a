//! Each way in which the upstream may have executed too much or too little is found.

use std::collections::BTreeMap;

use super::super::book::Book;
use super::super::faults::{Faults, Kind};
use super::super::found::{Found, Shown};
use super::super::ledger::Entry;
use super::super::wish::{CANCELED, COMPLETED, Whom, Wish};
use super::{Executed, Upstream, check};

fn executed(task: &str, messages: &[&str]) -> Executed {
    let messages = messages.iter().map(|id| (*id).to_owned()).collect();
    Executed { task: task.to_owned(), whom: Whom::Demo, state: COMPLETED.to_owned(), messages }
}

/// One task at the gateway, of this wish and in this state, and these tasks at the upstream.
fn found(wish: Wish, state: &str, executed: &[Executed]) -> Vec<(&'static str, u64)> {
    let task = "gateway-task".to_owned();
    let entries = vec![Entry::Sending { n: 1, wish, hook: false }, Entry::Accepted { n: 1, task: task.clone() }];
    let shown = Shown { state: state.to_owned(), ..Shown::default() };
    let mut faults = Faults::default();
    let upstream = Upstream { relayed: &Whom::ALL, executed: executed.to_vec() };
    check(&Book::of(entries), &BTreeMap::from([(task, Found::There(shown))]), &upstream, &mut faults);
    Kind::ALL.iter().map(|kind| (kind.key(), faults.count(*kind))).filter(|(_, count)| *count > 0).collect()
}

fn echo() -> Wish {
    Wish::Echo { salt: 1, bytes: 20 }
}

#[test]
fn one_task_for_one_message_is_right() {
    assert_eq!(found(echo(), COMPLETED, &[executed("a", &["gateway-task-1"])]), []);
    let asked = [executed("a", &["gateway-task-1", "gateway-task-2"])];
    assert_eq!(found(Wish::Ask { salt: 1 }, COMPLETED, &asked), []);
}

#[test]
fn a_message_that_two_tasks_executed_is_doubled() {
    let twice = [executed("a", &["gateway-task-1"]), executed("b", &["gateway-task-1"])];
    assert_eq!(found(echo(), COMPLETED, &twice), [("duplicated", 1)]);
    assert_eq!(found(echo(), COMPLETED, &[executed("a", &["gateway-task-1", "gateway-task-1"])]), [("duplicated", 1)]);
}

#[test]
fn a_message_that_no_task_executed_is_lost() {
    assert_eq!(found(echo(), COMPLETED, &[]), [("lost", 1)]);
    assert_eq!(found(Wish::Ask { salt: 1 }, COMPLETED, &[executed("a", &["gateway-task-1"])]), [("lost", 1)]);
}

#[test]
fn what_was_canceled_need_not_have_been_sent() {
    let endless = Wish::Endless { by_command: false };
    assert_eq!(found(endless, CANCELED, &[]), []);
}

#[test]
fn an_answer_that_went_to_another_task_is_found() {
    let parted = [executed("a", &["gateway-task-1"]), executed("b", &["gateway-task-2"])];
    assert_eq!(found(Wish::Ask { salt: 1 }, COMPLETED, &parted), [("duplicated", 1)]);
}

#[test]
fn a_task_for_nobody_is_found() {
    let right = executed("a", &["gateway-task-1"]);
    assert_eq!(found(echo(), COMPLETED, &[right.clone(), executed("b", &["other-1"])]), [("duplicated", 1)]);
    assert_eq!(found(echo(), COMPLETED, &[right, executed("b", &[])]), [("wrong_content", 1)]);
}

#[test]
fn a_task_that_did_not_end_is_stuck() {
    let mut open = executed("a", &["gateway-task-1"]);
    open.state = "TASK_STATE_WORKING".to_owned();
    assert_eq!(found(echo(), COMPLETED, &[open]), [("stuck", 1)]);
}
