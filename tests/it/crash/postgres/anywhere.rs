//! Any server serves anything: what one has accepted, every other shows, follows, continues and cancels.

use std::collections::BTreeSet;

use serde_json::json;

use super::super::http::{call, message};
use super::{Cluster, begin, check_followed, follow, get};

#[test]
#[ignore = "starts PostgreSQL"]
fn a_task_sent_to_one_server_is_followed_resumed_and_shown_by_others() {
    let cluster = Cluster::new();
    let [first, second, third] = cluster.start(["first", "second", "third"]);
    let id = begin(&first, "m-1", "stream 30");
    let mut seen: Vec<_> = follow(&second, &id, 0).take(5).collect();
    seen.extend(follow(&third, &id, 5).take(10));
    seen.extend(follow(&second, &id, 15));
    for server in [&first, &second, &third] {
        let task = get(server, &id);
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        check_followed(&seen, &task);
    }
    // The followers of the server that ran it, and of the others, saw the same.
    let elsewhere: Vec<_> = follow(&first, &id, 0).map(|event| event.result.to_string()).collect();
    assert_eq!(elsewhere, seen.iter().map(|event| event.result.to_string()).collect::<Vec<_>>());
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_task_is_canceled_and_continued_through_other_servers() {
    let cluster = Cluster::new();
    let [first, second, third] = cluster.start(["first", "second", "third"]);
    let slow = begin(&first, "m-1", "slow 600");
    let canceled = call(third.addr, "CancelTask", json!({"id": slow})).unwrap();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
    assert_eq!(get(&second, &slow)["status"]["state"], "TASK_STATE_CANCELED");

    let asked = call(first.addr, "SendMessage", message("m-2", "ask which colour?")).unwrap();
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{asked}");
    let mut answer = message("m-3", "blue");
    answer["message"]["taskId"] = asked["task"]["id"].clone();
    let answered = call(second.addr, "SendMessage", answer).unwrap();
    assert_eq!(answered["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{answered}");
    let listed = call(third.addr, "ListTasks", json!({})).unwrap();
    assert_eq!(listed["totalSize"], 2, "{listed}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_message_that_comes_over_32_connections_to_3_servers_makes_one_task() {
    let cluster = Cluster::new();
    let servers = cluster.start(["first", "second", "third"]);
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let sends: Vec<_> = (0..32)
            .map(|number| {
                let addr = servers[number % 3].addr;
                scope.spawn(move || {
                    let sent = call(addr, "SendMessage", message("the same", "hello")).unwrap();
                    sent["task"]["id"].as_str().unwrap().to_owned()
                })
            })
            .collect();
        sends.into_iter().map(|send| send.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1, "{ids:?}");
    let listed = call(servers[0].addr, "ListTasks", json!({})).unwrap();
    assert_eq!(listed["totalSize"], 1, "{listed}");
}
