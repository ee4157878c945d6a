//! How soon is a server back that was killed with many tasks at work? Opens tasks that stay at work, kills the server,
//! starts it on the same data, and measures from that start: when `/readyz` says yes, when a new send is answered, and
//! when every task that was at work has an owner again.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::load::{Pool, Until, Work, create};
use crate::process;
use crate::server::{Prepared, Server, ServerArguments};

const DRAIN_WAIT: Duration = Duration::from_secs(600);

/// Kills a durable server with tasks at work and measures how soon its next start serves.
#[derive(clap::Parser)]
pub struct Arguments {
    /// By default it is the server `waiting`, whose agent waits without a word.
    #[command(flatten)]
    servers: ServerArguments,
    /// Tasks at work when the server is killed.
    #[arg(long, default_value_t = 100_000)]
    tasks: u64,
    /// What each of them asks for: something that takes longer than this run.
    #[arg(long, default_value = "wait ")]
    text: String,
}

/// Prints what was measured; fails when the server does not come back.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Prepared { program, folder, runtime, .. } = arguments.servers.prepare("waiting")?;
    runtime.block_on(measure(arguments, &program, folder.path()))
}

async fn measure(arguments: &Arguments, program: &Path, folder: &Path) -> Result<()> {
    let first = Server::start(program, folder, &[])?;
    first.until_ready().await?;
    let mut pool = Pool::open(first.address, 64).await?;
    let opened = pool.run(&Work::Begin(arguments.text.clone()), Until::Requests(arguments.tasks)).await;
    ensure!(opened.errors == 0, "{} errors, first: {:?}", opened.errors, opened.first_error);
    println!("{} tasks at work ({:.0}/s)", opened.requests, opened.per_second);
    first.kill();

    let started = Instant::now();
    let second = Server::start(program, folder, &[])?;
    second.until_ready().await?;
    println!("ready after {:.3} s", started.elapsed().as_secs_f64());
    create(second.address, 1, true).await.context("a new send")?;
    println!("a new send answered after {:.3} s", started.elapsed().as_secs_f64());
    let deadline = started + DRAIN_WAIT;
    loop {
        let owned = second.metric("switchboard_runs_recovered_total").await?;
        if owned >= arguments.tasks {
            break;
        }
        ensure!(Instant::now() < deadline, "only {owned} of {} tasks have an owner", arguments.tasks);
        let sent = Instant::now();
        create(second.address, 1, true).await.context("a send while old tasks come back")?;
        println!(
            "{:.1} s: {owned} have an owner again; a send takes {:.0} ms",
            started.elapsed().as_secs_f64(),
            sent.elapsed().as_secs_f64() * 1e3
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    println!("every task has an owner after {:.1} s", started.elapsed().as_secs_f64());
    let memory = process::memory(second.pid())?;
    println!("memory then: {} MiB", memory.rss_kib / 1024);
    Ok(())
}
