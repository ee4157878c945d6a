//! Storage has an owner: a task that writes without end stops at its limit. The same attack is made on a server without the limit.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::http::{call, message, post_for_error};
use super::process::{Server, eventually, free_addr, verify};

/// Says its message again and again, as the demo agent once did.
const PARROT: &str = r#"
[[agent]]
name = "Parrot"
command = '''
text=$(cat)
while echo "$text"; do :; done
'''
shell = true
"#;

const TASK_BYTES_MAX: u64 = 8 << 20;

fn begin(addr: SocketAddr, id: &str, text: &str) -> String {
    let mut send = message(id, text);
    send["configuration"] = json!({"returnImmediately": true});
    let sent = call(addr, "SendMessage", send).unwrap();
    sent["task"]["id"].as_str().unwrap().to_owned()
}

fn status(addr: SocketAddr, id: &str) -> Value {
    call(addr, "GetTask", json!({"id": id, "historyLength": 0})).unwrap()["status"].clone()
}

/// The bytes of the file and of its write-ahead log.
fn on_disk(data: &Path) -> u64 {
    let bytes = |name: &str| std::fs::metadata(data.join(name)).map_or(0, |file| file.len());
    bytes("switchboard.db") + bytes("switchboard.db-wal")
}

#[test]
fn a_task_that_writes_without_end_stops_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let limits =
        format!("[server]\nstorage_task_bytes_max = {TASK_BYTES_MAX}\nstorage_owner_bytes_max = {}\n", 12 << 20);
    std::fs::write(folder.path().join("switchboard.toml"), format!("{limits}{PARROT}")).unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let text = "x".repeat(100 << 10);
    let first = begin(addr, "m-1", &text);
    let failed = eventually("the task ends by itself", || {
        let status = status(addr, &first);
        (status["state"] != "TASK_STATE_WORKING" && status["state"] != "TASK_STATE_SUBMITTED").then_some(status)
    });
    assert_eq!(failed["state"], "TASK_STATE_FAILED", "{failed}");
    let reason = failed["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(reason.contains("storage_task_bytes_max"), "{reason}");
    // The second one meets the limit of its owner, and then no message is taken.
    let second = begin(addr, "m-2", &text);
    eventually("the second task ends as well", || {
        (status(addr, &second)["state"] == "TASK_STATE_FAILED").then_some(())
    });
    let reason = status(addr, &second)["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
    assert!(reason.contains("storage_owner_bytes_max"), "{reason}");
    let large = message("m-3", &"x".repeat(1 << 20));
    let refused = |addr| {
        let error = post_for_error(addr, "SendMessage", &large);
        assert_eq!(error["data"][0]["reason"], "RESOURCE_EXHAUSTED", "{error}");
        assert!(error["message"].as_str().unwrap().contains("storage_owner_bytes_max"), "{error}");
    };
    refused(addr);
    // Nothing of this is forgotten by a server that is killed.
    server.kill();
    let server = Server::start(&data, addr);
    refused(addr);
    server.interrupt();
    assert!(on_disk(&data) < 4 * TASK_BYTES_MAX, "{} bytes", on_disk(&data));
    verify(&data);
}

#[test]
fn without_the_limit_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.toml"), PARROT).unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let id = begin(addr, "m-1", &"x".repeat(100 << 10));
    eventually("the file grows beyond the limit of the other server", || {
        (on_disk(&data) > 5 * TASK_BYTES_MAX).then_some(())
    });
    assert_eq!(status(addr, &id)["state"], "TASK_STATE_WORKING");
    let canceled = call(addr, "CancelTask", json!({"id": id})).unwrap();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    server.interrupt();
}
