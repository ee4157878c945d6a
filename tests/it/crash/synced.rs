//! What must be on disk before the next step is: a backup before it gets its name, its name before it is reported, the
//! copy of a migration before the migration. Nothing but the system calls shows it, so they are watched.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::{Server, command_under, db, db_under, eventually, free_addr, verify};

/// The system calls that matter here, in order: what was called, and on which files.
struct Calls(Vec<String>);

/// Has `strace` write the calls of a program into a file. None where there is no `strace`, or it may not trace.
fn strace(output: &Path) -> Option<Command> {
    let strace = || {
        let mut strace = Command::new("strace");
        // The tracer steps aside, so that signals reach the program.
        strace.args(["--daemonize", "--follow-forks", "--decode-fds=path", "--string-limit=4096"]);
        strace.args(["--trace=fsync,fdatasync,rename,renameat,renameat2,pwrite64,ftruncate,mkdir,openat"]);
        strace.arg("--output").arg(output);
        strace
    };
    let works = strace().arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if works.is_ok_and(|status| status.success()) {
        return Some(strace());
    }
    println!("not tried: strace is missing, or may not trace");
    None
}

impl Calls {
    /// Reads what was written when the program has ended; the tracer needs a moment more.
    fn read(output: &Path) -> Self {
        let text = eventually("the tracer has ended", || {
            let text = std::fs::read_to_string(output).ok()?;
            let begun = text.lines().next()?.split_whitespace().next()?.to_owned();
            let ended = |line: &str| line.starts_with(&begun) && line.contains("+++ exited with");
            text.lines().any(ended).then_some(text)
        });
        Self(text.lines().map(str::to_owned).collect())
    }

    /// The places of calls whose line holds all of these.
    fn places<'a>(&'a self, parts: &'a [&'a str]) -> impl DoubleEndedIterator<Item = usize> + 'a {
        let holds = |line: &String| parts.iter().all(|part| line.contains(part));
        self.0.iter().enumerate().filter(move |(_, line)| holds(line)).map(|(place, _)| place)
    }

    fn last(&self, parts: &[&str]) -> usize {
        self.places(parts).next_back().unwrap_or_else(|| panic!("no call {parts:?} in\n{}", self.0.join("\n")))
    }

    fn first(&self, parts: &[&str]) -> usize {
        self.places(parts).next().unwrap_or_else(|| panic!("no call {parts:?} in\n{}", self.0.join("\n")))
    }

    /// The first sync of a file after a place.
    fn synced_after(&self, place: usize, path: &Path) -> usize {
        let path = format!("<{}>", path.display());
        let found = self.places(&["sync(", &path]).find(|at| *at > place);
        found.unwrap_or_else(|| panic!("{path} is not synced after line {place} of\n{}", self.0.join("\n")))
    }

    /// A copy is written, synced, named, and its name is synced, in this order; says where that is done.
    fn is_durable(&self, copy: &Path) -> usize {
        let part = format!("{}.part", copy.display());
        let written = self.last(&["pwrite64(", &format!("<{part}>")]);
        let named = self.first(&["rename", &format!("\"{part}\"")]);
        let synced = self.synced_after(written, Path::new(&part));
        assert!(synced < named, "it is synced before it gets its name");
        self.synced_after(named, copy.parent().unwrap())
    }
}

/// As the system knows it: temporary folders may be behind links.
fn real(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().canonicalize().unwrap()
}

#[test]
fn a_backup_is_on_disk_before_it_has_its_name_and_so_is_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = real(&folder);
    let (data, calls, copies) = (root.join("data"), root.join("calls"), root.join("copies"));
    std::fs::create_dir(&copies).unwrap();
    Server::start(&data, free_addr()).interrupt();
    let Some(tracer) = strace(&calls) else { return };
    let copy = copies.join("monday.db");
    let args = ["backup".as_ref(), "--data".as_ref(), data.as_os_str(), "--to".as_ref(), copy.as_os_str()];
    let done = db_under(tracer, &args);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Calls::read(&calls).is_durable(&copy);
    let checked = db(&["verify".as_ref(), "--file".as_ref(), copy.as_os_str()]);
    assert!(checked.status.success());
}

#[test]
fn a_new_folder_and_a_new_file_are_on_disk_before_the_server_is_ready() {
    let folder = tempfile::tempdir().unwrap();
    let root = real(&folder);
    let (data, calls) = (root.join("data"), root.join("calls"));
    let Some(tracer) = strace(&calls) else { return };
    let addr = free_addr();
    Server::start_by(command_under(tracer, &data, addr), addr).interrupt();
    let calls = Calls::read(&calls);
    let made = calls.first(&["mkdir", &format!("\"{}\"", data.display())]);
    let file = calls.first(&["openat", "O_CREAT", &format!("\"{}\"", data.join("switchboard.db").display())]);
    // The folder that holds the folder, and the folder that holds the file.
    assert!(calls.synced_after(made, &root) < file, "the folder's name is durable before there is anything in it");
    calls.synced_after(file, &data);
    verify(&data);
}

#[test]
fn a_migration_begins_when_the_copy_is_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let root = real(&folder);
    let (data, calls) = (root.join("data"), root.join("calls"));
    std::fs::create_dir(&data).unwrap();
    let database = data.join("switchboard.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/switchboard-stores/fixtures/schema-v1.db");
    std::fs::copy(fixture, &database).unwrap();
    let Some(tracer) = strace(&calls) else { return };
    let addr = free_addr();
    Server::start_by(command_under(tracer, &data, addr), addr).interrupt();
    let calls = Calls::read(&calls);
    let durable = calls.is_durable(&data.join("switchboard.db.v1-backup"));
    let written = calls.first(&["pwrite64(", &format!("<{}>", database.display())]);
    assert!(durable < written, "the file is changed at line {written}, and its copy is durable at line {durable}");
    verify(&data);
}
