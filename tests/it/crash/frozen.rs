//! A server that stands still for longer than its leases, and comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use super::http::{call, message, stream};
use super::process::{Server, eventually, free_addr};

const RUNS: usize = 8;
const LEASE: Duration = Duration::from_secs(1);

/// Says that it runs, and goes on for longer than the freeze.
const CONFIG: &str = r#"
[server]
lease_s = 1

[[agent]]
name = "Slow"
command = 'echo "$(cat) $A2A_ATTEMPT" >> ran; while [ ! -e thawed ]; do sleep 0.05; done; echo done'
shell = true
"#;

#[test]
fn runs_of_a_server_that_stood_still_for_three_leases_end_once_and_were_executed_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.toml"), CONFIG).unwrap();
    let ran = || std::fs::read_to_string(folder.path().join("ran")).unwrap_or_default();
    let addr = free_addr();
    let server = Server::start(&folder.path().join("data"), addr);
    let mut tasks = BTreeMap::new();
    for number in 0..RUNS {
        let mut send = message(&format!("m-{number}"), &format!("run-{number}"));
        send["configuration"] = json!({"returnImmediately": true});
        let sent = call(addr, "SendMessage", send).unwrap();
        tasks.insert(format!("run-{number}"), sent["task"]["id"].as_str().unwrap().to_owned());
    }
    eventually("all are at work", || (ran().lines().count() == RUNS).then_some(()));
    for _ in 0..2 {
        server.signal(Signal::STOP);
        // Real time must pass: the leases are on the real clock.
        std::thread::sleep(LEASE * 3 + LEASE / 2);
        server.signal(Signal::CONT);
        // And a while to do the wrong thing in.
        std::thread::sleep(LEASE);
    }
    std::fs::write(folder.path().join("thawed"), "").unwrap();
    for (run, id) in &tasks {
        let events: Vec<_> = stream(addr, "SubscribeToTask", json!({"id": id}), Some(0)).collect();
        let states: Vec<&str> =
            events.iter().filter_map(|event| event.result["statusUpdate"]["status"]["state"].as_str()).collect();
        assert_eq!(states.iter().filter(|state| **state == "TASK_STATE_COMPLETED").count(), 1, "{run}: {states:?}");
        assert_eq!(states.last(), Some(&"TASK_STATE_COMPLETED"), "{run}: {states:?}");
        let task = call(addr, "GetTask", json!({"id": id})).unwrap();
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "done\n", "{task}");
    }
    let mut executed: Vec<String> = ran().lines().map(str::to_owned).collect();
    executed.sort();
    assert_eq!(executed, tasks.keys().map(|run| format!("{run} 1")).collect::<Vec<_>>());
    server.interrupt();
}
