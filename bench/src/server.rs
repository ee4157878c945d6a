//! A durable server as a process of its own, for the benchmarks that ask it about itself.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use switchboard_test_servers::free_addr;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::load::Connection;
use crate::process::raise_file_limit;

/// What a benchmark is told that starts durable servers.
#[derive(clap::Args)]
pub struct ServerArguments {
    /// The server to start; by default the one beside this binary that the benchmark is meant for.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Where data is kept: must be a real disk. By default the folder of this binary.
    #[arg(long)]
    scratch: Option<PathBuf>,
}

/// What it takes to start them.
pub(crate) struct Prepared {
    pub(crate) program: PathBuf,
    /// The folder of this binary.
    pub(crate) beside: PathBuf,
    /// Removed when dropped.
    pub(crate) folder: TempDir,
    pub(crate) runtime: Runtime,
}

impl ServerArguments {
    /// `usual` is the server that is started if no other is asked for.
    pub(crate) fn prepare(&self, usual: &str) -> Result<Prepared> {
        raise_file_limit();
        let own = std::env::current_exe().context("cannot find this binary")?;
        let beside = own.parent().context("a binary lies in a folder")?.to_owned();
        let program = self.server.clone().unwrap_or_else(|| beside.join(usual));
        ensure!(program.exists(), "{} is not built", program.display());
        let scratch = self.scratch.clone().unwrap_or_else(|| beside.clone());
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(scratch)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Prepared { program, beside, folder, runtime })
    }
}

const READY_WAIT: Duration = Duration::from_secs(60);

/// Killed when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Its data and what it prints are kept in the folder.
    pub(crate) fn start(program: &Path, folder: &Path, more: &[&str]) -> Result<Server> {
        let mut command = serving(program);
        command.arg("--data").arg(folder.join("data"));
        Server::start_by(command, folder, more)
    }

    /// One of several that share a database in PostgreSQL.
    pub(crate) fn start_sharing(program: &Path, folder: &Path, url: &str, key: &str, name: &str) -> Result<Server> {
        let mut command = serving(program);
        command.args(["--store", url, "--replica", name]).env("SWITCHBOARD_SECRETS_KEY", key);
        Server::start_by(command, folder, &[])
    }

    /// As [`Server::start`], by a command that says where the data is.
    pub(crate) fn start_by(mut command: Command, folder: &Path, more: &[&str]) -> Result<Server> {
        let address = free_addr();
        let output = std::fs::File::create(folder.join("output"))?;
        let child = command
            .args(["--listen", &address.to_string()])
            .args(more)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Server { child, address })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) async fn until_ready(&self) -> Result<()> {
        let deadline = Instant::now() + READY_WAIT;
        loop {
            if let Ok(mut connection) = Connection::open(self.address).await
                && connection.exchange(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").await?.status == 200
            {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not ready after {READY_WAIT:?}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn metric(&self, name: &str) -> Result<u64> {
        let mut connection = Connection::open(self.address).await?;
        let reply = connection.exchange(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let text = std::str::from_utf8(reply.body)?;
        // The sum over its labels, if it has any.
        let of_line = |line: &str| -> Option<u64> {
            let rest = line.strip_prefix(name)?;
            let value = if rest.starts_with('{') { rest.rsplit_once(' ')?.1 } else { rest.strip_prefix(' ')? };
            value.parse().ok()
        };
        let values: Vec<u64> = text.lines().filter_map(of_line).collect();
        ensure!(!values.is_empty(), "no metric {name}");
        Ok(values.iter().sum())
    }

    /// Stops it as a user does, and waits until it has ended.
    pub(crate) fn interrupt(mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(pid.context("a process has an id")?, rustix::process::Signal::INT)?;
        self.child.wait()?;
        Ok(())
    }

    pub(crate) fn kill(self) {
        drop(self);
    }
}

/// The binary has other commands; the servers of this crate only serve.
fn serving(program: &Path) -> Command {
    let mut command = Command::new(program);
    if program.file_stem().is_some_and(|name| name == "switchboard") {
        command.arg("serve");
    }
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
