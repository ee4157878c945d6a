//! A server as a process, ours or that of another SDK: started on a free port, ready, and stopped again.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use switchboard_test_servers::free_addr;

use crate::folders::built;

/// Cards with gRPC on them, for a server of ours.
pub(crate) const ALL_INTERFACES: &[&str] =
    &["--interface", "JSONRPC", "--interface", "HTTP+JSON", "--interface", "GRPC"];

const POLL: Duration = Duration::from_millis(50);
const POLLS_MAX: u32 = 300;
/// Where a card may be; the second is that of servers before 0.3.
const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Runs the command that `serving` makes for an address, and waits until it serves a card there.
    pub(crate) fn start(serving: impl FnOnce(SocketAddr) -> Command) -> Result<Server, String> {
        Self::start_saying(Stdio::null(), serving)
    }

    /// The binary that was built beside this program, which may post to this machine. Its data are in `folder`, in a folder of this
    /// name that is made anew, and its log is beside that.
    pub(crate) fn switchboard(
        folder: &Path,
        name: &str,
        configure: impl FnOnce(&mut Command),
    ) -> Result<Server, String> {
        let (data, log) = (folder.join(name), folder.join(format!("{name}.log")));
        let _ = std::fs::remove_dir_all(&data);
        let told = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let server = Self::start(|address| {
            let mut command = Command::new(built().join("switchboard"));
            command.args(["serve", "--listen", &address.to_string(), "--outbound-allow", "127.0.0.0/8"]);
            configure(&mut command);
            // Away from any switchboard.toml.
            command.arg("--data").arg(&data).current_dir(folder).stderr(Stdio::from(told));
            command
        });
        server.map_err(|message| {
            format!("{message}; build the workspace first, as scripts/test does, and see {}", log.display())
        })
    }

    /// The same, with what it says on its standard output going elsewhere than nowhere.
    pub(crate) fn start_saying(output: Stdio, serving: impl FnOnce(SocketAddr) -> Command) -> Result<Server, String> {
        let address = free_addr();
        let mut command = serving(address);
        without_settings(&mut command);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut server = Server { child, address };
        for _ in 0..POLLS_MAX {
            if CARDS.iter().any(|path| serves(address, path)) {
                return Ok(server);
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{name} ended at once ({status})"));
            }
            std::thread::sleep(POLL);
        }
        Err(format!("{name} serves no card at http://{address}{}", CARDS[0]))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The answer to a GET, head included; none if there is no good one.
    pub(crate) fn get(&self, path: &str) -> Option<String> {
        get(self.address, path)
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

fn serves(address: SocketAddr, path: &str) -> bool {
    get(address, path).is_some()
}

fn get(address: SocketAddr, path: &str) -> Option<String> {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        // To the end, though the first line is enough for some: a server logs a client that leaves in the middle.
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok(reply)
    };
    ask().ok().filter(|reply| reply.starts_with("HTTP/1.1 200"))
}
