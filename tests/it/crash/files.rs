//! The files of a server, mistreated: gone, empty, full, read-only, under a second name, with a damaged row. The server
//! says what is wrong with which of them, and goes on with what it can.

use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::http::{ask, call, message, readiness};
use super::process::{Server, command, command_under, db, eventually, free_addr, verify};

fn database(data: &Path) -> std::path::PathBuf {
    data.join("switchboard.db")
}

/// A server that was stopped in order, with one finished task.
fn with_a_task(data: &Path) -> String {
    let addr = free_addr();
    let server = Server::start(data, addr);
    let sent = call(addr, "SendMessage", message("m-1", "hello")).unwrap();
    server.interrupt();
    sent["task"]["id"].as_str().unwrap().to_owned()
}

/// What a server says that does not start.
fn refusal(mut command: Command) -> String {
    let output = command.stdout(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    said
}

#[test]
fn neither_a_link_nor_a_removed_lock_lets_a_second_server_in() {
    let folder = tempfile::tempdir().unwrap();
    let (data, other) = (folder.path().join("data"), folder.path().join("other"));
    let server = Server::start(&data, free_addr());
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(database(&data), database(&other)).unwrap();
    let said = refusal(command(&other, free_addr()));
    assert!(said.contains("is in use by"), "{said}");
    std::fs::remove_file(data.join("switchboard.db.lock")).unwrap();
    let said = refusal(command(&data, free_addr()));
    assert!(said.contains("is in use by"), "{said}");
    server.interrupt();
    verify(&data);
}

#[test]
fn a_data_folder_that_is_deleted_is_noticed_and_nothing_more_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let sent = call(addr, "SendMessage", message("m-1", "hello")).unwrap();
    std::fs::remove_dir_all(&data).unwrap();
    // No client has to send anything for it.
    let said = eventually("the server is not ready", || readiness(addr).filter(|(status, _)| *status == 503));
    assert!(said.1.contains("the database was deleted or replaced"), "{}", said.1);
    let refused = ask(addr, "SendMessage", &message("m-2", "hello"), &[]).unwrap().expect_err("it would be lost");
    assert_eq!(refused["data"][0]["reason"], "UNAVAILABLE", "{refused}");
    let task = call(addr, "GetTask", json!({"id": sent["task"]["id"]})).unwrap();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "what is known is still read");
    server.kill();
}

#[test]
fn a_database_that_is_empty_or_lost_is_not_replaced_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let id = with_a_task(&data);
    let away = folder.path().join("away.db");
    std::fs::rename(database(&data), &away).unwrap();

    std::fs::write(database(&data), "").unwrap();
    let said = refusal(command(&data, free_addr()));
    assert!(said.contains("switchboard.db is empty (0 bytes)") && said.contains("restore a backup"), "{said}");

    std::fs::remove_file(database(&data)).unwrap();
    std::fs::write(data.join("switchboard.db-wal"), "left over").unwrap();
    let said = refusal(command(&data, free_addr()));
    assert!(said.contains("switchboard.db-wal is there") && said.contains("switchboard db reset"), "{said}");
    assert!(!database(&data).exists(), "nothing was made in its place");

    std::fs::remove_file(data.join("switchboard.db-wal")).unwrap();
    std::fs::rename(&away, database(&data)).unwrap();
    let addr = free_addr();
    let server = Server::start(&data, addr);
    assert_eq!(call(addr, "GetTask", json!({"id": id})).unwrap()["id"], id.as_str());
    server.interrupt();
    verify(&data);
}

/// No file may grow, as on a full disk, already while the server starts.
#[test]
fn a_server_killed_on_a_full_disk_starts_there_shows_its_past_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let mut ids = Vec::new();
    for number in 0..30 {
        let text = format!("{number} {}", "x".repeat(20_000));
        let sent = call(addr, "SendMessage", message(&format!("m-{number}"), &text)).unwrap();
        ids.push(sent["task"]["id"].as_str().unwrap().to_owned());
    }
    server.kill();
    // Smaller than the write-ahead log and larger than the index beside it, which is made anew.
    assert!(std::fs::metadata(data.join("switchboard.db-wal")).unwrap().len() > 200_000);
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -S -f 200; exec \"$0\" \"$@\""]);
    let server = Server::start_unready(command_under(limited, &data, addr), addr);
    let (_, said) = eventually("it says why it is not ready", || {
        readiness(addr).filter(|(status, said)| *status == 503 && said.contains("the store does not take commits"))
    });
    assert!(said.contains("the disk"), "{said}");
    for id in &ids {
        assert_eq!(call(addr, "GetTask", json!({"id": id})).unwrap()["status"]["state"], "TASK_STATE_COMPLETED");
    }
    let refused = ask(addr, "SendMessage", &message("m-new", "hello"), &[]).unwrap().expect_err("there is no room");
    assert_eq!(refused["data"][0]["reason"], "UNAVAILABLE", "{refused}");

    // There is space again, and no client sends anything.
    let maximum = rustix::process::getrlimit(rustix::process::Resource::Fsize).maximum;
    let limit = rustix::process::Rlimit { current: maximum, maximum };
    rustix::process::prlimit(Some(server.pid()), rustix::process::Resource::Fsize, limit).unwrap();
    server.wait_until_ready();
    call(addr, "SendMessage", message("m-new", "hello")).unwrap();
    server.interrupt();
    verify(&data);
}

/// A folder that cannot be written, where this user may have one.
#[test]
fn a_read_only_folder_is_named_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    with_a_task(&data);
    let apart = |script: &str| {
        let mut unshare = Command::new("unshare");
        let script = format!("mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && {script}");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(&data).stdin(Stdio::null());
        unshare
    };
    if !apart("! touch \"$0/x\"").stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not tried: this user may not mount a folder of its own");
        return;
    }
    let said = refusal(command_under(apart("exec \"$@\""), &data, free_addr()));
    assert!(said.contains("cannot be written") && said.contains("mount it for writing"), "{said}");
    let read = |args: &[&std::ffi::OsStr]| {
        let output = super::process::db_under(apart("exec \"$@\""), args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    read(&["verify".as_ref(), "--data".as_ref(), data.as_os_str()]);
    let copy = folder.path().join("copy.db");
    read(&["backup".as_ref(), "--data".as_ref(), data.as_os_str(), "--to".as_ref(), copy.as_os_str()]);
    assert!(copy.exists());

    // With commits that are not in the database yet, it cannot be read there, and the reason is said.
    std::fs::write(data.join("switchboard.db-wal"), "not empty").unwrap();
    let args = ["verify".as_ref(), "--data".as_ref(), data.as_os_str()];
    let output = super::process::db_under(apart("exec \"$@\""), &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("Copy both files"), "{said}");
    std::fs::remove_file(data.join("switchboard.db-wal")).unwrap();
}

const SLEEPERS: &str = r#"
[server]
grace_s = 0

[[agent]]
name = "Sleeper"
command = 'echo "$(cat) $A2A_ATTEMPT" >> ran; exec sleep 600'
shell = true
"#;

fn ran(folder: &Path, lines: usize) -> Vec<String> {
    eventually("the commands run", || {
        let text = std::fs::read_to_string(folder.join("ran")).ok()?;
        let ran: Vec<String> = text.lines().map(str::to_owned).collect();
        (ran.len() >= lines).then_some(ran)
    })
}

#[test]
fn a_damaged_task_costs_nobody_else_anything() {
    for damage in ["artifacts = 'x'", "state = 99"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("switchboard.toml"), SLEEPERS).unwrap();
        let (data, addr) = (folder.path().join("data"), free_addr());
        let server = Server::start(&data, addr);
        let mut ids: Vec<Value> = Vec::new();
        for text in ["one", "two", "three"] {
            let mut send = message(text, text);
            send["configuration"] = json!({"returnImmediately": true});
            ids.push(call(addr, "SendMessage", send).unwrap()["task"]["id"].clone());
            ran(folder.path(), ids.len());
        }
        server.kill();
        let broken = Connection::open(database(&data)).unwrap();
        broken.execute(&format!("UPDATE task SET {damage} WHERE task_no = 2"), []).unwrap();
        drop(broken);

        let server = Server::start(&data, addr);
        let mut again = ran(folder.path(), 5).split_off(3);
        again.sort();
        assert_eq!(again, ["one 2", "three 2"], "{damage}: the others are taken up");
        let (status, said) = readiness(addr).unwrap();
        let bad = ids[1].as_str().unwrap();
        assert_eq!(status, 200, "{damage}: {said}");
        assert!(said.contains(&format!("1 damaged and passed over: task {bad}")), "{damage}: {said}");
        let refused = super::http::post_for_error(addr, "GetTask", &json!({"id": bad}));
        assert!(refused["message"].as_str().unwrap().contains("incident"), "{damage}: {refused}");
        assert_eq!(readiness(addr).unwrap().0, 200, "{damage}: a reader of it does no harm");
        let page = call(addr, "ListTasks", json!({})).unwrap();
        assert_eq!(page["tasks"].as_array().unwrap().len(), 2, "{damage}");
        server.interrupt();
        let checked = db(&["verify".as_ref(), "--data".as_ref(), data.as_os_str()]);
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(!checked.status.success() && said.contains(bad), "{damage}: {said}");
    }
}
