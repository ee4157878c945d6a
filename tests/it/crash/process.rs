//! The server as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub(super) struct Server {
    child: Child,
    pub(super) addr: SocketAddr,
}

/// The binary that `scripts/test` has built beside this test.
pub(super) fn binary() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let built = test.parent().and_then(Path::parent).expect("tests are built in target/PROFILE/deps");
    let binary = built.join("switchboard");
    assert!(binary.exists(), "{} is missing: build the workspace first, as scripts/test does", binary.display());
    binary
}

/// A port nobody uses at the moment.
pub(super) fn free_addr() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("loopback has free ports")
}

pub(super) fn command(data: &Path, addr: SocketAddr) -> Command {
    let mut command = Command::new(binary());
    command.args(["serve", "--listen", &addr.to_string(), "--data"]).arg(data);
    command.current_dir(data.parent().expect("data is in a folder")).stdin(Stdio::null());
    command
}

impl Server {
    /// Starts the server and waits until it says it is ready.
    pub(super) fn start(data: &Path, addr: SocketAddr) -> Self {
        Self::start_with(data, addr, &[])
    }

    /// As [`Server::start`], with more arguments.
    pub(super) fn start_with(data: &Path, addr: SocketAddr, args: &[&str]) -> Self {
        let mut child =
            command(data, addr).args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        // Somebody must read what it says, or it blocks; what it says is shown if the test fails.
        let stderr = child.stderr.take().expect("stderr is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                println!("server: {line}");
            }
        });
        let server = Self { child, addr };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_ready(self.addr) {
            assert!(Instant::now() < deadline, "the server did not get ready");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it where it stands.
    pub(super) fn kill(mut self) {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it is gone");
    }

    /// Asks it to stop, as Ctrl-C does, and waits until it has.
    pub(super) fn interrupt(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it was running");
        let status = self.child.wait().expect("it is gone");
        assert!(status.success(), "an orderly stop is no failure: {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_ready(addr: SocketAddr) -> bool {
    let Ok(mut socket) = TcpStream::connect(addr) else { return false };
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    socket.write_all(request.as_bytes()).and_then(|()| socket.read_to_string(&mut answer)).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
