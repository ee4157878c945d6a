//! A group record finds its own processes and no others.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use super::*;

/// A group of its own: a shell that waits for a child, both working for a task.
fn family(task: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & wait"]).env("A2A_TASK_ID", task).process_group(0).spawn().unwrap()
}

fn alive(group: i32) -> usize {
    members(group).iter().filter(|(_, stat)| stat.is_alive()).count()
}

async fn both_are_there(group: i32) {
    while alive(group) < 2 {
        tokio::time::sleep(LOOK).await;
    }
}

fn changed(group_record: &Json, change: impl FnOnce(&mut GroupRecord)) -> Json {
    let mut group_record: GroupRecord = serde_json::from_str(group_record.as_str()).unwrap();
    change(&mut group_record);
    Json::from_trusted(serde_json::to_string(&group_record).unwrap())
}

#[tokio::test]
async fn a_survivor_is_killed_with_its_children_and_nobody_else() {
    let mut child = family("task-1");
    let group = i32::try_from(child.id()).unwrap();
    both_are_there(group).await;
    let group_record = group_record_of(Pid::from_child(&child), "task-1").unwrap();
    for foreign in [
        changed(&group_record, |group_record| group_record.boot.push('x')),
        changed(&group_record, |group_record| group_record.namespace.push('x')),
        changed(&group_record, |group_record| group_record.started += 1),
        changed(&group_record, |group_record| group_record.group = 0),
        Json::from_trusted("{\"page\":7}"),
    ] {
        kill_survivors(&foreign).await;
        assert_eq!(alive(group), 2, "{}", foreign.as_str());
    }
    kill_survivors(&group_record).await;
    assert_eq!(alive(group), 0);
    child.wait().unwrap();
    // Once more is nothing.
    kill_survivors(&group_record).await;
}

#[tokio::test]
async fn the_children_of_a_leader_that_died_are_found_by_their_task() {
    let mut child = family("task-2");
    let group = i32::try_from(child.id()).unwrap();
    both_are_there(group).await;
    let group_record = group_record_of(Pid::from_child(&child), "task-2").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(alive(group), 1);
    kill_survivors(&changed(&group_record, |group_record| group_record.task = "task-3".to_owned())).await;
    assert_eq!(alive(group), 1, "the number may belong to another process by now");
    kill_survivors(&group_record).await;
    assert_eq!(alive(group), 0);
}

#[test]
fn a_program_may_have_any_name() {
    let text = "42 (a) b (c)) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 9 9";
    let stat = Stat::parse(text).unwrap();
    assert_eq!((stat.state.as_str(), stat.group, stat.started, stat.is_alive()), ("S", 77, 123_456, true));
    assert!(Stat::parse("42 (cat").is_none() && Stat::parse("").is_none());
}
