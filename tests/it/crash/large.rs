//! A large file through the real server: printed by a command, stored in pieces, and fetched again, in little memory.
#![cfg(target_os = "linux")]

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::{call, fetch, message};
use super::process::{Server, free_addr};

/// How much more memory the server may take than before the file came, at any moment.
const GROWTH_KIB_MAX: u64 = 64 << 10;

/// The command prints numbers, so each byte knows where it belongs.
const FIRST_NUMBER: u64 = 100_000_000;
const LINE_BYTES: u64 = 10;

fn expected(from: u64, length: usize) -> Vec<u8> {
    let first = from / LINE_BYTES;
    let lines = (length as u64).div_ceil(LINE_BYTES) + 1;
    let text: String = (first..first + lines).map(|line| format!("{}\n", FIRST_NUMBER + line)).collect();
    let skip = usize::try_from(from % LINE_BYTES).unwrap();
    text.as_bytes()[skip..skip + length].to_vec()
}

/// Reads a body to its end and checks every byte of it.
fn check(mut body: impl Read, from: u64) -> u64 {
    let mut buffer = vec![0; 1 << 20];
    let mut at = from;
    loop {
        let read = body.read(&mut buffer).expect("the server goes on");
        if read == 0 {
            return at - from;
        }
        assert!(buffer[..read] == expected(at, read), "wrong bytes after {at}");
        at += read as u64;
    }
}

#[test]
fn a_large_artifact_is_stored_and_fetched_in_little_memory() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let bytes: u64 = if long { 1 << 30 } else { 96 << 20 };
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let line = format!("seq {FIRST_NUMBER} 999999999 | head -c {bytes}");
    let server = Server::start_with(&data, addr, &["--exec", &line, "--exec-shell", "--run-timeout", "3000"]);
    let before = server.memory_kib();
    server.forget_memory_peak();

    let mut send = message("m-1", "print");
    send["configuration"] = json!({"returnImmediately": true});
    let sent = call(addr, "SendMessage", send).expect("the server is up");
    let id = sent["task"]["id"].as_str().expect("a task is answered");
    let deadline = Instant::now() + Duration::from_secs(3_000);
    // Asked for without its artifacts: while the file is small enough for a reply, a reply with it is not small.
    let is_done = || {
        let page = call(addr, "ListTasks", json!({"historyLength": 0})).expect("the server is up");
        page["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED"
    };
    while !is_done() {
        assert!(Instant::now() < deadline, "the command did not end");
        std::thread::sleep(Duration::from_millis(100));
    }
    let task = call(addr, "GetTask", json!({"id": id})).expect("the server is up");
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{}", task["status"]);
    let [part] = &task["artifacts"][0]["parts"].as_array().unwrap()[..] else { panic!("more than a link") };
    let url = part["url"].as_str().expect("a link");
    let path = url.strip_prefix(&format!("http://{addr}")).expect("a link to this server");
    let stored = server.memory_peak_kib();

    let (status, body) = fetch(addr, path, None);
    assert_eq!((status, check(body, 0)), (200, bytes));
    for from in [bytes / 2 + 3, bytes - 1_000] {
        let (status, body) = fetch(addr, path, Some(&format!("bytes={from}-{}", from + 999)));
        assert_eq!((status, check(body, from)), (206, 1_000));
    }
    let listed = call(addr, "ListTasks", json!({"includeArtifacts": true})).expect("the server is up");
    assert_eq!(listed["tasks"][0]["artifacts"][0]["parts"][0]["url"], url);
    let peak = server.memory_peak_kib();
    println!("{bytes} bytes: {before} KiB before, {stored} KiB at most to store them, {peak} KiB in all");
    assert!(peak - before < GROWTH_KIB_MAX, "{before} KiB before, {stored} KiB stored, {peak} KiB at most");
    server.interrupt();
}
