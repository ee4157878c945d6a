//! The server as a process.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
pub(super) use switchboard_test_servers::free_addr;

use super::http::readiness;
use crate::support::limit::Limit;

pub(super) struct Server {
    child: Child,
    pub(super) addr: SocketAddr,
    _limit: Limit,
}

/// The binary that `scripts/test` has built beside this test.
pub(super) fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let built = test.parent().and_then(Path::parent).expect("tests are built in target/PROFILE/deps");
    let binary = built.join("switchboard");
    assert!(binary.exists(), "{} is missing: build the workspace first, as scripts/test does", binary.display());
    binary
}

/// Variables that a server started by a test may see. Others, such as `NODE_ENV` or `SWITCHBOARD_LISTEN`, would be settings.
const VARIABLES_KEPT: [&str; 6] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "RUST_LOG"];

/// Removes settings in the developer's environment from the server's.
pub(super) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if !VARIABLES_KEPT.iter().any(|kept| name == *kept) {
            command.env_remove(name);
        }
    }
}

pub(super) fn command(data: &Path, addr: SocketAddr) -> Command {
    serving(Command::new(binary()), data, addr)
}

/// Serves by way of a program that is given the server's command line.
pub(super) fn command_under(mut wrapper: Command, data: &Path, addr: SocketAddr) -> Command {
    wrapper.arg(binary());
    serving(wrapper, data, addr)
}

fn serving(mut command: Command, data: &Path, addr: SocketAddr) -> Command {
    without_settings(&mut command);
    command.args(["serve", "--listen", &addr.to_string(), "--data"]).arg(data);
    command.current_dir(data.parent().expect("data is in a folder")).stdin(Stdio::null());
    command
}

/// Runs `switchboard db` with these arguments.
pub(super) fn db<A: AsRef<OsStr>>(args: &[A]) -> Output {
    run_db(Command::new(binary()), args)
}

/// As [`db`], by way of a program that is given the command line.
pub(super) fn db_under<A: AsRef<OsStr>>(mut wrapper: Command, args: &[A]) -> Output {
    wrapper.arg(binary());
    run_db(wrapper, args)
}

fn run_db<A: AsRef<OsStr>>(mut command: Command, args: &[A]) -> Output {
    without_settings(&mut command);
    command.arg("db").args(args).stdin(Stdio::null()).output().expect("it starts")
}

/// Checks a folder of data, or panics with what is wrong.
pub(super) fn verify(data: &Path) {
    let checked = db(&["verify".as_ref(), "--data".as_ref(), data.as_os_str()]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{said}{}", String::from_utf8_lossy(&checked.stderr));
    println!("{}", said.trim());
}

impl Server {
    /// Starts the server and waits until it says it is ready.
    pub(super) fn start(data: &Path, addr: SocketAddr) -> Self {
        Self::start_with(data, addr, &[])
    }

    /// As [`Server::start`], with more arguments.
    pub(super) fn start_with(data: &Path, addr: SocketAddr, args: &[&str]) -> Self {
        let mut command = command(data, addr);
        command.args(args);
        Self::start_by(command, addr)
    }

    /// As [`Server::start`], by a command of one's own.
    pub(super) fn start_by(command: Command, addr: SocketAddr) -> Self {
        let server = Self::start_unready(command, addr);
        server.wait_until_ready();
        server
    }

    /// Starts the server and does not wait for it.
    pub(super) fn start_unready(mut command: Command, addr: SocketAddr) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        // Its output must be read, or it blocks; the output is shown if the test fails.
        let stderr = child.stderr.take().expect("stderr is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                println!("server: {line}");
            }
        });
        Self { child, addr, _limit: Limit::new() }
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while readiness(self.addr).is_none_or(|(status, _)| status != 200) {
            assert!(Instant::now() < deadline, "the server did not get ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is running");
    }

    /// Memory in use now, in KiB.
    #[cfg(target_os = "linux")]
    pub(super) fn memory_kib(&self) -> u64 {
        self.status("VmRSS")
    }

    /// The most memory in use since [`Server::forget_memory_peak`], in KiB.
    #[cfg(target_os = "linux")]
    pub(super) fn memory_peak_kib(&self) -> u64 {
        self.status("VmHWM")
    }

    #[cfg(target_os = "linux")]
    pub(super) fn forget_memory_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").expect("the process is ours");
    }

    #[cfg(target_os = "linux")]
    fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it is running");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("the kernel says how much")
    }

    /// Kills a server that a wrapper has started and waits for. When the wrapper ends, the server has let go of its files.
    pub(super) fn kill_under_wrapper(mut self) {
        let wrapper = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{wrapper}/task/{wrapper}/children"));
        let children = children.expect("the wrapper is there");
        let server = children.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        kill_process(server.expect("the wrapper has a child"), Signal::KILL).expect("it is there");
        self.child.wait().expect("the wrapper ends");
    }

    /// Kills it where it stands.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it is gone");
    }

    /// Asks it to stop, as Ctrl-C does, and waits until it has.
    pub(super) fn interrupt(self) {
        self.stop_by(Signal::INT);
    }

    /// Asks it to stop, as `kill` and container platforms do, and waits until it has.
    pub(super) fn terminate(self) {
        self.stop_by(Signal::TERM);
    }

    fn stop_by(mut self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it was running");
        let status = eventually("the server stops", || self.child.try_wait().expect("it is a child of this process"));
        assert!(status.success(), "an orderly stop is no failure: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This test program once more, as a process that serves: for servers whose agents are written in Rust. Killed when dropped.
pub(super) struct OwnProcess {
    child: Child,
    pub(super) addr: SocketAddr,
}

impl OwnProcess {
    /// Runs the test of this name, which finds `variables` in its environment and then prints `listening on ADDRESS`.
    pub(super) fn start(test: &str, variables: &[(&str, &OsStr)]) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
        without_settings(&mut command);
        command.args(["--exact", test, "--nocapture"]).envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = child.stdout.take().expect("its output is piped");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let addr = lines.filter_map(|line| line.split_once("listening on ")?.1.trim().parse().ok()).next();
        Self { child, addr: addr.expect("it says where it listens") }
    }
}

impl Drop for OwnProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again until there is something to see.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}")
}
