//! Commands and the death of their server.

use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::http::{call, message};
use super::process::{Server, command_under, eventually, free_addr};

/// Each attempt is a shell with a child, and says both their numbers and what it was told.
const FAMILY: &str = r#"
[server]
grace_s = 0

[[agent]]
name = "Family"
command = '''
sleep 600 &
echo "$$ $! $A2A_ATTEMPT $A2A_INTERRUPTED" >> families
wait
'''
shell = true
"#;

fn write_config(folder: &Path, config: &str) {
    std::fs::write(folder.join("switchboard.toml"), config).unwrap();
}

fn begin(addr: std::net::SocketAddr) -> String {
    let mut send = message("m-1", "go");
    send["configuration"] = json!({"returnImmediately": true});
    let sent = call(addr, "SendMessage", send).unwrap();
    sent["task"]["id"].as_str().unwrap().to_owned()
}

fn state(addr: std::net::SocketAddr, id: &str) -> Value {
    call(addr, "GetTask", json!({"id": id})).unwrap()["status"]["state"].clone()
}

struct Family {
    parent: i32,
    child: i32,
    told: String,
}

/// The family of the latest attempt, when there have been so many.
fn family(folder: &Path, attempts: usize) -> Family {
    eventually("the command says its numbers", || {
        let text = std::fs::read_to_string(folder.join("families")).ok()?;
        let line = text.lines().nth(attempts - 1).filter(|_| text.ends_with('\n'))?;
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        Some(Family { parent: words[0].parse().ok()?, child: words[1].parse().ok()?, told: words[2].to_owned() })
    })
}

fn is_alive(pid: i32) -> bool {
    // A dead process stays in the process table until its parent waits for it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !stat.contains(") Z ")
}

fn is_gone(what: &str, pid: i32) {
    eventually(what, || (!is_alive(pid)).then_some(()));
}

#[test]
fn a_command_dies_with_its_server_and_what_it_left_is_killed_before_the_next_attempt() {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), FAMILY);
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let id = begin(addr);
    let first = family(folder.path(), 1);
    server.kill();
    is_gone("the system has killed the first process", first.parent);
    assert!(is_alive(first.child), "nobody has told the child");

    let server = Server::start(&data, addr);
    let second = family(folder.path(), 2);
    assert!(!is_alive(first.child), "it was killed before the second attempt began");
    assert_eq!((first.told.as_str(), second.told.as_str()), ("1 false", "2 true"));
    let canceled = call(addr, "CancelTask", json!({"id": id})).unwrap();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    is_gone("a cancel ends the command", second.parent);
    is_gone("and its child", second.child);
    server.interrupt();
}

/// Whether a checkpoint is in the file.
fn has_checkpoint(data: &Path) -> bool {
    let wal = std::fs::read(data.join("switchboard.db-wal")).unwrap_or_default();
    wal.windows(9).any(|window| window == b"namespace")
}

#[test]
fn a_command_that_may_not_be_started_twice_is_cleared_away_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), &format!("{FAMILY}recovery = \"fail\"\nrecovery_reason = \"not twice\"\n"));
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let id = begin(addr);
    let first = family(folder.path(), 1);
    eventually("the group is on record", || has_checkpoint(&data).then_some(()));
    server.kill();
    let server = Server::start(&data, addr);
    eventually("the task has failed", || (state(addr, &id) == "TASK_STATE_FAILED").then_some(()));
    assert!(!is_alive(first.parent) && !is_alive(first.child));
    let task = call(addr, "GetTask", json!({"id": id})).unwrap();
    assert_eq!(task["status"]["message"]["parts"][0]["text"], "not twice");
    server.interrupt();
}

#[test]
fn an_orderly_stop_lets_a_command_say_goodbye_and_is_no_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let config = FAMILY.replace("wait\n", "trap 'echo bye > bye; exit 0' TERM\nwait\n");
    write_config(folder.path(), &config);
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let id = begin(addr);
    let first = family(folder.path(), 1);
    server.interrupt();
    assert!(!is_alive(first.parent) && !is_alive(first.child), "the server has waited for them");
    assert_eq!(std::fs::read_to_string(folder.path().join("bye")).unwrap(), "bye\n");

    let server = Server::start(&data, addr);
    let second = family(folder.path(), 2);
    assert_eq!((first.told.as_str(), second.told.as_str()), ("1 false", "1 true"));
    eventually("it is at work again", || (state(addr, &id) == "TASK_STATE_WORKING").then_some(()));
    server.interrupt();
    is_gone("the second is ended as well", second.parent);
}

#[test]
fn an_orderly_stop_does_not_wait_long_for_a_command_that_is_deaf() {
    let folder = tempfile::tempdir().unwrap();
    let config = FAMILY.replace("sleep 600 &", "trap '' TERM\nsleep 600 &");
    write_config(folder.path(), &config);
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    begin(addr);
    let first = family(folder.path(), 1);
    server.interrupt();
    is_gone("it was killed", first.parent);
    is_gone("and so was its child, which only the server knew of", first.child);
}

/// One at a time; each says what it was asked and its attempt, and stays.
const QUEUE: &str = r#"
[server]
grace_s = 0

[[agent]]
name = "Queue"
processes_max = 1
command = 'echo "$(cat) $A2A_ATTEMPT" >> ran; exec sleep 600'
shell = true
"#;

/// What has run so far, once there are so many.
fn ran(folder: &Path, count: usize) -> Vec<String> {
    eventually("the next command runs", || {
        let text = std::fs::read_to_string(folder.join("ran")).ok()?;
        let ran: Vec<String> = text.lines().map(str::to_owned).collect();
        (ran.len() >= count).then_some(ran)
    })
}

/// Queues these messages for one place, and gives their tasks.
fn queue(addr: std::net::SocketAddr, folder: &Path, texts: &[&str]) -> Vec<String> {
    let mut ids = Vec::new();
    for text in texts {
        let mut send = message(text, text);
        send["configuration"] = json!({"returnImmediately": true});
        let sent = call(addr, "SendMessage", send).unwrap();
        ids.push(sent["task"]["id"].as_str().unwrap().to_owned());
        ran(folder, 1);
    }
    ids
}

#[test]
fn a_command_that_waits_for_its_place_is_not_interrupted_by_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), QUEUE);
    let (data, addr) = (folder.path().join("data"), free_addr());
    let mut server = Server::start(&data, addr);
    let ids = queue(addr, folder.path(), &["a", "b"]);
    // One more kill than a command may be tried.
    for kills in 1..=4 {
        let ran = ran(folder.path(), kills);
        let (text, attempt) = ran[kills - 1].split_once(' ').unwrap();
        let before = ran[..kills].iter().filter(|line| line.starts_with(text)).count();
        assert_eq!(attempt, before.to_string(), "{ran:?}: only what had begun was interrupted");
        server.kill();
        server = Server::start(&data, addr);
    }
    let ran = ran(folder.path(), 5);
    let interrupted = |text: &str| ran[..4].iter().filter(|line| line.starts_with(text)).count();
    for (id, text) in ids.iter().zip(["a", "b"]) {
        let is_worn_out = interrupted(text) == 3;
        eventually("those that began three times have failed, and no others", || {
            ((state(addr, id) == "TASK_STATE_FAILED") == is_worn_out).then_some(())
        });
    }
    server.kill();
}

#[test]
fn a_command_that_may_not_be_started_twice_is_started_once_if_it_waited_through_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), &format!("{QUEUE}recovery = \"fail\"\n"));
    let (data, addr) = (folder.path().join("data"), free_addr());
    let mut server = Server::start(&data, addr);
    let ids = queue(addr, folder.path(), &["a", "b", "c"]);
    for kills in 1..=2 {
        ran(folder.path(), kills);
        server.kill();
        server = Server::start(&data, addr);
    }
    let mut ran = ran(folder.path(), 3);
    let last = ran[2].clone();
    ran.sort();
    assert_eq!(ran, ["a 1", "b 1", "c 1"]);
    for (id, line) in ids.iter().zip(["a 1", "b 1", "c 1"]) {
        let expected = if line == last { "TASK_STATE_WORKING" } else { "TASK_STATE_FAILED" };
        eventually("only what had begun has failed", || (state(addr, id) == expected).then_some(()));
    }
    server.kill();
}

/// As in a container that was entered from outside: no process in it leads its session, and the system numbers that
/// session 0.
#[test]
fn a_command_runs_where_the_leader_of_the_session_is_out_of_sight() {
    let folder = tempfile::tempdir().unwrap();
    write_config(folder.path(), "[[agent]]\nname = \"Cat\"\ncommand = \"cat\"\n");
    let apart = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        unshare
    };
    if !apart().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not tried: this user may not number processes anew");
        return;
    }
    let (data, addr) = (folder.path().join("data"), free_addr());
    for number in 1..=2 {
        let server = Server::start_by(command_under(apart(), &data, addr), addr);
        let sent = call(addr, "SendMessage", message(&format!("m-{number}"), "hello")).unwrap();
        assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{sent}");
        server.kill_under_wrapper();
    }
}
