//! The servers under comparison: which they are, how each is started, and how it is known to be ready.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use switchboard_test_servers::free_addr;
use tempfile::TempDir;

use super::{Arguments, LOAD_CORE, SERVER_CORE};
use crate::load::create;
use crate::process::pin_to_core;

const START_WAIT: Duration = Duration::from_secs(15);

/// Ends the name of a server that is run by an earlier binary.
pub(super) const BEFORE: &str = " before";

#[derive(Clone)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) kind: Kind,
    program: PathBuf,
    scratch: PathBuf,
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// The limit server: keeps nothing.
    Limit,
    /// Switchboard with its store in memory.
    Memory,
    /// Switchboard with its store on disk.
    Durable,
    /// Durable too, with settings of the caller's.
    Variant,
}

impl Kind {
    /// What is done with the default durable server alone is not done with the earlier one.
    fn of_earlier(self) -> Kind {
        match self {
            Kind::Durable => Kind::Variant,
            Kind::Limit | Kind::Memory | Kind::Variant => self,
        }
    }
}

pub(super) struct Targets(Vec<Target>);

impl Targets {
    pub(super) fn choose(arguments: &Arguments) -> Result<Targets> {
        let own = std::env::current_exe().context("cannot find this binary")?;
        let beside = own.parent().context("a binary lies in a folder")?;
        let server = match &arguments.server {
            // Each server runs in a folder of its own.
            Some(server) => std::path::absolute(server).context("cannot tell where the server is")?,
            None => beside.join("switchboard"),
        };
        let scratch = arguments.scratch.clone().unwrap_or_else(|| beside.to_owned());
        let target = |name: &str, kind, program: &Path| Target {
            name: name.to_owned(),
            kind,
            program: program.to_owned(),
            scratch: scratch.clone(),
            variables: Vec::new(),
            arguments: Vec::new(),
        };
        let mut targets = vec![target("memory", Kind::Memory, &server), target("sqlite", Kind::Durable, &server)];
        for text in &arguments.variant {
            let (name, settings) = text.split_once('=').context("--variant wants NAME=SETTINGS")?;
            let mut variant = target(name, Kind::Variant, &server);
            variant.take_settings(settings);
            targets.push(variant);
        }
        targets.retain(|target| arguments.only.is_empty() || arguments.only.contains(&target.name));
        if let Some(before) = &arguments.before {
            let before = std::path::absolute(before).context("cannot tell where the earlier server is")?;
            let twins: Vec<Target> = targets.iter().map(|target| target.run_by(&before)).collect();
            targets.extend(twins);
        }
        for target in targets.iter_mut().filter(|target| target.program == server) {
            target.take_settings(&arguments.with);
        }
        targets.insert(0, target("limit", Kind::Limit, &beside.join("limit")));
        for target in &targets {
            ensure!(target.program.exists(), "{} is not built", target.program.display());
        }
        Ok(Targets(targets))
    }

    /// Each round begins with another server, so that a slow moment of the machine meets them all alike.
    pub(super) fn in_order_of(&self, round: usize) -> impl Iterator<Item = &Target> {
        self.0.iter().cycle().skip(round % self.0.len()).take(self.0.len())
    }

    pub(super) fn durable_default(&self) -> impl Iterator<Item = &Target> {
        self.0.iter().filter(|target| target.kind == Kind::Durable)
    }
}

impl Target {
    /// The same server run by an earlier binary.
    fn run_by(&self, before: &Path) -> Target {
        let (name, program) = (format!("{}{BEFORE}", self.name), before.to_owned());
        Target { name, program, kind: Kind::of_earlier(self.kind), ..self.clone() }
    }

    pub(super) fn keeps_tasks(&self) -> bool {
        self.kind != Kind::Limit
    }

    /// Starts the server on a free port, on its own core, with an empty store.
    pub(super) async fn start(&self) -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&self.scratch)?;
        let address = free_addr();
        let mut command = Command::new(&self.program);
        match self.kind {
            Kind::Limit => command.args(["--port", &address.port().to_string()]),
            Kind::Memory => command.args(["serve", "--memory", "--listen", &address.to_string()]),
            Kind::Durable | Kind::Variant => {
                command.args(["serve", "--listen", &address.to_string(), "--data"]).arg(folder.path().join("data"))
            }
        };
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        let output = File::create(folder.path().join("output"))?;
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // A child may run where the thread that starts it may: its runtime counts one core from the first line on.
        pin_to_core(SERVER_CORE)?;
        let child = command.spawn().with_context(|| format!("cannot start {}", self.program.display()));
        pin_to_core(LOAD_CORE)?;
        let mut server = Server { child: child?, address, folder };
        server.wait_until_ready().await.with_context(|| format!("{} did not get ready", self.name))?;
        Ok(server)
    }

    /// Words of the form NAME=VALUE in front are environment variables, the rest are arguments.
    fn take_settings(&mut self, settings: &str) {
        for word in settings.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) if self.arguments.is_empty() && !name.starts_with('-') => {
                    self.variables.push((name.to_owned(), value.to_owned()));
                }
                _ => self.arguments.push(word.to_owned()),
            }
        }
    }
}

/// A running server; it is stopped, and its data removed, when this is dropped.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    folder: TempDir,
}

impl Server {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ready is a right answer to a real request.
    async fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_WAIT;
        loop {
            let Err(error) = create(self.address, 1, false).await else { return Ok(()) };
            let ended = self.child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let output = std::fs::read_to_string(self.folder.path().join("output")).unwrap_or_default();
                bail!("{error:#}\n{output}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
