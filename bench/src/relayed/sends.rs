//! The CPU that the server in front takes for a blocking send: of its own agent, which is durable and declares nothing about itself, and
//! of an agent elsewhere.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{Arguments, Front, Stand, Started};
use crate::figures::{median, met};
use crate::load::{Pool, Until, Work};
use crate::process;

/// The goal: a relayed send costs the gateway at most so much of a local one.
const RATIO_MAX: f64 = 2.2;

struct Measured {
    name: &'static str,
    started: Started,
    pool: Pool,
    cpu_us: Vec<f64>,
    per_second: Vec<f64>,
    p50_ms: Vec<f64>,
}

pub(super) async fn measure(arguments: &Arguments, stand: &Stand) -> Result<()> {
    let upstream = stand.demo().await?;
    let mut measured = Vec::new();
    // First what the others are compared with.
    let local = stand.serve(super::SERVER_CORE, &["--effects", "some"]).await?;
    measured.push(Measured::new("a local agent", local, arguments).await?);
    for front in [Front::Relay, Front::Proxy] {
        if let Some(started) = stand.front(front, &upstream).await? {
            measured.push(Measured::new(front.name(), started, arguments).await?);
        }
    }
    let count = measured.len();
    for round in 0..=arguments.rounds {
        eprintln!("sends: round {round} of {}", arguments.rounds);
        for place in 0..count {
            // The first round warms everything up.
            measured[(place + round) % count].take_turn(arguments, round > 0).await?;
        }
    }
    print(arguments, &measured);
    Ok(())
}

impl Measured {
    async fn new(name: &'static str, started: Started, arguments: &Arguments) -> Result<Self> {
        let pool = Pool::open(started.server.address, arguments.connections).await?;
        Ok(Self { name, started, pool, cpu_us: Vec::new(), per_second: Vec::new(), p50_ms: Vec::new() })
    }

    async fn take_turn(&mut self, arguments: &Arguments, is_counted: bool) -> Result<()> {
        let pid = self.started.server.pid();
        let before = process::cpu_time(pid)?;
        let time = Duration::from_secs_f64(arguments.seconds);
        let outcome = self.pool.run(&Work::Send, Until::Elapsed(time)).await;
        let spent = process::cpu_time(pid)?.saturating_sub(before);
        let error = outcome.first_error.unwrap_or_default();
        ensure!(outcome.errors == 0 && outcome.requests > 0, "{}: {error}", self.name);
        if is_counted {
            self.cpu_us.push(spent.as_secs_f64() * 1e6 / outcome.requests as f64);
            self.per_second.push(outcome.per_second);
            self.p50_ms.push(outcome.p50_ms);
        }
        Ok(())
    }
}

fn print(arguments: &Arguments, measured: &[Measured]) {
    println!("blocking sends, {} connections; medians of {} rounds\n", arguments.connections, arguments.rounds);
    println!("| send to | CPU µs/send in front | to local | sends/s | p50 ms | goal |\n|---|--:|--:|--:|--:|---|");
    let Some(local) = measured.first() else { return };
    for one in measured {
        let ratio = median(one.cpu_us.iter().zip(&local.cpu_us).map(|(own, local)| own / local));
        let of = |values: &[f64]| median(values.iter().copied());
        let goal = match one.name == Front::Relay.name() {
            true => format!("≤ {RATIO_MAX}x: {}", met(ratio <= RATIO_MAX)),
            false => String::new(),
        };
        println!(
            "| {} | {:.1} | {ratio:.2} | {:.0} | {:.2} | {goal} |",
            one.name,
            of(&one.cpu_us),
            of(&one.per_second),
            of(&one.p50_ms)
        );
    }
}
