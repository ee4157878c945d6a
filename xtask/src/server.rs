//! A server of ours as a process: started on a free port, ready, and stopped again.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(50);
const POLLS_MAX: u32 = 300;
const CARD: &str = "/.well-known/agent-card.json";

pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Runs the command that `serving` makes for an address, and waits until it serves a card there.
    pub(crate) fn start(serving: impl FnOnce(SocketAddr) -> Command) -> Result<Server, String> {
        let address = free_address().map_err(|error| format!("no free port: {error}"))?;
        let mut command = serving(address);
        without_settings(&mut command);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut server = Server { child, address };
        for _ in 0..POLLS_MAX {
            if serves_card(address) {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{name} ended at once ({status})"));
            }
            std::thread::sleep(POLL);
        }
        Err(format!("{name} serves no card at http://{address}{CARD}"))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Removes settings of the developer's environment from the server's: variables such as `NODE_ENV` decide whether it
/// starts.
fn without_settings(command: &mut Command) {
    const KEPT: [&str; 6] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "RUST_LOG"];
    let inherited = std::env::vars_os().map(|(name, _)| name);
    let given: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    let unwanted: Vec<_> =
        inherited.filter(|name| !KEPT.iter().any(|kept| name == *kept) && !given.contains(name)).collect();
    for name in unwanted {
        command.env_remove(name);
    }
}

fn serves_card(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {CARD} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        // To the end, though the first line is enough: a server logs a client that leaves in the middle.
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply.starts_with("HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
