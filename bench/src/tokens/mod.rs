//! What the agent of a language model does: many tasks at once, each writing chunks of text some milliseconds apart, each
//! followed by its client over SSE. Prints what one event costs, and how long it takes from the agent to the client.

mod follower;
mod servers;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::figures::{median, met};
use crate::process::{self, raise_file_limit};
use follower::Follower;
use servers::{Kind, Server, serve_limit};
pub(crate) use servers::{Shape, serve_agent};

/// After the last event a durable server still moves its log into the file.
const SETTLE: Duration = Duration::from_millis(700);

/// Streams of many chunks, many at once.
#[derive(clap::Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Streams at once.
    #[arg(long, default_value_t = 1_000)]
    streams: usize,
    #[command(flatten)]
    shape: Shape,
    /// Rounds; in each, every server takes its turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Where the durable server writes: must be a real disk. By default the folder of this binary.
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Another build of this binary, whose servers are measured instead.
    #[arg(long)]
    server: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Subcommand>,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// The limit server: another process of this benchmark.
    #[command(hide = true)]
    Limit {
        #[arg(long)]
        listen: SocketAddr,
        #[command(flatten)]
        shape: Shape,
    },
    /// The agent: another process of this benchmark.
    #[command(hide = true)]
    Agent {
        #[arg(long)]
        listen: SocketAddr,
        /// In memory without it.
        #[arg(long)]
        data: Option<PathBuf>,
        #[command(flatten)]
        shape: Shape,
    },
}

/// Prints what was measured; fails if a chunk is lost, doubled or out of order.
pub fn run(arguments: &Arguments) -> Result<()> {
    raise_file_limit();
    match &arguments.part {
        // The default runtime, as the real server has: as many workers as there are cores it may use.
        Some(Subcommand::Limit { listen, shape }) => {
            tokio::runtime::Runtime::new()?.block_on(serve_limit(*listen, *shape))
        }
        Some(Subcommand::Agent { listen, data, shape }) => {
            tokio::runtime::Runtime::new()?.block_on(serve_agent(*listen, data.clone(), *shape))
        }
        None => tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(compare(arguments)),
    }
}

async fn compare(arguments: &Arguments) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this binary")?;
    let beside = own.parent().context("a binary lies in a folder")?;
    let program = arguments.server.clone().unwrap_or_else(|| own.clone());
    let scratch = arguments.scratch.clone().unwrap_or_else(|| beside.to_owned());
    let mut samples: [Vec<Sample>; 3] = Default::default();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        for turn in 0..Kind::ALL.len() {
            let place = (round + turn) % Kind::ALL.len();
            let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(&scratch)?;
            samples[place].push(measure(arguments, &program, Kind::ALL[place], folder.path()).await?);
        }
    }
    report(arguments, &samples);
    Ok(())
}

/// What one run of one server gave.
pub(crate) struct Sample {
    pub(crate) cpu_us_per_event: f64,
    pub(crate) kib_per_stream: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

async fn measure(arguments: &Arguments, program: &Path, kind: Kind, folder: &Path) -> Result<Sample> {
    let server = Server::start(program, kind, arguments.shape, folder).await?;
    follow_all(server.address, server.pid(), arguments.streams, arguments.shape).await
}

/// Waits until a server has done what it does after its last event.
pub(crate) async fn settle() {
    sleep(SETTLE).await;
}

/// Asks a server for so many streams at once, and reads all of them to their ends.
pub(crate) async fn follow_all(address: SocketAddr, pid: u32, streams: usize, shape: Shape) -> Result<Sample> {
    // A first stream, so that what is made once is there already.
    Follower::connect(address, streams).await?.follow(shape.chunks).await?;
    let mut followers = Vec::with_capacity(streams);
    for number in 0..streams {
        followers.push(Follower::connect(address, number).await?);
    }
    settle().await;
    let (cpu_before, memory_before) = (process::cpu_time(pid)?, process::memory(pid)?);
    let mut running = JoinSet::new();
    for follower in followers {
        running.spawn(follower.follow(shape.chunks));
    }
    sleep(Duration::from_millis(shape.pause_ms) * shape.chunks * 3 / 4).await;
    let memory_within = process::memory(pid)?;
    let (mut events, mut latencies) = (0, Vec::new());
    while let Some(ended) = running.join_next().await {
        let seen = ended??;
        events += seen.events;
        latencies.extend(seen.latencies);
    }
    settle().await;
    let cpu = process::cpu_time(pid)?.saturating_sub(cpu_before);
    latencies.sort_unstable();
    let percentile =
        |percent: usize| latencies.get(latencies.len() * percent / 100).map_or(0.0, |us| f64::from(*us) / 1000.0);
    Ok(Sample {
        cpu_us_per_event: cpu.as_secs_f64() * 1e6 / events as f64,
        kib_per_stream: memory_within.rss_kib.saturating_sub(memory_before.rss_kib) as f64 / streams as f64,
        p50_ms: percentile(50),
        p99_ms: percentile(99),
    })
}

fn report(arguments: &Arguments, samples: &[Vec<Sample>; 3]) {
    let Arguments { streams, shape: Shape { chunks, pause_ms }, rounds, .. } = *arguments;
    println!("{streams} streams at once, {chunks} chunks each, {pause_ms} ms apart; medians of {rounds} rounds\n");
    println!("| server | CPU µs/event | to limit | KiB/stream | write to follower, p50 ms | p99 ms | goal |");
    println!("|---|--:|--:|--:|--:|--:|---|");
    for (kind, own) in Kind::ALL.into_iter().zip(samples) {
        let ratios = own.iter().zip(&samples[0]).map(|(own, limit)| own.cpu_us_per_event / limit.cpu_us_per_event);
        let ratio = median(ratios);
        let of = |value: fn(&Sample) -> f64| median(own.iter().map(value));
        let kib = of(|sample| sample.kib_per_stream);
        let goal = match kind {
            Kind::Limit => String::new(),
            Kind::Memory => goal(ratio, 1.3, kib),
            Kind::Durable => goal(ratio, 2.1, kib),
        };
        println!(
            "| {} | {:.1} | {ratio:.2} | {kib:.0} | {:.2} | {:.2} | {goal} |",
            kind.name(),
            of(|sample| sample.cpu_us_per_event),
            of(|sample| sample.p50_ms),
            of(|sample| sample.p99_ms),
        );
    }
}

fn goal(ratio: f64, ratio_max: f64, kib: f64) -> String {
    const KIB_MAX: f64 = 64.0;
    format!("≤ {ratio_max}x: {}; ≤ {KIB_MAX} KiB: {}", met(ratio <= ratio_max), met(kib <= KIB_MAX))
}
