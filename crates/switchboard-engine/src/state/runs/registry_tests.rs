//! Which runs are told to stop, and which are not.

use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::lifecycle::Head;
use tokio_util::sync::CancellationToken;

use super::{Guard, RunRegistry};
use crate::ports::store::{Scope, StoredHead, TaskKey};
use crate::state::record::Record;

const KEY: TaskKey = TaskKey(7);

/// A record as the run under this fence sees it.
fn record(key: TaskKey, fence: u64, running: bool) -> Arc<Record> {
    let mut head = Head::unopened("t".into(), "c".into(), "agent".into());
    (head.fence, head.running) = (fence, running);
    let scope = Scope { owner: Owner { tenant: "".into(), principal: "".into() }, agent: "agent".into() };
    Arc::new(Record::stored(StoredHead { key, scope, head: head.into() }))
}

fn register(runs: &RunRegistry, key: TaskKey, fence: u64) -> (Guard, CancellationToken) {
    let cancel = CancellationToken::new();
    (runs.register(record(key, fence, true), key, fence, cancel.clone()), cancel)
}

#[test]
fn a_run_that_lost_its_lease_is_dropped_and_its_successor_is_not() {
    let runs = RunRegistry::default();
    let (first, _) = register(&runs, KEY, 1);
    let held = runs.held();
    assert_eq!(held, [(KEY, 1)]);
    // While the store was asked about the first run, the task's next turn began.
    let (second, _) = register(&runs, KEY, 2);
    runs.drop_lost(&held, &[KEY]);
    assert!(!second.lost().is_cancelled());
    drop(first);
    assert_eq!(runs.held(), [(KEY, 2)], "the successor stays in the register");
    runs.drop_lost(&runs.held(), &[TaskKey(8)]);
    assert!(!second.lost().is_cancelled());
    runs.drop_lost(&runs.held(), &[KEY]);
    assert!(second.lost().is_cancelled());
}

#[test]
fn a_run_that_comes_after_its_successor_does_not_take_its_place() {
    let runs = RunRegistry::default();
    let (successor, cancel) = register(&runs, KEY, 2);
    let (late, late_cancel) = register(&runs, KEY, 1);
    assert_eq!(runs.held(), [(KEY, 2)]);
    runs.cancel(KEY);
    assert_eq!((cancel.is_cancelled(), late_cancel.is_cancelled()), (true, false));
    drop(late);
    assert_eq!(runs.held(), [(KEY, 2)]);
    drop(successor);
    assert_eq!(runs.len(), 0);
}

#[test]
fn a_run_that_has_ended_its_turn_holds_no_lease_and_loses_none() {
    let runs = RunRegistry::default();
    let tidying = runs.register(record(KEY, 1, false), KEY, 1, CancellationToken::new());
    assert_eq!((runs.held(), runs.len()), (vec![], 1));
    runs.drop_lost(&[(KEY, 1)], &[KEY]);
    assert!(!tidying.lost().is_cancelled());
}

#[test]
fn a_cancel_finds_the_run_of_its_task_only() {
    let runs = RunRegistry::default();
    let (guard, one) = register(&runs, KEY, 1);
    let (_other, other) = register(&runs, TaskKey(8), 1);
    assert!(!runs.cancel(TaskKey(9)));
    assert!(runs.cancel(KEY));
    assert_eq!((one.is_cancelled(), other.is_cancelled()), (true, false));
    drop(guard);
    assert!(!runs.cancel(KEY));
    runs.cancel_all(&[TaskKey(8)]);
    assert!(other.is_cancelled());
    assert_eq!(runs.len(), 1);
}

#[test]
fn a_task_is_found_by_its_id_while_a_run_of_it_is_here() {
    let runs = RunRegistry::default();
    let id = "t".into();
    assert!(!runs.has(&id));
    let (first, _) = register(&runs, KEY, 1);
    let (second, _) = register(&runs, KEY, 2);
    drop(first);
    assert!(runs.has(&id), "the successor is here");
    drop(second);
    assert!(!runs.has(&id));
}
