//! The driver itself: its inputs repeat, and a target that fails is reported.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Dice, golden, mutated, run, texts};

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let corpus = golden(".json");
    let inputs =
        |seed| -> Vec<Vec<u8>> { (0..100).map(|at| mutated(&corpus, &mut Dice::new("these", seed, at))).collect() };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
    assert!(inputs(7).iter().filter(|input| !corpus.contains(input)).count() > 80, "most inputs are new");
}

#[test]
fn a_target_that_panics_fails_after_its_corpus_was_tried() {
    let tried = Cell::new(0);
    let target = |input: &[u8]| {
        tried.set(tried.get() + 1);
        assert!(input == b"first" || input == b"second", "mutated");
    };
    let failed = catch_unwind(AssertUnwindSafe(|| run("a_target_that_panics", &texts(&["first", "second"]), target)));
    assert!(failed.is_err());
    assert!(tried.get() > 2);
}
