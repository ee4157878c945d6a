//! Webhooks and their outbox over the death of the server, and the operator's commands against the real thing.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::http::{call, message};
use super::process::{Server, binary, free_addr, without_settings};
use super::receiver::Receiver;

pub(super) fn with_hook(id: &str, text: &str, url: &str) -> Value {
    let mut send = message(id, text);
    send["configuration"] = json!({
        "returnImmediately": true,
        "taskPushNotificationConfig": {"id": "c", "url": url},
    });
    send
}

/// What a command of the operator says; it must succeed.
fn outbox(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new(binary());
    without_settings(&mut command);
    let output = command.arg("outbox").args(args).current_dir(folder).output().unwrap();
    let (said, complaint) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{args:?}: {said}{complaint}");
    said
}

#[test]
fn a_delivery_cut_off_by_kill_comes_again_under_its_id_and_then_the_next_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr, receiver) = (folder.path().join("data"), free_addr(), Receiver::start());
    let allow = ["--outbound-allow", "127.0.0.0/8"];
    let server = Server::start_with(&data, addr, &allow);
    let sent = call(addr, "SendMessage", with_hook("m-1", "hello", &receiver.url())).unwrap();
    let task = sent["task"]["id"].as_str().unwrap().to_owned();
    receiver.next().answer(200);
    let cut_off = receiver.next();
    assert_eq!(cut_off.id, format!("{task}:c:2"));
    server.kill();
    // The receiver took the update, but the server died before it got the answer.
    drop(cut_off);

    let server = Server::start_with(&data, addr, &allow);
    let mut ids = Vec::new();
    while ids.last() != Some(&format!("{task}:c:3")) {
        let call = receiver.next();
        ids.push(call.id.clone());
        call.answer(200);
    }
    // At least once: that the first one had arrived was perhaps not on disk yet either.
    let rest = ids.strip_prefix(&[format!("{task}:c:1")]).unwrap_or(&ids);
    assert_eq!(rest, [format!("{task}:c:2"), format!("{task}:c:3")]);
    assert!(receiver.is_quiet());
    server.interrupt();
}

#[test]
fn dead_letters_are_seen_and_redriven_by_command_while_the_server_runs_and_while_it_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr, receiver) = (folder.path().join("data"), free_addr(), Receiver::start());
    let args = ["--outbound-allow", "127.0.0.0/8", "--webhook-attempts", "1"];
    let server = Server::start_with(&data, addr, &args);
    let url = format!("http://{addr}");
    let sent = call(addr, "SendMessage", with_hook("m-1", "hello", &receiver.url())).unwrap();
    let task = sent["task"]["id"].as_str().unwrap().to_owned();
    let first = receiver.next();
    let id = first.id.clone();
    first.answer(500);
    let dead = |place: &[&str]| -> Vec<Value> {
        let args: Vec<&str> = ["list", "--json"].iter().chain(place).copied().collect();
        let list: Value = serde_json::from_str(&outbox(folder.path(), &args)).unwrap();
        list["deliveries"].as_array().unwrap().clone()
    };
    // The server has no tokens, so its operators show the key that it has written into its folder.
    let key = ["--token-file", "data/operator-key"];
    let online = ["--url", url.as_str(), key[0], key[1]];
    let offline = ["--data", "data"];
    while dead(&online).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let letter = dead(&online).remove(0);
    assert_eq!((&letter["taskId"], &letter["lastError"]), (&json!(task), &json!("the receiver answered 500")));
    let number = letter["id"].as_str().unwrap();
    assert!(
        outbox(folder.path(), &["show", number, "--url", &url, key[0], key[1]])
            .contains(&format!("Next update: 1 task ({id})"))
    );

    // Online: the same update under the same id; refused once more, it is dead again.
    assert_eq!(outbox(folder.path(), &["redrive", number, "--url", &url, key[0], key[1]]), "1 delivery due again\n");
    let again = receiver.next();
    assert_eq!((&again.id, again.attempt), (&id, 1));
    again.answer(500);
    while dead(&online).is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }

    // Offline: it goes out when the server is back.
    let refused = Command::new(binary()).args(["outbox", "list", "--data", "data"]).current_dir(folder.path()).output();
    assert_eq!(refused.unwrap().status.code(), Some(1), "while the server has the database nobody else does");
    server.interrupt();
    assert_eq!(dead(&offline), [dead(&["--data", "data"]).remove(0)]);
    let said = outbox(folder.path(), &["redrive", "--all", "--data", "data"]);
    assert_eq!(said, "1 delivery due again; they go out when the server starts\n");
    let server = Server::start_with(&data, addr, &args);
    let mut seqs = Vec::new();
    while seqs.last() != Some(&3) {
        let call = receiver.next();
        seqs.push(call.seq());
        call.answer(200);
    }
    assert_eq!(seqs, [1, 2, 3]);
    server.interrupt();
}
