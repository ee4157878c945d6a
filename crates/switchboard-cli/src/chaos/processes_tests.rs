//! Whose processes are found.

use std::process::{Child, Command};

use super::*;

/// Something that lives for a while, with this mark in its environment.
fn living(mark: &str, task: &str) -> Child {
    let mut child = Command::new("sleep");
    let child = child.arg("600").env(MARK, mark).env("A2A_TASK_ID", task).spawn().unwrap();
    // It has begun when it no longer has our own environment.
    while commands(mark).keys().all(|(pid, _)| *pid != i32::try_from(child.id()).unwrap()) {
        std::thread::yield_now();
    }
    child
}

#[tokio::test]
async fn a_command_that_is_still_there_is_named_and_killed_and_no_other() {
    let (mark, other) = (format!("test-{}", std::process::id()), format!("other-{}", std::process::id()));
    assert_eq!(orphans(&mark, Duration::ZERO).await, Vec::<String>::new());
    let (mut orphan, mut foreign) = (living(&mark, "task-1"), living(&other, "task-2"));
    let expected = format!("process {} of task task-1 was still there", orphan.id());
    assert_eq!(orphans(&mark, Duration::ZERO).await, [expected]);
    assert!(!orphan.wait().unwrap().success());
    assert_eq!(foreign.try_wait().unwrap(), None);
    foreign.kill().unwrap();
    foreign.wait().unwrap();
    assert_eq!(orphans(&other, Duration::ZERO).await, Vec::<String>::new(), "the dead are none");
}
