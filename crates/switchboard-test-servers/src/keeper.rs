//! A shell that keeps a server: it starts it, carries out what it is told on its standard input, and stops it and removes its folder
//! when that is closed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// A running shell. It ends when this is dropped.
pub(crate) struct Keeper {
    running: Mutex<Running>,
    /// What it said beside that it is ready: the folder of the server.
    pub(crate) folder: String,
}

struct Running {
    child: Child,
    /// Closed to end the shell.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts a shell with this script, as a user without rights, and waits until it answers `ready`.
    ///
    /// # Panics
    /// When it answers something else.
    pub(crate) fn start(what: &str, script: &str, arguments: &[&OsStr], prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = unprivileged_shell();
        command.args(["-c", script, "keeper"]).args(arguments);
        // The folder of a test need not be one that the user of the server may enter.
        command.current_dir("/");
        prepare(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell can be started");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let orders = child.stdin.take();
        let mut running = Running { child, orders, answers };
        let answer = running.answer();
        let folder = answer.strip_prefix("ready ");
        let folder = folder.unwrap_or_else(|| panic!("{what} does not start ({answer}); what it said is above"));
        Self { running: Mutex::new(running), folder: folder.to_owned() }
    }

    /// # Panics
    /// When the shell does not answer that it is done.
    pub(crate) fn order(&self, order: &str) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let orders = running.orders.as_mut().expect("it is open until the keeper is dropped");
        writeln!(orders, "{order}").expect("the keeper listens");
        let answer = running.answer();
        assert_eq!(answer, "done", "{order}");
    }
}

impl Running {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        let _ = self.answers.read_line(&mut line);
        line.trim().to_owned()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        running.orders = None;
        let _ = running.child.wait();
    }
}

/// What is in front of a command so that it runs without rights: PostgreSQL refuses to run as root, and no server of a test needs to.
pub(crate) fn unprivileged() -> &'static [&'static str] {
    let user = Command::new("id").arg("-u").output().expect("the system tells who one is");
    let is_root = user.stdout.trim_ascii() == b"0";
    if is_root { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"] } else { &[] }
}

fn unprivileged_shell() -> Command {
    let Some((program, arguments)) = unprivileged().split_first() else { return Command::new("sh") };
    let mut shell = Command::new(program);
    shell.args(arguments).arg("sh").env("HOME", "/").env_remove("TMPDIR");
    shell
}
