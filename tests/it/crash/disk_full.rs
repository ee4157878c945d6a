//! The disk is full or broken, and then it is not. While it is, nothing is acknowledged, everything acknowledged before
//! is read, and `/readyz` says why; when there is space again the server notices by itself.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::{Value, json};

use super::http::{ask, call, message, readiness};
use super::process::{Server, command_under, db_under, free_addr, verify};

/// Longer than anything here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The text of each message: a few of them are a megabyte.
const TEXT_BYTES: usize = 20_000;

/// What was acknowledged, by task, and what was not.
#[derive(Default)]
struct Book {
    acknowledged: BTreeMap<String, String>,
    refused: Vec<Value>,
    sent: usize,
}

impl Book {
    fn send(&mut self, addr: SocketAddr) {
        self.sent += 1;
        let text = format!("{} {}", self.sent, "x".repeat(TEXT_BYTES));
        match ask(addr, "SendMessage", &message(&format!("m-{}", self.sent), &text), &[]) {
            Some(Ok(sent)) => {
                self.acknowledged.insert(sent["task"]["id"].as_str().unwrap().to_owned(), text);
            }
            Some(Err(error)) => self.refused.push(error),
            None => panic!("a full disk is no reason to go away"),
        }
    }

    /// Everything acknowledged is there, and nothing else.
    fn check(&self, addr: SocketAddr) {
        assert_eq!(self.check_acknowledged(addr), self.acknowledged.len(), "what was refused did not happen");
    }

    /// Everything acknowledged is there; says how many tasks there are.
    fn check_acknowledged(&self, addr: SocketAddr) -> usize {
        for (id, text) in &self.acknowledged {
            let task = call(addr, "GetTask", json!({"id": id})).expect("the server is up");
            assert_eq!(task["artifacts"][0]["parts"][0]["text"], *text, "{id}");
        }
        let page = call(addr, "ListTasks", json!({"pageSize": 1})).expect("the server is up");
        usize::try_from(page["totalSize"].as_u64().unwrap()).unwrap()
    }
}

/// Sends until the server says that it cannot, and says so in `/readyz`, too.
fn fill(addr: SocketAddr, book: &mut Book, reason: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        book.send(addr);
        // A little space may be left for the server's own attempts to write; they use it up after a while.
        let (status, said) = readiness(addr).expect("the server is up");
        if status == 503 {
            assert!(said.starts_with("the store does not take commits: ") && said.contains(reason), "{said}");
            break;
        }
        assert!(Instant::now() < deadline, "{} messages and the disk is not full", book.sent);
    }
    for error in &book.refused {
        assert_eq!(error["data"][0]["reason"], "UNAVAILABLE", "{error}");
        let text = error["message"].as_str().unwrap();
        assert!(text.contains("the store does not answer (incident "), "{text}");
    }
    assert!(!book.refused.is_empty(), "nothing was refused");
}

fn fills_and_recovers(server: &Server, book: &mut Book, reason: &str, make_room: impl FnOnce()) {
    let addr = server.addr;
    fill(addr, book, reason);
    book.check(addr);
    make_room();
    // No client sends anything: the server finds out by itself.
    server.wait_until_ready();
    for _ in 0..10 {
        let before = book.refused.len();
        book.send(addr);
        assert_eq!(book.refused.len(), before, "{:?}", book.refused.last());
    }
    book.check(addr);
}

/// No file of this process may grow beyond a size, which SQLite is told as it is told of any error of the disk.
#[test]
fn a_file_that_may_not_grow_fails_closed_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let mut book = Book::default();
    for _ in 0..20 {
        book.send(addr);
    }
    assert_eq!(book.refused, [] as [Value; 0]);
    let maximum = getrlimit(Resource::Fsize).maximum;
    let limit = |server: &Server, bytes: Option<u64>| {
        prlimit(Some(server.pid()), Resource::Fsize, Rlimit { current: bytes, maximum }).unwrap();
    };
    limit(&server, Some(2 << 20));
    fills_and_recovers(&server, &mut book, "the disk reports an error", || limit(&server, maximum));
    verify(&data);

    // And once more, but this time it is killed before there is space.
    limit(&server, Some(4 << 20));
    fill(addr, &mut book, "the disk reports an error");
    server.kill();
    let server = Server::start(&data, addr);
    book.check(addr);
    server.interrupt();
    verify(&data);
}

/// A file system of a few megabytes, where this user may have one.
#[test]
fn a_full_file_system_fails_closed_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    std::fs::create_dir(&data).unwrap();
    // A mount that no other process sees, and that ends with the server. Removing the ballast file makes space later.
    let script =
        "mount -t tmpfs -o size=12m,mode=0700 tmpfs \"$0\" && head -c 8m /dev/zero > \"$0/ballast\" && exec \"$@\"";
    let apart = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", command]).arg(&data);
        unshare
    };
    let mut rehearsal = apart(&script.replace("exec", "true"));
    if !rehearsal.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        println!("not tried: this user may not mount a file system of its own");
        return;
    }
    let server = Server::start_by(command_under(apart(script), &data, addr), addr);
    // The folder as the server sees it.
    let ballast =
        Path::new(&format!("/proc/{}/root", server.pid())).join(data.strip_prefix("/").unwrap()).join("ballast");
    let mut book = Book::default();
    fills_and_recovers(&server, &mut book, "the disk is full", || std::fs::remove_file(ballast).unwrap());

    // The file system goes with the server, but a backup can be taken from inside.
    let copy = folder.path().join("copy.db");
    let mut inside = Command::new("nsenter");
    inside.args(["--user", "--mount", "--preserve-credentials", "--target", &server.pid().to_string()]);
    let args = ["backup".as_ref(), "--data".as_ref(), data.as_os_str(), "--to".as_ref(), copy.as_os_str()];
    let copied = db_under(inside, &args);
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    server.kill();
    let restored = folder.path().join("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::rename(&copy, restored.join("switchboard.db")).unwrap();
    let server = Server::start(&restored, addr);
    book.check(addr);
    server.interrupt();
    verify(&restored);
}

/// System calls of a process that fail, as long as this lives.
struct Failing(Child);

impl Failing {
    /// None where there is no `strace`, or it may not attach to another process.
    fn begin(server: &Server, calls: &str) -> Option<Self> {
        let mut strace = Command::new("strace");
        strace.args(["--follow-forks", "--output=/dev/null", "--attach", &server.pid().as_raw_nonzero().to_string()]);
        strace.args([format!("--trace={calls}"), format!("--inject={calls}:error=EIO")]);
        let mut strace = strace.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        let said = BufReader::new(strace.stderr.take().expect("it is piped")).lines().next();
        match said {
            Some(Ok(line)) if line.contains("attached") => Some(Self(strace)),
            _ => {
                println!("not tried: strace cannot attach: {said:?}");
                let _ = strace.wait();
                None
            }
        }
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        // Interrupted, it lets go of the server; killed, it would take it along.
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("it runs");
        self.0.wait().expect("it ends");
    }
}

/// The disk takes what is written and then cannot promise to keep it.
#[test]
fn a_disk_that_cannot_sync_is_not_believed() {
    a_disk_that_fails("fsync,fdatasync");
}

#[test]
fn a_disk_that_cannot_write_is_not_believed() {
    a_disk_that_fails("pwrite64");
}

fn a_disk_that_fails(calls: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let mut book = Book::default();
    for _ in 0..5 {
        book.send(addr);
    }
    let Some(failing) = Failing::begin(&server, calls) else { return };
    fills_and_recovers(&server, &mut book, "the disk reports an error", || drop(failing));
    // And once more, but this time it is killed while the disk fails.
    let Some(failing) = Failing::begin(&server, calls) else { return };
    fill(addr, &mut book, "the disk reports an error");
    drop(failing);
    server.kill();
    let server = Server::start(&data, addr);
    // What was written and not synced when the server died may be there or not: it was not acknowledged.
    let most = book.acknowledged.len() + book.refused.len();
    assert!((book.acknowledged.len()..=most).contains(&book.check_acknowledged(addr)));
    server.interrupt();
    verify(&data);
}
