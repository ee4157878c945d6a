//! What it costs a server to know who calls: sends with no credential, a token of the server, and JSON Web Tokens that it has seen before
//! or not, side by side.
//!
//! One server for each kind, all on core 0 and only one of them loaded at a time; the kinds take turns in short slices. What a kind costs is
//! the median of the differences in the same round: to sends without a credential, and to such sends of which repeats are recognised. Repeats
//! are recognised of every caller who is known, so the first difference is all that a credential brings with it, and the second what it
//! costs to know who calls. The goals are about the second.

pub(crate) mod kinds;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::figures::{median, met};
use crate::load::{Pool, Until, Work};
use crate::process::{self, pin_to_core};
use crate::server::Server;
use kinds::{Goal, KINDS, Kind, Verification};

const SERVER_CORE: usize = 0;
const LOAD_CORE: usize = 1;

/// How many pieces the time of each kind in a round is cut into. The kinds take turns piece by piece, so that a slow moment of the machine
/// meets them all.
const SLICES: u32 = 8;

/// What it costs to know who calls.
#[derive(clap::Parser)]
pub struct Arguments {
    /// The `switchboard` binary; by default the one beside this binary.
    #[arg(long)]
    server: Option<PathBuf>,
    /// Rounds; in each, every kind takes its turn.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of each kind in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Keep-alive connections of the load.
    #[arg(long, short, default_value_t = 32)]
    connections: usize,
}

struct Measured {
    kind: Kind,
    server: Server,
    work: Work,
    /// CPU µs per request of each round.
    taken: Vec<f64>,
    /// What a signature alone took in each slice, if the goal is that.
    signatures: Vec<Verification>,
}

/// What a kind has done in a round.
struct Load {
    pool: Pool,
    requests: u64,
    spent: Duration,
}

/// Prints what was measured.
pub fn run(arguments: &Arguments) -> Result<()> {
    process::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(arguments))
}

/// The `switchboard` binary that was named, or the one beside this binary.
pub(crate) fn program(named: Option<&PathBuf>) -> Result<PathBuf> {
    let program = match named {
        Some(named) => std::path::absolute(named)?,
        None => std::env::current_exe()?.parent().context("a binary lies in a folder")?.join("switchboard"),
    };
    ensure!(program.exists(), "{} is not built: cargo build --release", program.display());
    Ok(program)
}

/// What the load of a kind does.
pub(crate) fn work_of(kind: &Kind) -> Work {
    match kind.credentials.is_empty() {
        true => Work::Send,
        false => Work::SendAs(Arc::from(kind.credentials.as_slice())),
    }
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let program = program(arguments.server.as_ref())?;
    let mut measured = Vec::new();
    let mut folders = Vec::new();
    for kind in KINDS {
        let folder = tempfile::tempdir()?;
        let kind = Kind::prepare(kind, folder.path(), None)?;
        let mut command = std::process::Command::new(&program);
        command.arg("serve").envs(kind.variables.iter().map(|(name, value)| (name, value)));
        // A child may run where the thread that starts it may.
        pin_to_core(SERVER_CORE)?;
        let more: Vec<&str> = ["--memory"].into_iter().chain(kind.arguments.iter().map(String::as_str)).collect();
        let server = Server::start_by(command, folder.path(), &more)?;
        pin_to_core(LOAD_CORE)?;
        server.until_ready().await?;
        let work = work_of(&kind);
        measured.push(Measured { kind, server, work, taken: Vec::new(), signatures: Vec::new() });
        folders.push(folder);
    }
    let slice = Duration::from_secs_f64(arguments.seconds) / SLICES;
    for round in 0..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        // New ones in every round, because a server closes connections that were silent for half a minute.
        let mut loads = Vec::new();
        for one in &measured {
            let pool = Pool::open(one.server.address, arguments.connections).await?;
            loads.push(Load { pool, requests: 0, spent: Duration::ZERO });
        }
        for slice_number in 0..SLICES {
            for at in order(slice_number) {
                let (one, load) = (&mut measured[at], &mut loads[at]);
                let before = process::cpu_time(one.server.pid())?;
                let outcome = load.pool.run(&one.work, Until::Elapsed(slice)).await;
                load.spent += process::cpu_time(one.server.pid())?.saturating_sub(before);
                load.requests += outcome.requests;
                let error = outcome.first_error.unwrap_or_default();
                ensure!(outcome.errors == 0 && outcome.requests > 0, "{}: {error}", one.kind.name);
                // At the same moments as the requests, because the machine is not as fast at all times.
                if round > 0
                    && let Some(Goal::Signature(signatures)) = &mut one.kind.goal
                {
                    pin_to_core(SERVER_CORE)?;
                    one.signatures.push(signatures.verify_some()?);
                    pin_to_core(LOAD_CORE)?;
                }
            }
        }
        // The first round warms everything up.
        if round > 0 {
            for (one, load) in measured.iter_mut().zip(loads) {
                one.taken.push(load.spent.as_secs_f64() * 1e6 / load.requests as f64);
            }
        }
    }
    print(&measured);
    Ok(())
}

/// In which order the kinds take their turns in a slice. From slice to slice each follows another kind, because the one before may leave the
/// processor slower, and then that must not always meet the same one.
fn order(slice: u32) -> impl Iterator<Item = usize> {
    // None has a divisor in common with the number of kinds, so each kind has one turn.
    const STEPS: [usize; 6] = [1, 2, 4, 5, 7, 8];
    const { assert!(KINDS.len() == 9) };
    let slice = slice as usize;
    (0..KINDS.len()).map(move |turn| (turn * STEPS[slice % STEPS.len()] + slice) % KINDS.len())
}

fn print(measured: &[Measured]) {
    println!("| credential | CPU µs/request | to none | to none, repeats recognised | goal |\n|---|--:|--:|--:|---|");
    let [none, recognised, ..] = measured else { return };
    for one in measured {
        let [in_all, added] =
            [none, recognised].map(|base| median(one.taken.iter().zip(&base.taken).map(|(own, base)| own - base)));
        let goal = match &one.kind.goal {
            None => String::new(),
            Some(Goal::Us(goal)) => format!("≤ {goal:.1}: {}", met(added <= *goal)),
            Some(Goal::Signature(_)) => {
                let of = |us: fn(&Verification) -> f64| median(one.signatures.iter().map(us));
                let (unparsed, parsed) = (of(|alone| alone.unparsed_us), of(|alone| alone.parsed_us));
                let verdict = met(added <= unparsed);
                format!("≤ {unparsed:.1} (the signature alone; {parsed:.1} with a parsed key): {verdict}")
            }
        };
        let taken = median(one.taken.clone());
        println!("| {} | {taken:.1} | {in_all:+.2} | {added:+.2} | {goal} |", one.kind.name);
    }
}
