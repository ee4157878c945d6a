//! Who is told to stop, and who is left alone.

use tokio_util::sync::CancellationToken;

use super::RunRegistry;
use crate::ports::store::TaskKey;

const KEY: TaskKey = TaskKey(7);

#[test]
fn a_run_that_lost_its_lease_is_dropped_and_its_successor_is_not() {
    let runs = RunRegistry::default();
    let first = runs.enter("t".into(), KEY, 1, CancellationToken::new());
    let held = runs.held();
    assert_eq!(held, [(KEY, 1)]);
    // While the store was asked about the first run, the task's next turn began.
    let second = runs.enter("t".into(), KEY, 2, CancellationToken::new());
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
fn a_cancel_finds_the_run_of_its_task_only() {
    let runs = RunRegistry::default();
    let (one, other) = (CancellationToken::new(), CancellationToken::new());
    let guard = runs.enter("one".into(), KEY, 1, one.clone());
    let _other = runs.enter("other".into(), TaskKey(8), 1, other.clone());
    assert!(!runs.cancel(&"none".into()));
    assert!(runs.cancel(&"one".into()));
    assert_eq!((one.is_cancelled(), other.is_cancelled()), (true, false));
    drop(guard);
    assert!(!runs.cancel(&"one".into()));
    runs.cancel_all(&[TaskKey(8)]);
    assert!(other.is_cancelled());
    assert_eq!(runs.len(), 1);
}
