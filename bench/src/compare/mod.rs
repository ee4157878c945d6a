//! Compares servers: each pinned to one core, the load on the other, in interleaved rounds, medians at the end.
//!
//! In: the [`Arguments`]. Out: a Markdown table on stdout, and every sample as JSON where a file is named. The servers
//! are started fresh for each round, so that none profits from the order.

mod cells;
mod goals;
mod memory;
mod report;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::process;
use report::Report;
use target::Targets;

const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

/// Compares Switchboard with the parsing limit server and prints a Markdown table.
#[derive(clap::Parser)]
pub struct Arguments {
    /// The `switchboard` binary; by default the one beside this binary, built first when cargo runs this command.
    #[arg(long)]
    server: Option<PathBuf>,
    /// An earlier `switchboard` binary: runs beside the other, server for server, and a second table tells what has
    /// changed.
    #[arg(long, value_name = "BINARY")]
    before: Option<PathBuf>,
    /// Variables and arguments for the servers of `--server` that those of `--before` may not know.
    #[arg(long, value_name = "[VAR=VALUE…] [ARG…]", default_value = "", allow_hyphen_values = true)]
    with: String,
    /// One more durable server: a name, then variables and arguments, as in 'undeclared=NAME=VALUE --flag value'.
    #[arg(long, value_name = "NAME=[VAR=VALUE…] [ARG…]")]
    variant: Vec<String>,
    /// Only the servers of these names (the limit server always runs).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds per measurement.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Keep-alive connections of the load.
    #[arg(long, short, default_value_t = 32)]
    connections: usize,
    /// Tasks that the get measurement reads in turn.
    #[arg(long, default_value_t = 1000)]
    tasks: usize,
    /// Idle streams to hold open; 0 leaves this measurement out.
    #[arg(long, default_value_t = 1000)]
    streams: usize,
    /// Also fill the durable server with 10,000 and then this many tasks, and compare its memory.
    #[arg(long, value_name = "TASKS", num_args = 0..=1, default_missing_value = "1000000")]
    stored: Option<u64>,
    /// Where the servers keep their data: must be a real disk. By default the folder of this binary, because the
    /// system's temporary folder may be memory, where durability costs nothing.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Writes every sample to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs the comparison. Fails when the run is void; a missed goal is for the reader to judge.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    build_servers(arguments.server.is_none())?;
    process::raise_file_limit();
    let targets = Targets::choose(arguments)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure(arguments, &targets))?;
    print!("{}", report.to_markdown());
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if report.is_void() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn measure(arguments: &Arguments, targets: &Targets) -> Result<Report> {
    let mut report = Report::new(arguments.rounds, arguments.seconds, arguments.connections);
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        report.cells.extend(cells::measure(arguments, targets.in_order_of(round).collect(), round).await?);
        if arguments.streams > 0 {
            for target in targets.in_order_of(round) {
                report.idle.push(memory::of_idle_streams(target, arguments.streams).await?);
            }
        }
    }
    if let Some(most) = arguments.stored {
        for target in targets.durable_default() {
            report.stored.extend(memory::of_stored_tasks(target, &[10_000, most]).await?);
        }
    }
    Ok(report)
}

/// Lets a server finish what it does in the background before its memory is read.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Builds what is compared, as a user would. Does nothing outside of `cargo run`: a binary started by hand takes what lies beside it.
fn build_servers(with_switchboard: bool) -> Result<()> {
    let (Some(cargo), Some(manifest)) = (std::env::var_os("CARGO"), std::env::var_os("CARGO_MANIFEST_DIR")) else {
        return Ok(());
    };
    let root = Path::new(&manifest).parent().context("the bench folder lies in the workspace")?;
    // Two builds and not one: built together, the server could get features that plain `cargo build` does not give it.
    let switchboard: &[&[&str]] = if with_switchboard { &[&["build", "--release"]] } else { &[] };
    for arguments in switchboard.iter().chain([&["build", "--release", "-p", "bench", "--bins"][..]].iter()) {
        let status = Command::new(&cargo).args(*arguments).current_dir(root).status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    }
    Ok(())
}
