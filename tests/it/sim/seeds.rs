//! Many seeds, each a world.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::journal::Totals;
use super::weather::Trouble;
use super::world::Build;
use super::{Simulation, Story};

/// Seeds that failed once, and what they found. They always run.
const SEEDS_THAT_FAILED: &[u64] = &[
    // A process claimed a run, stood still until another had claimed it too, and then ran it under the other's fence.
    491,
    // The same with the next turn of a run: it was begun, and read again under the fence of the node that had taken it
    // over.
    115,
    // A run that stood still until its time was up failed the task, although another had taken it over meanwhile.
    32,
];

/// How many seeds run by default: those from 1 on, and fresh ones.
const SEEDS: u64 = 300;
const SEEDS_FRESH: u64 = 20;

/// If all is broken, a few will do.
const BROKEN_SHOWN: usize = 20;

fn simulate(seed: u64, keep_steps: bool) -> Story {
    Simulation { seed, build: &Build::default(), trouble: Trouble::Seeded, keep_steps }.run()
}

#[test]
fn no_seed_breaks_a_promise() {
    if let Some(seed) = number("SWITCHBOARD_SIM_SEED") {
        return show(seed);
    }
    let fresh = number("SWITCHBOARD_SIM_FRESH").unwrap_or(SEEDS_FRESH);
    let counted = number("SWITCHBOARD_SIM_SEEDS").unwrap_or(SEEDS);
    let first_fresh = fresh_seed();
    println!("seed 1..{counted}, and {fresh} fresh ones from {first_fresh}");
    let seeds = SEEDS_THAT_FAILED.iter().copied().chain(1..=counted);
    let seeds: Vec<u64> = seeds.chain((0..fresh).map(|n| first_fresh.wrapping_add(n))).collect();
    let (broken, totals) = run_all(&seeds);
    println!("{totals:#?}");
    for (seed, promise) in broken.iter().take(BROKEN_SHOWN) {
        println!("seed {seed} broke a promise: {promise}\n    {}", command(*seed));
    }
    assert!(broken.is_empty(), "{} of {} seeds broke a promise", broken.len(), seeds.len());
    saw_enough(&totals);
}

/// The same seed gives the same history, else a failing seed would be worth nothing.
#[test]
fn a_seed_repeats_itself() {
    for seed in 1..=40 {
        let (first, second) = (simulate(seed, true), simulate(seed, true));
        let differs = first.steps.iter().zip(&second.steps).find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first, second, "seed {seed}");
    }
}

/// Every seed, on as many threads as there are cores.
fn run_all(seeds: &[u64]) -> (Vec<(u64, String)>, Totals) {
    let next = AtomicUsize::new(0);
    let found: Mutex<(Vec<(u64, String)>, Totals)> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let story = simulate(seed, false);
                    let (broken, totals) = &mut *found.lock().unwrap();
                    totals.add(&story.totals);
                    broken.extend(story.broken.map(|promise| (seed, promise)));
                }
            });
        }
    });
    let (mut broken, totals) = found.into_inner().unwrap();
    broken.sort();
    (broken, totals)
}

/// One seed, step by step.
fn show(seed: u64) {
    let story = simulate(seed, true);
    for step in &story.steps {
        println!("{step}");
    }
    println!("seed {seed}: {:#?}", story.totals);
    assert_eq!(story.broken, None, "seed {seed} broke a promise");
}

/// A simulation in which nothing went wrong would prove nothing.
fn saw_enough(totals: &Totals) {
    let Totals { acknowledged, streams_resumed, crashes, freezes, shutdowns, clock_jumps, store_faults, .. } = totals;
    for seen in [acknowledged, streams_resumed, crashes, freezes, shutdowns, clock_jumps, store_faults] {
        assert!(*seen > 100, "{totals:#?}");
    }
    let Totals { hints_lost, hints_late, hints_doubled, .. } = totals;
    for seen in [hints_lost, hints_late, hints_doubled] {
        assert!(*seen > 100, "{totals:#?}");
    }
    let Totals { runs_claimed, webhooks_taken, webhooks_repeated, sends_repeated, .. } = totals;
    for seen in [runs_claimed, webhooks_taken, webhooks_repeated, sends_repeated] {
        assert!(*seen > 100, "{totals:#?}");
    }
}

fn command(seed: u64) -> String {
    format!("SWITCHBOARD_SIM_SEED={seed} cargo test --profile ci --workspace --test it -- sim::seeds --nocapture")
}

pub(super) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")))
}

/// From the system's randomness, small enough to be typed.
fn fresh_seed() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(0) >> 24
}
