//! One stream, broken in the middle, and resumed at the event where it broke.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::http::{Event, call, message, stream};
use super::process::{Server, command, free_addr, verify};

/// Artifacts put together as a client must: a chunk without `append` begins anew.
fn assemble<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    let mut artifacts: BTreeMap<String, String> = BTreeMap::new();
    for event in events {
        let Some(update) = event.result.get("artifactUpdate") else { continue };
        let id = update["artifact"]["artifactId"].as_str().unwrap().to_owned();
        let text = artifacts.entry(id).or_default();
        if update["append"] != json!(true) {
            text.clear();
        }
        text.push_str(&texts(&update["artifact"]));
    }
    artifacts.into_values().collect()
}

fn texts(artifact: &Value) -> String {
    artifact["parts"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect()
}

/// Breaks a stream of so many chunks after some events by `stop`, starts again, resumes, and checks that nothing is
/// missing.
fn break_and_resume(chunks: usize, after: usize, stop: impl FnOnce(Server)) {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let mut events = Vec::new();
    let mut first = stream(addr, "SendStreamingMessage", message("m-1", &format!("stream {chunks} please")), None);
    events.extend(first.by_ref().take(after));
    let id = events[0].result["task"]["id"].as_str().expect("the first event is the task").to_owned();
    stop(server);
    // What was on its way when the server stopped still counts.
    events.extend(first);

    let server = Server::start(&data, addr);
    let last = events.last().unwrap().id;
    events.extend(stream(addr, "SubscribeToTask", json!({"id": id}), Some(last)));
    let numbers: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no event is missing and none comes twice");
    let end = &events.last().unwrap().result["statusUpdate"]["status"]["state"];
    assert_eq!(end, "TASK_STATE_COMPLETED");
    let expected: Vec<String> = (1..=chunks).map(|n| format!("chunk {n} of {chunks}")).collect();
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(assemble(events.iter())), expected);
    let task = call(addr, "GetTask", json!({"id": id})).unwrap();
    assert_eq!(lines(task["artifacts"].as_array().unwrap().iter().map(texts).collect()), expected);
    server.interrupt();
    verify(&data);
}

#[test]
fn a_stream_broken_by_kill_goes_on_where_it_broke() {
    break_and_resume(40, 12, Server::kill);
}

/// Between any two events of a stream, and around its first and last.
#[test]
fn a_server_killed_at_any_event_of_a_stream_loses_none_and_repeats_none() {
    const CHUNKS: usize = 6;
    let rounds = if std::env::var_os("SWITCHBOARD_TEST_LONG").is_some() { 15 } else { 1 };
    for _ in 0..rounds {
        // The task, its chunks, and the end; each in a world of its own, all at once.
        std::thread::scope(|threads| {
            for after in 1..=CHUNKS + 2 {
                threads.spawn(move || break_and_resume(CHUNKS, after, Server::kill));
            }
        });
    }
}

#[test]
fn a_stream_broken_by_ctrl_c_goes_on_where_it_broke() {
    break_and_resume(40, 12, Server::interrupt);
}

#[test]
fn a_second_server_on_the_same_data_is_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data, free_addr());
    let second = command(&data, free_addr()).output().unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("another process") || said.contains("in use"), "{said}");
    server.interrupt();
    verify(&data);
}

#[test]
fn a_paused_task_waits_through_a_kill_and_goes_on_with_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let asked = call(addr, "SendMessage", message("m-1", "ask me something")).unwrap();
    assert_eq!(asked["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    server.kill();

    let server = Server::start(&data, addr);
    let mut answer = message("m-2", "my answer");
    answer["message"]["taskId"] = asked["task"]["id"].clone();
    let done = call(addr, "SendMessage", answer).unwrap();
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    let history: Vec<&str> =
        done["task"]["history"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(history, ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"], "the question is part of the history now");
    server.interrupt();
    verify(&data);
}
