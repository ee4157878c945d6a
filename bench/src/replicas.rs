//! Servers that share a database in PostgreSQL, which is started here. Measured are durable sends beside those of a server on a file, in turn,
//! how much later a follower at another server sees an event than one at the server that wrote it, what servers and runs cost the
//! database while nothing happens, and, if it is asked for, what a send costs beside few and many stored tasks.

mod cost;
mod stored;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use switchboard_test_servers::Postgres;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use self::cost::{Cost, cpu_of};
use crate::load::{Pool, Until, Work, begin_one, hold_streams, subscribe_request};
use crate::server::{Prepared, Server, ServerArguments};

/// A key for the secrets of webhooks: 32 zeros.
const KEY: &str = "swkey_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// An agent that does not declare itself free of effects, so that a send is two commits.
const CONFIG: &str = "[[agent]]\nname = \"Demo\"\nkind = \"demo\"\neffects = \"some\"\n";

/// Measures servers on PostgreSQL, which must be installed.
#[derive(clap::Parser)]
pub struct Arguments {
    #[command(flatten)]
    servers: ServerArguments,
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Sends, Part::Delay, Part::Waiting])]
    parts: Vec<Part>,
    /// Connections that send.
    #[arg(long, short, default_value_t = 256)]
    connections: usize,
    /// Length of one round of sends.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Rounds of sends, of each server in turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Tasks that are followed at the other server while its delay is measured.
    #[arg(long, default_value_t = 1000)]
    followed: usize,
    /// Runs that are under way and write nothing while their cost is measured.
    #[arg(long, default_value_t = 10_000)]
    waiting: u64,
    /// How long the cost of waiting is measured.
    #[arg(long, default_value_t = 60.0)]
    waiting_seconds: f64,
    /// How many tasks are stored for the part `stored`, which measures beside 1,000 and beside so many. All of them are sent.
    #[arg(long, default_value_t = 1_000_000)]
    stored: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Durable sends.
    Sends,
    /// How much later a follower at another server sees an event.
    Delay,
    /// What servers and runs cost while nothing happens.
    Waiting,
    /// What a send costs beside few and many stored tasks.
    Stored,
}

/// Prints what was measured.
pub fn run(arguments: &Arguments) -> Result<()> {
    let Prepared { program, beside, folder, runtime } = arguments.servers.prepare("switchboard")?;
    runtime.block_on(async {
        let postgres = Postgres::start();
        for part in &arguments.parts {
            match part {
                Part::Sends => measure_sends(arguments, &program, folder.path(), &postgres).await?,
                Part::Delay => measure_delay(arguments, &program, folder.path(), &postgres).await?,
                Part::Waiting => measure_waiting(arguments, &beside.join("waiting"), folder.path(), &postgres).await?,
                Part::Stored => stored::measure(arguments, &program, folder.path(), &postgres).await?,
            }
        }
        Ok(())
    })
}

/// A server on PostgreSQL in a folder of its own.
fn on_postgres(program: &Path, folder: &Path, name: &str, postgres: &Postgres) -> Result<Server> {
    with_settings(program, folder, name, postgres, "")
}

/// The same with these settings of the server.
fn with_settings(program: &Path, folder: &Path, name: &str, postgres: &Postgres, settings: &str) -> Result<Server> {
    let place = folder.join(name);
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("switchboard.toml"), format!("[server]\n{settings}\n{CONFIG}"))?;
    Server::start_sharing(program, &place, &postgres.url(), KEY, name)
}

async fn measure_sends(arguments: &Arguments, program: &Path, folder: &Path, postgres: &Postgres) -> Result<()> {
    let place = folder.join("file");
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("switchboard.toml"), CONFIG)?;
    let servers = [
        ("file", Server::start(program, &place, &[])?),
        ("postgres", on_postgres(program, folder, "sends", postgres)?),
    ];
    let mut costs: BTreeMap<&str, Cost> = BTreeMap::new();
    for round in 0..=arguments.rounds {
        for (name, server) in &servers {
            server.until_ready().await?;
            let mut pool = Pool::open(server.address, arguments.connections).await?;
            // The first round fills caches and is not counted.
            let seconds = if round == 0 { 1.0 } else { arguments.seconds };
            let until = Until::Elapsed(Duration::from_secs_f64(seconds));
            let cost = costs.entry(name).or_default();
            cost.measure(server, postgres, round > 0, pool.run(&Work::Send, until)).await?;
        }
    }
    println!("durable sends of an ordinary agent, {} connections, nothing pinned:", arguments.connections);
    let mut per_second = Vec::new();
    for (name, _) in &servers {
        let sends = costs.remove(name).unwrap_or_default().per_send();
        println!("{name:>9}: {sends}");
        println!("           {}", sends.of_database());
        per_second.push(sends.per_second);
    }
    println!("           PostgreSQL is at {:.2} of the file", per_second[1] / per_second[0]);
    Ok(())
}

async fn measure_delay(arguments: &Arguments, program: &Path, folder: &Path, postgres: &Postgres) -> Result<()> {
    let writing = on_postgres(program, folder, "writing", postgres)?;
    let following = on_postgres(program, folder, "following", postgres)?;
    writing.until_ready().await?;
    following.until_ready().await?;
    println!("how much later a follower at another server sees an event than one at the server that wrote it:");
    for held in [0, arguments.followed] {
        let streams = hold_streams(following.address, held, async || ()).await?;
        let id = begin_one(writing.address, "stream 100 ").await?;
        let (near, far) = tokio::try_join!(arrivals(writing.address, &id), arrivals(following.address, &id))?;
        let mut late: Vec<f64> = far
            .iter()
            .filter_map(|(event, at)| Some(at.saturating_duration_since(*near.get(event)?).as_secs_f64() * 1e3))
            .collect();
        late.sort_by(f64::total_cmp);
        ensure!(late.len() > 90, "only {} events were seen at both", late.len());
        let at = |percent: usize| late[(late.len() * percent / 100).min(late.len() - 1)];
        println!(
            "{:>9} other tasks followed there: p50 {:.2} ms, p99 {:.2} ms, most {:.2} ms, {} events",
            streams.count(),
            at(50),
            at(99),
            at(100),
            late.len()
        );
    }
    Ok(())
}

/// What servers cost the database in which nothing happens, and what runs cost that write nothing.
async fn measure_waiting(arguments: &Arguments, program: &Path, folder: &Path, postgres: &Postgres) -> Result<()> {
    let seconds = Duration::from_secs_f64(arguments.waiting_seconds);
    let micros_per_second = async || {
        let before = cpu_of(postgres);
        tokio::time::sleep(seconds).await;
        cpu_of(postgres).saturating_sub(before).as_secs_f64() * 1e6 / seconds.as_secs_f64()
    };
    let alone = micros_per_second().await;
    let place = folder.join("waiting");
    std::fs::create_dir_all(&place)?;
    let server = Server::start_sharing(program, &place, &postgres.url(), KEY, "waiting")?;
    server.until_ready().await?;
    let statements = async || server.metric("switchboard_store_statements_total").await;
    let statements_before = statements().await?;
    let idle = micros_per_second().await;
    let idle_statements = statements().await? - statements_before;
    let mut pool = Pool::open(server.address, 64).await?;
    let begun = pool.run(&Work::Begin("wait ".to_owned()), Until::Requests(arguments.waiting)).await;
    ensure!(begun.errors == 0, "{} errors, first: {:?}", begun.errors, begun.first_error);
    // What the database does after so many sends is not what is measured.
    let _ = postgres.sql("checkpoint");
    let statements_before = statements().await?;
    let holding = micros_per_second().await;
    let holding_statements = statements().await? - statements_before;
    println!("CPU of PostgreSQL in a second in which nothing is sent, over {:.0} s:", arguments.waiting_seconds);
    println!("{alone:>9.0} us without servers");
    let per_minute = |statements: u64| statements as f64 * 60.0 / arguments.waiting_seconds;
    println!(
        "{:>9.0} us more for an idle server, {:.0} statements in a minute",
        idle - alone,
        per_minute(idle_statements)
    );
    println!("{:>9.2} us more for each of {} runs that wait", (holding - idle) / begun.requests as f64, begun.requests);
    println!("           with all of them {:.0} statements in a minute", per_minute(holding_statements));
    Ok(())
}

/// When each event of a task arrived, from its first to its last.
async fn arrivals(address: SocketAddr, id: &str) -> Result<BTreeMap<u64, Instant>> {
    let mut socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    socket.write_all(&subscribe_request(id)).await?;
    let mut lines = BufReader::new(socket).lines();
    let (mut seen, mut number) = (BTreeMap::new(), 0);
    while let Some(line) = lines.next_line().await? {
        if let Some(id) = line.strip_prefix("id: ") {
            number = id.trim().parse()?;
        } else if line.starts_with("data: ") {
            seen.insert(number, Instant::now());
            if line.contains("TASK_STATE_COMPLETED") {
                return Ok(seen);
            }
            ensure!(!line.contains("TASK_STATE_FAILED") && !line.contains("\"error\""), "{line}");
        }
    }
    anyhow::bail!("the stream broke off after {} events", seen.len())
}
