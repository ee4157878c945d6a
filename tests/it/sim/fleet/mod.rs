//! Thousands of replicas with failures, on virtual time. In each of them runs the whole engine: the same sweeper, claims,
//! leases and fences as in a server. Replicas are in cells; those of a cell share one store, and cells share nothing, so each
//! cell is a world of its own and takes a thread of its own (docs/scale.md).
//!
//! Replicas are killed, frozen, cut off from the store, stopped in order and started again, a third of a cell dies at once, the
//! store of a cell cannot be reached, and the clocks of replicas and stores drift and jump. What must hold:
//!
//! - every write of a run that the store admits is one of the run that holds the newest claim, and no claim is used twice;
//! - every run that is under way gets a sign of life (a claim, a renewal) within lease + one sweep + 2 s, as long as one
//!   replica of the cell is well;
//! - every message that was accepted is one task, and every task completes;
//! - most claims that reach the store are admitted: replicas do not all claim the same runs at the same time.
//!
//! ```sh
//! SWITCHBOARD_SIM_REPLICAS=2000 cargo test --profile ci --workspace --test it -- sim::fleet --nocapture
//! ```
//!
//! - `cell`: replicas, their tasks, and what happens to them; `replica`: one of them;
//! - `link`: the way of a replica to the store;
//! - `book`: what the store admitted, and whether it should have; `figures`: what is printed.

mod book;
mod cell;
mod figures;
mod link;
mod replica;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::cell::Cell;
use self::figures::Figures;
use super::dice::Dice;
use super::seeds::number;
use crate::support::limit::Limit;

/// Replicas of all cells together, unless `SWITCHBOARD_SIM_REPLICAS` says otherwise.
const REPLICAS: u64 = 80;
/// Replicas of one cell at most.
const CELL_REPLICAS: u64 = 100;
/// Of all claims that reach a store, at least one in so many is admitted.
const CLAIMS_PER_ADMITTED_MAX: u64 = 2;

/// How a cell is made.
#[derive(Clone, Copy, Debug)]
struct Plan {
    replicas: usize,
    tasks: u64,
    /// How long tasks are sent and things go wrong.
    trouble: Duration,
}

#[test]
fn thousands_of_replicas_keep_every_promise() {
    let asked = number("SWITCHBOARD_SIM_REPLICAS");
    // A large fleet takes as long as it does.
    let _limit = asked.is_none().then(Limit::new);
    let replicas = asked.unwrap_or(REPLICAS);
    let cells = replicas.div_ceil(CELL_REPLICAS).max(2);
    let first_seed = number("SWITCHBOARD_SIM_SEED").unwrap_or(1);
    println!("seed {first_seed}: {cells} cells");
    let per_cell = usize::try_from(replicas / cells).unwrap();
    let minutes = if asked.is_some() { 30 } else { 10 };
    let plan = Plan { replicas: per_cell, tasks: per_cell as u64 * 25, trouble: Duration::from_secs(60 * minutes) };
    let figures = run_all(plan, cells, first_seed);
    println!("{figures}");
    assert_eq!(figures.broken.first(), None, "{} promises were broken", figures.broken.len());
    assert!(figures.saw_enough(), "too little went wrong to prove anything");
    let (tried, admitted) = figures.claims();
    assert!(tried <= CLAIMS_PER_ADMITTED_MAX * admitted, "{tried} claims for {admitted} runs");
}

/// Every cell, on as many threads as there are cores.
fn run_all(plan: Plan, cells: u64, first_seed: u64) -> Figures {
    let (next, figures) = (AtomicU64::new(0), Mutex::new(Figures::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let cell = next.fetch_add(1, Ordering::Relaxed);
                    if cell >= cells {
                        return;
                    }
                    let seen = run(plan, first_seed + cell);
                    figures.lock().unwrap().add(seen);
                }
            });
        }
    });
    figures.into_inner().unwrap()
}

fn run(plan: Plan, seed: u64) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(Cell::new(plan, Dice::new(seed)).live())
}

/// What a server costs its store that has nothing to do, and one that holds runs. The figures are part of docs/scale.md.
#[test]
fn the_calls_of_a_replica_to_its_store_are_counted() {
    let quiet = Plan { replicas: 1, tasks: 0, trouble: Duration::ZERO };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let idle = runtime.block_on(Cell::new(quiet, Dice::new(1)).stand_by(0));
    println!("idle:\n{}", idle.calls_text());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let holding = runtime.block_on(Cell::new(quiet, Dice::new(1)).stand_by(100));
    println!("with 100 runs that write nothing:\n{}", holding.calls_text());
    // A sweep, every 3.75 s at most, looks for due runs. Besides there are six looks for deliveries, of two calls, and what happens once a minute.
    assert!(idle.calls_per_minute() <= 32.0);
    // It renews every lease in one call and looks for canceled runs in another, so its cost in calls does not depend on the number of runs.
    assert!(holding.calls_per_minute() <= idle.calls_per_minute() + 2.0 * 16.0);
}

/// A cell whose replicas all lose their store for longer than a lease: afterwards each goes on with its own runs.
#[test]
fn runs_stay_where_they_are_when_the_store_was_gone_for_longer_than_a_lease() {
    let plan = Plan { replicas: 20, tasks: 0, trouble: Duration::ZERO };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let figures = runtime.block_on(Cell::new(plan, Dice::new(1)).lose_the_store(500, Duration::from_secs(90)));
    println!("{figures}");
    assert_eq!(figures.broken.first(), None);
    let (_, admitted) = figures.claims();
    assert!(admitted <= 25, "{admitted} of 500 runs were taken from replicas that are alive");
}
