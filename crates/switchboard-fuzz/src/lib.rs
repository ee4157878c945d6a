//! Drives fuzz targets on stable Rust. A target is a plain function of some bytes that panics if a property does not hold;
//! it lives in the tests of the crate whose decoder it calls. [`run`] gives it every entry of its corpus, and then mutations
//! of them, drawn from a seed: always the same ones, however fast the machine is, unless a time is given.
//!
//! There are 2,000 inputs for each target, 100,000 with `SWITCHBOARD_TEST_LONG`, and as many as fit into `SWITCHBOARD_FUZZ_MS` where it is
//! set. `SWITCHBOARD_FUZZ_SEED` is the seed. A failure prints the seed, the number of the input and the input, and
//! `SWITCHBOARD_FUZZ_AT` repeats that one input.

mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

pub use mutate::{Dice, mutated};

/// The largest input.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// The longest time that one input may take, on a busy machine without optimisations.
const INPUT_TIME_MAX: Duration = Duration::from_secs(10);

/// Runs a target over its corpus and mutations of it.
///
/// # Panics
/// If the target panics, or takes too long for one input.
#[expect(clippy::disallowed_methods, reason = "how long an input takes is the question here")]
#[expect(clippy::print_stdout, reason = "this is only called by tests")]
pub fn run(name: &str, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    assert!(!corpus.is_empty(), "{name} has no corpus");
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let is_long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let time = number("SWITCHBOARD_FUZZ_MS").map(Duration::from_millis);
    let inputs = corpus.len() as u64 + if is_long { 100_000 } else { 2_000 };
    let seed = number("SWITCHBOARD_FUZZ_SEED").unwrap_or(1);
    let only = number("SWITCHBOARD_FUZZ_AT");
    let (began, mut at) = (Instant::now(), only.unwrap_or(0));
    loop {
        let input = match corpus.get(usize::try_from(at).unwrap_or(usize::MAX)) {
            Some(entry) => entry.clone(),
            None => mutated(corpus, &mut Dice::new(name, seed, at)),
        };
        let input_began = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = input_began.elapsed();
        if outcome.is_err() || took > INPUT_TIME_MAX {
            println!("seed {seed}, input {at} of {name}, {took:?}: {}", input.escape_ascii());
            println!("again: SWITCHBOARD_FUZZ_SEED={seed} SWITCHBOARD_FUZZ_AT={at}");
        }
        if let Err(panic) = outcome {
            resume_unwind(panic);
        }
        assert!(took <= INPUT_TIME_MAX, "{name}: an input took {took:?}");
        at += 1;
        let is_over = match time {
            Some(time) => at >= corpus.len() as u64 && began.elapsed() >= time,
            None => at >= inputs,
        };
        if only.is_some() || is_over {
            break;
        }
    }
    println!("seed {seed}: {at} inputs of {name} in {:?}", began.elapsed());
}

/// The files below a folder whose names end so, as a corpus.
///
/// # Panics
/// If the folder cannot be read.
#[must_use]
pub fn files(folder: impl AsRef<Path>, ending: &str) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.as_ref().to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.to_string_lossy().ends_with(ending) => paths.push(path),
                false => {}
            }
        }
    }
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// The golden files of the workspace whose names end so: requests, answers and cards of every dialect.
#[must_use]
pub fn golden(ending: &str) -> Vec<Vec<u8>> {
    files(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden"), ending)
}

/// Texts as a corpus.
#[must_use]
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[cfg(test)]
mod tests;
