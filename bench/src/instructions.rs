//! How many instructions a send costs a server, counted by callgrind: exact where a noisy machine makes timings useless, and blind to
//! caches and to the kernel.
//!
//! Each server runs twice under `valgrind --tool=callgrind`, with different numbers of sends; the difference is what the further sends
//! have cost. Starting and stopping, and everything that happens once, cancels out.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::credentials::kinds::{KINDS, Kind, Proof};
use crate::credentials::{program, work_of};
use crate::load::{Pool, Until};
use crate::server::Server;

/// How many instructions a send costs.
#[derive(clap::Parser)]
pub struct Arguments {
    /// A `switchboard` binary, with debug symbols or without; repeat it to compare several. By default the one beside this binary.
    #[arg(long)]
    server: Vec<PathBuf>,
    /// Variables of these arguments, as in '--audit off'; repeat it to compare several.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    with: Vec<String>,
    /// Only these ways of proving who calls, by their place in the table: 0 is none.
    #[arg(long, value_delimiter = ',')]
    only: Vec<usize>,
    /// Tasks are kept in SQLite and not in memory.
    #[arg(long)]
    durable: bool,
    /// Sends that are counted.
    #[arg(long, default_value_t = 2_000)]
    requests: u64,
    /// Keep-alive connections of the load.
    #[arg(long, short, default_value_t = 4)]
    connections: usize,
    /// Keeps what callgrind has written about the longer run of each server in this folder, for `callgrind_annotate`.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Prints what was counted.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(count(arguments))
}

async fn count(arguments: &Arguments) -> Result<()> {
    let servers = match arguments.server.is_empty() {
        true => vec![program(None)?],
        false => arguments.server.iter().map(|server| program(Some(server))).collect::<Result<_>>()?,
    };
    let with = if arguments.with.is_empty() { vec![String::new()] } else { arguments.with.clone() };
    println!("| credential | server | settings | instructions/send | to the first |\n|---|---|---|--:|--:|");
    let mut first = None;
    for (place, kind) in KINDS.into_iter().enumerate() {
        let name = kind.0;
        if !arguments.only.is_empty() && !arguments.only.contains(&place) {
            continue;
        }
        for (number, server) in servers.iter().enumerate() {
            for (at, settings) in with.iter().enumerate() {
                let short = counted(arguments, kind, server, settings, arguments.requests, None).await?;
                let kept =
                    arguments.keep.as_ref().map(|folder| folder.join(format!("{place}-{number}-{at}.callgrind")));
                let long = counted(arguments, kind, server, settings, arguments.requests * 2, kept.as_deref()).await?;
                let each = long.saturating_sub(short) as f64 / arguments.requests as f64;
                let base = *first.get_or_insert(each);
                let (more, ratio) = (each - base, each / base);
                println!("| {name} | {} | {settings} | {each:.0} | {more:+.0} ({ratio:.4}) |", number + 1);
            }
        }
    }
    Ok(())
}

/// The instructions of a server that lives for so many sends.
async fn counted(
    arguments: &Arguments,
    kind: (&'static str, Proof),
    program: &Path,
    settings: &str,
    requests: u64,
    kept: Option<&Path>,
) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    // Each token is used once.
    let kind = Kind::prepare(kind, folder.path(), Some(usize::try_from(requests)?))?;
    let counts = folder.path().join("counts");
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", counts.display())])
        .arg(program)
        .arg("serve")
        .envs(kind.variables.iter().map(|(name, value)| (name, value)));
    let mut more: Vec<&str> = if arguments.durable { vec!["--data", "data"] } else { vec!["--memory"] };
    more.extend(kind.arguments.iter().map(String::as_str));
    more.extend(settings.split_whitespace());
    let server = Server::start_by(command, folder.path(), &more)?;
    server.until_ready().await?;
    let outcome =
        Pool::open(server.address, arguments.connections).await?.run(&work_of(&kind), Until::Requests(requests)).await;
    let error = outcome.first_error.unwrap_or_default();
    ensure!(outcome.errors == 0 && outcome.requests == requests, "{}: {error}", kind.name);
    server.interrupt()?;
    let text = std::fs::read_to_string(&counts).context("callgrind has written nothing")?;
    if let Some(kept) = kept {
        std::fs::copy(&counts, kept)?;
    }
    let total = text.lines().find_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")));
    Ok(total.context("callgrind has counted nothing")?.trim().parse()?)
}
