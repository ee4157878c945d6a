//! The load generator as a command, for a server that is already running: `load send --address 127.0.0.1:8080`.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use bench::load::{GrpcPool, Outcome, Pool, Until, Work, create, hold_streams};
use bench::process;
use clap::{Parser, ValueEnum};

/// Loads an A2A 1.0 server over JSON-RPC and checks every reply.
#[derive(Parser)]
struct Arguments {
    mode: Mode,
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: SocketAddr,
    /// Keep-alive connections.
    #[arg(long, short, default_value_t = 32)]
    connections: usize,
    /// Length of the run; `fill` ends by count and `idle-streams` holds its streams so long.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Tasks to read (`get`), to create (`fill`) or streams to hold (`idle-streams`).
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// The server's process, to print its CPU time per request and its memory.
    #[arg(long)]
    pid: Option<u32>,
    /// The core to run on.
    #[arg(long)]
    core: Option<usize>,
    /// The server keeps nothing (the limit server): do not expect the very text back from `get`.
    #[arg(long)]
    stateless: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    Send,
    /// A send in A2A 0.3.
    SendOld,
    /// A send over gRPC.
    SendGrpc,
    Get,
    Stream,
    IdleStreams,
    Fill,
}

enum Pools {
    Http(Pool),
    Grpc(GrpcPool),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    process::raise_file_limit();
    if let Some(core) = arguments.core {
        process::pin_to_core(core)?;
    }
    if arguments.mode == Mode::IdleStreams {
        return hold(&arguments).await;
    }
    let work = match arguments.mode {
        Mode::Get => Work::Get(create(arguments.address, arguments.count, !arguments.stateless).await?.into()),
        Mode::Stream => Work::Stream,
        Mode::SendOld => Work::SendOld,
        Mode::Send | Mode::SendGrpc | Mode::Fill | Mode::IdleStreams => Work::Send,
    };
    let until = match arguments.mode {
        Mode::Fill => Until::Requests(arguments.count as u64),
        _ => Until::Elapsed(Duration::from_secs_f64(arguments.seconds)),
    };
    let mut pools = match arguments.mode {
        Mode::SendGrpc => Pools::Grpc(GrpcPool::open(arguments.address, arguments.connections).await?),
        _ => Pools::Http(Pool::open(arguments.address, arguments.connections).await?),
    };
    let before = arguments.pid.map(process::cpu_time).transpose()?;
    let outcome = match &mut pools {
        Pools::Grpc(pool) => pool.run(until).await,
        Pools::Http(pool) => pool.run(&work, until).await,
    };
    print(&outcome);
    if let (Some(pid), Some(before)) = (arguments.pid, before) {
        let spent = process::cpu_time(pid)?.saturating_sub(before);
        println!("server CPU {:.1} us/request", spent.as_secs_f64() * 1e6 / outcome.requests.max(1) as f64);
        print_memory(pid)?;
    }
    anyhow::ensure!(outcome.errors == 0, "{} errors", outcome.errors);
    Ok(())
}

async fn hold(arguments: &Arguments) -> Result<()> {
    let show = async || {
        if let Some(pid) = arguments.pid {
            // A process that has gone away is reported by the requests that follow.
            let _ = print_memory(pid);
        }
    };
    let streams = hold_streams(arguments.address, arguments.count, show).await?;
    tokio::time::sleep(Duration::from_secs_f64(arguments.seconds)).await;
    println!("{} streams open", streams.count());
    show().await;
    Ok(())
}

fn print(outcome: &Outcome) {
    println!(
        "{:.0} requests/s, p50 {:.2} ms, p99 {:.2} ms, {} requests, {} errors, reply {:.0} bytes, {:.1} events",
        outcome.per_second,
        outcome.p50_ms,
        outcome.p99_ms,
        outcome.requests,
        outcome.errors,
        outcome.reply_bytes,
        outcome.events
    );
    if let Some(error) = &outcome.first_error {
        println!("first error: {error}");
    }
}

fn print_memory(pid: u32) -> Result<()> {
    let memory = process::memory(pid)?;
    println!("server RSS {} KiB, of it anonymous {} KiB", memory.rss_kib, memory.anon_kib);
    Ok(())
}
