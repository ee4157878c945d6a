//! A process dies, or stands still beyond its leases, at each of its awaits in turn, with nothing else going wrong.

use super::Simulation;
use super::weather::{Blow, Trouble};
use super::world::Build;

/// Worlds to suffer in. Few, because each is lived as often as it has steps.
const WORLDS: u64 = 8;
const WORLDS_LONG: u64 = 100;

#[test]
fn a_crash_at_any_await_breaks_no_promise() {
    strike_everywhere(Blow::Death);
}

#[test]
fn a_process_that_stands_still_at_any_await_breaks_no_promise() {
    strike_everywhere(Blow::Freeze);
}

fn strike_everywhere(blow: Blow) {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let worlds = if long { WORLDS_LONG } else { WORLDS };
    let build = Build::default();
    let mut lives = 0;
    for seed in 1..=worlds {
        let world = |step| Simulation { seed, build: &build, trouble: Trouble::One(blow, step), keep_steps: false };
        let (_, steps) = world(0).live();
        for step in 1..=steps {
            lives += 1;
            let story = world(step).run();
            assert_eq!(story.broken, None, "world {seed}, {blow:?} at step {step} of {steps}");
        }
    }
    println!("{blow:?} at every await of {worlds} worlds: {lives}");
}
