//! A backup taken under load, and the restore that docs/backup.md describes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;

use super::http::{call, message};
use super::process::{Server, db, free_addr, verify};

/// Acknowledged tasks: what was asked, by id.
type Ledger = Mutex<BTreeMap<String, String>>;

fn send_until(done: &AtomicBool, numbers: &AtomicU64, addr: SocketAddr, ledger: &Ledger) {
    while !done.load(Ordering::Relaxed) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let text = format!("text {number}");
        let sent = call(addr, "SendMessage", message(&format!("m-{number}"), &text)).expect("the server is up");
        ledger.lock().unwrap().insert(sent["task"]["id"].as_str().unwrap().to_owned(), text);
    }
}

fn run(args: &[&OsStr]) {
    let done = db(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn check(addr: SocketAddr, tasks: &BTreeMap<String, String>) {
    for (id, text) in tasks {
        let task = call(addr, "GetTask", json!({"id": id})).expect("the server is up");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], *text, "{id}");
    }
}

#[test]
fn a_backup_under_load_is_restored_with_every_task_acknowledged_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (data, copy, restored) =
        (folder.path().join("data"), folder.path().join("monday.db"), folder.path().join("restored"));
    let addr = free_addr();
    let server = Server::start(&data, addr);
    let (ledger, numbers, done) = (Ledger::default(), AtomicU64::new(0), AtomicBool::new(false));
    let before = std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| send_until(&done, &numbers, addr, &ledger));
        }
        while ledger.lock().unwrap().len() < 200 {
            std::thread::yield_now();
        }
        let before = ledger.lock().unwrap().clone();
        run(&["backup".as_ref(), "--data".as_ref(), data.as_ref(), "--to".as_ref(), copy.as_ref()]);
        // A look at the file in use, too, while the load goes on.
        verify(&data);
        done.store(true, Ordering::Relaxed);
        before
    });
    check(addr, &ledger.lock().unwrap());
    server.interrupt();

    // As docs/backup.md says: check the copy, put it into a folder of its own, serve that.
    run(&["verify".as_ref(), "--file".as_ref(), copy.as_ref()]);
    std::fs::create_dir(&restored).unwrap();
    std::fs::copy(&copy, restored.join("switchboard.db")).unwrap();
    let server = Server::start(&restored, addr);
    check(addr, &before);
    let more = call(addr, "SendMessage", message("m-more", "and on it goes")).unwrap();
    assert_eq!(more["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    server.interrupt();
    verify(&restored);
    println!("{} of {} acknowledged tasks were in the backup for certain", before.len(), ledger.lock().unwrap().len());
}

/// Not only the pages are there: a run that the backup caught in the middle is taken up again where it is restored.
#[test]
fn a_run_that_the_backup_caught_in_the_middle_goes_on_after_the_restore() {
    let folder = tempfile::tempdir().unwrap();
    let (data, restored) = (folder.path().join("data"), folder.path().join("restored"));
    let addr = free_addr();
    let server = Server::start(&data, addr);
    let mut slow = message("m-1", "slow 2 tidy up");
    slow["configuration"] = json!({"returnImmediately": true});
    let sent = call(addr, "SendMessage", slow).unwrap();
    std::fs::create_dir(&restored).unwrap();
    let copy = restored.join("switchboard.db");
    run(&["backup".as_ref(), "--data".as_ref(), data.as_ref(), "--to".as_ref(), copy.as_ref()]);
    server.kill();

    let server = Server::start(&restored, addr);
    let id = sent["task"]["id"].as_str().unwrap();
    let events = super::http::stream(addr, "SubscribeToTask", json!({"id": id}), Some(1));
    let last = events.last().expect("it goes on").result["statusUpdate"]["status"]["state"].clone();
    assert_eq!(last, "TASK_STATE_COMPLETED");
    server.interrupt();
    verify(Path::new(&restored));
}
