//! Does delivery keep up? Starts a durable server and a receiver, each a process of its own, opens tasks with one webhook
//! each at a steady rate, and compares what the tasks had to say with what has arrived: at the moment the load ends, and
//! when everything has had time to arrive.

mod receiver;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use switchboard_test_servers::free_addr;

use crate::load::{Connection, Pool, Until, Work};
use crate::process;
use crate::server::Server;
use receiver::Report;

const RECEIVER_WAIT: Duration = Duration::from_secs(10);
/// Longer than a receiver that is down is left alone, and than a claim lasts.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// Opens tasks with webhooks at a steady rate and counts what a receiver is sent.
#[derive(clap::Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// A `switchboard` binary; by default the one beside this binary.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Tasks per second.
    #[arg(long, default_value_t = 1_000.0)]
    rate: f64,
    /// How long.
    #[arg(long, default_value_t = 60.0)]
    seconds: f64,
    /// What each task asks for.
    #[arg(long, default_value = "stream 3 ")]
    text: String,
    /// Updates each of them has then.
    #[arg(long, default_value_t = 5)]
    updates: u64,
    /// Keep-alive connections of the load.
    #[arg(long, short, default_value_t = 64)]
    connections: usize,
    /// Where the server keeps its data: must be a real disk. By default the folder of this binary.
    #[arg(long)]
    scratch: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Subcommand>,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    /// Receives webhooks and counts them: the other process of this benchmark.
    #[command(hide = true)]
    Receive { listen: SocketAddr },
}

/// Prints what was measured; fails when updates are lost or out of order.
pub fn run(arguments: &Arguments) -> Result<()> {
    process::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(Subcommand::Receive { listen }) = arguments.part {
        return runtime.block_on(receiver::receive(listen));
    }
    let own = std::env::current_exe().context("cannot find this binary")?;
    let beside = own.parent().context("a binary lies in a folder")?;
    let program = arguments.server.clone().unwrap_or_else(|| beside.join("switchboard"));
    ensure!(program.exists(), "{} is not built", program.display());
    let scratch = arguments.scratch.clone().unwrap_or_else(|| beside.to_owned());
    let folder = tempfile::Builder::new().prefix("bench-").tempdir_in(scratch)?;
    runtime.block_on(measure(arguments, &own, &program, folder.path()))
}

async fn measure(arguments: &Arguments, own: &Path, program: &Path, folder: &Path) -> Result<()> {
    let receiver = Receiver::start(own).await?;
    let server = Server::start(program, folder, &["--outbound-allow", "127.0.0.0/8"])?;
    server.until_ready().await?;
    let mut pool = Pool::open(server.address, arguments.connections).await?;
    let work = Work::BeginWithWebhook { text: arguments.text.clone(), url: receiver.url() };
    let time = Duration::from_secs_f64(arguments.seconds);
    let until = Until::Paced { per_second: arguments.rate, time };
    let before = [process::cpu_time(server.pid())?, process::cpu_time(receiver.child.id())?];

    let outcome = pool.run(&work, until).await;
    let at_end = receiver.report().await?;
    let after = [process::cpu_time(server.pid())?, process::cpu_time(receiver.child.id())?];
    ensure!(outcome.errors == 0, "{} errors, first: {:?}", outcome.errors, outcome.first_error);
    let due = outcome.requests * arguments.updates;
    let backlog = due.saturating_sub(at_end.taken);
    let traffic = outcome.per_second * arguments.updates as f64;
    let cores = |part: usize| after[part].saturating_sub(before[part]).as_secs_f64() / outcome.seconds;
    println!("{:.0} tasks/s of {} asked for, {:.1} s", outcome.per_second, arguments.rate, outcome.seconds);
    println!("send: p50 {:.2} ms, p99 {:.2} ms", outcome.p50_ms, outcome.p99_ms);
    println!("{:.0} deliveries/s of {traffic:.0}", at_end.taken as f64 / outcome.seconds);
    println!("backlog at the end: {backlog} deliveries, {:.2} s of traffic", backlog as f64 / traffic);
    println!("CPU: server {:.2} cores, receiver {:.2} cores", cores(0), cores(1));

    let drained = Instant::now();
    let last = receiver.until(due).await?;
    println!("everything had come after another {:.1} s", drained.elapsed().as_secs_f64());
    let Report { tasks, taken, repeated, out_of_order } = last;
    println!(
        "lost {}, out of order {out_of_order}, repeated {repeated}, of {taken} deliveries for {tasks} tasks",
        due.saturating_sub(taken)
    );
    ensure!(taken == due, "{taken} deliveries arrived, and {due} were to");
    ensure!(out_of_order == 0, "{out_of_order} deliveries were out of order");
    Ok(())
}

/// The receiver's process; killed when dropped.
struct Receiver {
    child: Child,
    address: SocketAddr,
}

impl Receiver {
    async fn start(own: &Path) -> Result<Receiver> {
        let address = free_addr();
        let child = Command::new(own)
            .args(["receive", &address.to_string()])
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", own.display()))?;
        let receiver = Receiver { child, address };
        let deadline = Instant::now() + RECEIVER_WAIT;
        while receiver.report().await.is_err() {
            if Instant::now() > deadline {
                bail!("the receiver does not answer after {RECEIVER_WAIT:?}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(receiver)
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    async fn report(&self) -> Result<Report> {
        let mut connection = Connection::open(self.address).await?;
        let reply = connection.exchange(b"GET /report HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        Ok(serde_json::from_slice(reply.body)?)
    }

    /// Waits for so many deliveries, or until no more come.
    async fn until(&self, due: u64) -> Result<Report> {
        let mut last = self.report().await?;
        let mut moved = Instant::now();
        while last.taken < due && moved.elapsed() < SILENCE_MAX {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let report = self.report().await?;
            if report.taken > last.taken {
                moved = Instant::now();
            }
            last = report;
        }
        Ok(last)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Both fail only for a process that has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
