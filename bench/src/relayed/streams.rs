//! Streams of many chunks through a relay: how much later an event comes, and what a stream takes in memory, idle and active.

use anyhow::{Result, ensure};

use super::{Arguments, Front, Stand};
use crate::figures::{median, met};
use crate::load::{begin_streams, create};
use crate::process;
use crate::tokens::{Sample, Shape, follow_all, settle};

/// The goals: how much later an event may be, and what a stream may take.
const ADDED_MS_MAX: f64 = 2.0;
const IDLE_KIB_MAX: f64 = 64.0;
const ACTIVE_KIB_MAX: f64 = 96.0;

/// What streams write whose memory is measured: slowly enough that the server is never behind.
const ACTIVE: Shape = Shape { chunks: 6, pause_ms: 1_000 };

/// Prints how late events are.
pub(super) async fn measure_time(arguments: &Arguments, stand: &Stand) -> Result<()> {
    let upstream = stand.tokens(arguments.shape).await?;
    let mut samples: [Vec<Sample>; Front::ALL.len()] = Default::default();
    for round in 0..arguments.rounds {
        eprintln!("time of events: round {} of {}", round + 1, arguments.rounds);
        for turn in 0..Front::ALL.len() {
            let place = (round + turn) % Front::ALL.len();
            let front = stand.front(Front::ALL[place], &upstream).await?;
            let server = &front.as_ref().unwrap_or(&upstream).server;
            samples[place].push(follow_all(server.address, server.pid(), arguments.timed, arguments.shape).await?);
        }
    }
    let Shape { chunks, pause_ms } = arguments.shape;
    println!("\n{} streams at once, {chunks} chunks each, {pause_ms} ms apart\n", arguments.timed);
    println!("| in front | p50 ms | added | p99 ms | CPU µs/event | goal |\n|---|--:|--:|--:|--:|---|");
    for (front, own) in Front::ALL.into_iter().zip(&samples) {
        let of = |value: fn(&Sample) -> f64| median(own.iter().map(value));
        let added = median(own.iter().zip(&samples[0]).map(|(own, direct)| own.p50_ms - direct.p50_ms));
        let goal = match front {
            Front::Relay => format!("added < {ADDED_MS_MAX} ms: {}", met(added < ADDED_MS_MAX)),
            Front::None | Front::Proxy => String::new(),
        };
        println!(
            "| {} | {:.2} | {added:+.2} | {:.2} | {:.1} | {goal} |",
            front.name(),
            of(|sample| sample.p50_ms),
            of(|sample| sample.p99_ms),
            of(|sample| sample.cpu_us_per_event),
        );
    }
    Ok(())
}

/// Prints what streams take in memory. Each figure is of a server that was started for it: memory freed by earlier work would hide the
/// streams' own.
pub(super) async fn measure_memory(arguments: &Arguments, stand: &Stand) -> Result<()> {
    let (waiting, writing) = (stand.waiting().await?, stand.tokens(ACTIVE).await?);
    println!("\nmemory of the server in front, {} streams at once\n", arguments.streams);
    println!("| in front | idle KiB/stream | active KiB/stream | goal |\n|---|--:|--:|---|");
    for front in [Front::Proxy, Front::Relay] {
        eprintln!("memory of streams: {}", front.name());
        let (mut idle, mut active) = (Vec::new(), Vec::new());
        for _ in 0..arguments.rounds {
            if let Some(started) = stand.front(front, &waiting).await? {
                let server = &started.server;
                idle.push(idle_kib(server.address, server.pid(), arguments.streams).await?);
            }
            if let Some(started) = stand.front(front, &writing).await? {
                let server = &started.server;
                let sample = follow_all(server.address, server.pid(), arguments.streams, ACTIVE).await?;
                active.push(sample.kib_per_stream);
            }
        }
        let (idle, active) = (median(idle), median(active));
        let goal = match front {
            Front::Relay => format!(
                "idle ≤ {IDLE_KIB_MAX}: {}; active ≤ {ACTIVE_KIB_MAX}: {}",
                met(idle <= IDLE_KIB_MAX),
                met(active <= ACTIVE_KIB_MAX)
            ),
            Front::None | Front::Proxy => String::new(),
        };
        println!("| {} | {idle:.1} | {active:.1} | {goal} |", front.name());
    }
    Ok(())
}

/// What each of so many streams takes whose agents say nothing.
async fn idle_kib(address: std::net::SocketAddr, pid: u32, streams: usize) -> Result<f64> {
    // So that what is made once is there already.
    create(address, 1, true).await?;
    settle().await;
    let before = process::memory(pid)?;
    let held = begin_streams(address, streams, "wait ").await?;
    ensure!(held.count() == streams, "{} streams of {streams}", held.count());
    settle().await;
    let after = process::memory(pid)?;
    Ok(after.rss_kib.saturating_sub(before.rss_kib) as f64 / streams as f64)
}
