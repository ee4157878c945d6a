//! A process dies at each of its awaits in turn, with nothing else going wrong.

use super::Simulation;
use super::weather::Trouble;
use super::world::Build;

/// Worlds to die in. Few, because each is lived as often as it has steps.
const WORLDS: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn a_crash_at_any_await_breaks_no_promise() {
    let build = Build::default();
    let mut lives = 0;
    for &seed in WORLDS {
        let world = |step| Simulation { seed, build: &build, trouble: Trouble::CrashAt(step), keep_steps: false };
        let (_, steps) = world(0).live();
        for step in 1..=steps {
            lives += 1;
            let story = world(step).run();
            assert_eq!(story.broken, None, "world {seed}, crash at step {step} of {steps}");
        }
    }
    println!("{lives} crashes, one at every await of {} worlds", WORLDS.len());
}
