//! A server under test: this same binary as a child, with a folder of its own, always on the same port.

use std::fs::OpenOptions;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child as Process, Command};
use tokio::time::{Instant, sleep, timeout};

use super::client::Client;
use super::dice::Dice;
use super::processes::MARK;
use super::wish::{FRAGILE_REASON, Whom};
use crate::config::DATABASE_NAME;
use crate::process::kill_with_parent;

/// How long a run belongs to a server that gives no sign of life: as short as it can be set.
pub(super) const LEASE: Duration = Duration::from_secs(1);
/// How long it may take until it is ready.
const READY_WAIT_MAX: Duration = Duration::from_secs(60);
/// How long an orderly stop may take: the grace period, a command's own, and room for a machine that is busy.
const STOP_WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// Where a server lives.
#[derive(Clone, Debug)]
pub(super) struct Home {
    folder: PathBuf,
    program: PathBuf,
    pub(super) addr: SocketAddr,
    /// What its commands can be told by.
    pub(super) mark: String,
    /// Settings besides the configuration.
    variables: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(super) struct Child {
    process: Process,
    pid: Pid,
}

/// What a server serves.
pub(super) enum Serves {
    /// The agents themselves. Its cards name this address, if it is called by another than its own.
    Agents { public: Option<SocketAddr> },
    /// A relay to each of these agents of the server at an address.
    RelaysTo(SocketAddr),
    /// The agents themselves, but for the commands that are started again, which the server at an address runs.
    #[cfg(feature = "postgres")]
    RelaysCommandsTo(SocketAddr),
}

impl Home {
    /// Makes the folder and writes the configuration.
    pub(super) fn make(folder: &Path, serves: &Serves, hooks: SocketAddr, dice: &mut Dice) -> io::Result<Self> {
        Self::with(folder, serves, hooks, dice, "data = \"data\"\n", Vec::new())
    }

    /// The same for a server that shares a database with others, which the variables name.
    #[cfg(feature = "postgres")]
    pub(super) fn make_replica(
        folder: &Path,
        upstream: SocketAddr,
        hooks: SocketAddr,
        dice: &mut Dice,
        variables: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        Self::with(folder, &Serves::RelaysCommandsTo(upstream), hooks, dice, "", variables)
    }

    fn with(
        folder: &Path,
        serves: &Serves,
        hooks: SocketAddr,
        dice: &mut Dice,
        storage: &str,
        variables: Vec<(&'static str, String)>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(folder.join("tmp"))?;
        let folder = folder.canonicalize()?;
        let program = std::env::current_exe()?;
        let addr = free_addr(dice)?;
        std::fs::write(folder.join("switchboard.toml"), configuration(&program, serves, addr, hooks, storage))?;
        let mark = folder.display().to_string();
        Ok(Self { folder, program, addr, mark, variables })
    }

    pub(super) fn database(&self) -> PathBuf {
        self.folder.join("data").join(DATABASE_NAME)
    }

    /// Starts a server and does not wait for it.
    pub(super) fn start(&self) -> io::Result<Child> {
        let log = OpenOptions::new().append(true).create(true).open(self.folder.join("server.log"))?;
        let mut command = Command::new(&self.program);
        // Nothing that is set for other servers on this machine may change this one.
        command
            .args(["serve", "--config", "switchboard.toml"])
            .current_dir(&self.folder)
            .env_clear()
            .envs(["PATH", "HOME", "LANG", "TZ"].iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("TMPDIR", self.folder.join("tmp"))
            .env("RUST_LOG", "warn")
            .env(MARK, &self.mark)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        kill_with_parent(&mut command);
        let process = command.spawn()?;
        let pid = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Child { process, pid: pid.ok_or_else(|| io::Error::other("the server has no process number"))? })
    }

    /// Waits until a server that was started can be given work.
    pub(super) async fn ready(&self, child: &mut Child, client: &Client) -> Result<(), String> {
        let deadline = Instant::now() + READY_WAIT_MAX;
        while !client.is_ready().await {
            if let Some(status) = child.ended() {
                return Err(format!("the server ended while it was starting: {status}; its log says why"));
            }
            if Instant::now() > deadline {
                return Err(format!("the server was not ready after {} s", READY_WAIT_MAX.as_secs()));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Child {
    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    pub(super) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(super) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills it where it stands. It is dead when this returns, and buried by [`Child::buried`].
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub(super) async fn buried(mut self) {
        let _ = self.process.wait().await;
    }

    /// Asks it to stop and waits until it has.
    pub(super) async fn stop(mut self) -> Result<(), String> {
        self.signal(Signal::TERM);
        match timeout(STOP_WAIT_MAX, self.process.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the server was asked to stop and ended with {status}")),
            Ok(Err(error)) => Err(format!("the server could not be waited for: {error}")),
            Err(_) => Err(format!("the server was asked to stop and had not after {} s", STOP_WAIT_MAX.as_secs())),
        }
    }

    fn signal(&self, signal: Signal) {
        // Not waited for yet, so the number is still its own, even if it has ended.
        let _ = kill_process(self.pid, signal);
    }
}

/// An address that nobody has at the moment; if somebody takes it before the server does, the server will say so. It is
/// below those that the system gives to whoever calls: a client that calls a port of those while nobody listens may be
/// given that very port, and is then connected to itself.
pub(super) fn free_addr(dice: &mut Dice) -> io::Result<SocketAddr> {
    // The same plan may be played twice at once.
    let mut dice = Dice::new(dice.roll() ^ u64::from(std::process::id()));
    let mut last_error = None;
    for _ in 0..100 {
        let port = u16::try_from(dice.between(10_000, 30_000)).unwrap_or(10_000);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(listener) => return listener.local_addr(),
            Err(error) => last_error = Some(error),
        }
    }
    Err(last_error.unwrap_or_else(|| io::Error::other("no port is free")))
}

fn configuration(program: &Path, serves: &Serves, addr: SocketAddr, hooks: SocketAddr, storage: &str) -> String {
    let lease_s = LEASE.as_secs();
    let again = "attempts_max = 1000\nretry_pause_s = 0\nretry_pause_s_max = 0\n";
    let server = format!(
        "[server]\nlisten = \"{addr}\"\n{storage}outbound_allow = [\"{hooks}\"]\nlease_s = {lease_s}\n\
         grace_s = 1\nwebhook_attempts_max = 1000\n"
    );
    // Written as TOML writes text.
    let program = toml::Value::String(program.display().to_string());
    let command = format!("kind = \"exec\"\ncommand = [{program}, \"chaos-agent\"]\nenv = [\"{MARK}\"]\n");
    let itself = |whom: Whom| match whom {
        Whom::Demo => format!("name = \"Demo\"\nkind = \"demo\"\n{again}"),
        Whom::Command => format!("name = \"Command\"\n{command}{again}"),
        Whom::Fragile => {
            format!("name = \"Fragile\"\n{command}recovery = \"fail\"\nrecovery_reason = \"{FRAGILE_REASON}\"\n")
        }
    };
    let relay =
        |whom: Whom, upstream: &SocketAddr| format!("url = \"http://{upstream}/agents/{}\"\n{again}", whom.slug());
    let public_url = match serves {
        Serves::Agents { public: Some(public) } => format!("public_url = \"http://{public}\"\n"),
        _ => String::new(),
    };
    Whom::ALL.into_iter().fold(format!("{server}{public_url}"), |text, whom| {
        let agent = match serves {
            Serves::RelaysTo(upstream) => relay(whom, upstream),
            #[cfg(feature = "postgres")]
            Serves::RelaysCommandsTo(upstream) if whom == Whom::Command => relay(whom, upstream),
            #[cfg(feature = "postgres")]
            Serves::RelaysCommandsTo(_) => itself(whom),
            Serves::Agents { .. } => itself(whom),
        };
        format!("{text}\n[[agent]]\nslug = \"{}\"\n{agent}", whom.slug())
    })
}
