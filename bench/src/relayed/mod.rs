//! What it costs to put a Switchboard in front of an agent: the CPU of a relayed send beside that of a local one, the time that a relayed
//! event is later, and the memory of relayed streams. Beside each: a plain reverse proxy in front of the same upstream.
//!
//! The server that is measured is alone on core 0; the load and the upstream share core 1. Only one is loaded at a time, and they take
//! turns in each round.

mod proxy;
mod sends;
mod streams;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::credentials::program;
use crate::process::{pin_to_core, raise_file_limit};
use crate::server::Server;
use crate::tokens::{Shape, serve_agent};

const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

/// What a relay costs.
#[derive(clap::Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// The `switchboard` binary; by default the one beside this binary.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Rounds; in each, every server takes its turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of sends to each server in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Keep-alive connections of the sends.
    #[arg(long, short, default_value_t = 32)]
    connections: usize,
    /// Streams at once whose events are timed.
    #[arg(long, default_value_t = 50)]
    timed: usize,
    #[command(flatten)]
    shape: Shape,
    /// Streams at once whose memory is measured. A relay has at most 1,000 tasks at work.
    #[arg(long, default_value_t = 1_000)]
    streams: usize,
    /// Where the durable servers write: must be a real disk. By default the folder of this binary.
    #[arg(long)]
    scratch: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(clap::Subcommand)]
enum Part {
    /// The reverse proxy: another process of this benchmark.
    #[command(hide = true)]
    Proxy {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        to: SocketAddr,
    },
    /// An agent that writes chunks: another process of this benchmark.
    #[command(hide = true)]
    Tokens {
        #[arg(long)]
        listen: SocketAddr,
        #[command(flatten)]
        shape: Shape,
    },
}

/// Prints what was measured; fails if an answer is wrong, or a chunk is lost, doubled or out of order.
pub fn run(arguments: &Arguments) -> Result<()> {
    raise_file_limit();
    match &arguments.part {
        // The default runtime, as the real server has: as many workers as there are cores it may use.
        Some(Part::Proxy { listen, to }) => tokio::runtime::Runtime::new()?.block_on(proxy::serve(*listen, *to)),
        Some(Part::Tokens { listen, shape }) => {
            tokio::runtime::Runtime::new()?.block_on(serve_agent(*listen, None, *shape))
        }
        None => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure(arguments)),
    }
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this binary")?;
    let beside = own.parent().context("a binary lies in a folder")?;
    let scratch = arguments.scratch.clone().unwrap_or_else(|| beside.to_owned());
    let stand = Stand { switchboard: program(arguments.server.as_ref())?, own: own.clone(), scratch };
    sends::measure(arguments, &stand).await?;
    streams::measure_time(arguments, &stand).await?;
    streams::measure_memory(arguments, &stand).await
}

/// What servers are started from.
struct Stand {
    switchboard: PathBuf,
    own: PathBuf,
    scratch: PathBuf,
}

/// A server with the folder that it writes to.
struct Started {
    server: Server,
    _folder: TempDir,
}

/// What stands in front of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    /// Nothing: the upstream itself.
    None,
    /// A plain reverse proxy.
    Proxy,
    /// A durable Switchboard with a relay.
    Relay,
}

impl Front {
    const ALL: [Self; 3] = [Self::None, Self::Proxy, Self::Relay];

    fn name(self) -> &'static str {
        match self {
            Self::None => "the upstream itself",
            Self::Proxy => "a plain reverse proxy",
            Self::Relay => "a relay",
        }
    }
}

impl Stand {
    /// On core 0, in front of this upstream; none if nothing is.
    async fn front(&self, front: Front, upstream: &Started) -> Result<Option<Started>> {
        let to = upstream.server.address.to_string();
        match front {
            Front::None => Ok(None),
            Front::Proxy => {
                let mut command = Command::new(&self.own);
                command.args(["proxy", "--to", &to]);
                self.start(SERVER_CORE, command, false).await.map(Some)
            }
            Front::Relay => self.serve(SERVER_CORE, &["--relay", &format!("http://{to}")]).await.map(Some),
        }
    }

    /// A durable Switchboard.
    async fn serve(&self, core: usize, more: &[&str]) -> Result<Started> {
        let mut command = Command::new(&self.switchboard);
        command.arg("serve").args(more);
        self.start(core, command, true).await
    }

    /// An upstream in memory: the demo agent.
    async fn demo(&self) -> Result<Started> {
        let mut command = Command::new(&self.switchboard);
        command.args(["serve", "--memory"]);
        self.start(LOAD_CORE, command, false).await
    }

    /// An upstream in memory whose agent writes chunks.
    async fn tokens(&self, shape: Shape) -> Result<Started> {
        let mut command = Command::new(&self.own);
        command.arg("tokens").args(shape.arguments());
        self.start(LOAD_CORE, command, false).await
    }

    /// An upstream whose agent says nothing for ever.
    async fn waiting(&self) -> Result<Started> {
        let beside = self.own.parent().context("a binary lies in a folder")?;
        self.start(LOAD_CORE, Command::new(beside.join("waiting")), true).await
    }

    async fn start(&self, core: usize, mut command: Command, is_durable: bool) -> Result<Started> {
        let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&self.scratch)?;
        if is_durable {
            command.arg("--data").arg(data_of(folder.path()));
        }
        // A child may run where the thread that starts it may: its runtime counts one core from the first line on.
        pin_to_core(core)?;
        let server = Server::start_by(command, folder.path(), &[]);
        pin_to_core(LOAD_CORE)?;
        let server = server?;
        server.until_ready().await?;
        Ok(Started { server, _folder: folder })
    }
}

fn data_of(folder: &Path) -> PathBuf {
    folder.join("data")
}
