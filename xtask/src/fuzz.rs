//! `xtask fuzz`: runs the fuzz targets of every crate for longer than the tests do. They are tests whose names begin with
//! `fuzz_`, and `crates/switchboard-fuzz` drives them.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// How long each target runs if no option says otherwise.
const SECONDS: u64 = 60;

pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let (mut seconds, mut seed) = (SECONDS, 1_u64);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = || options.clone().next().and_then(|value| value.parse().ok());
        let number: u64 = value().with_context(|| format!("{option} needs a number"))?;
        match *option {
            "--seconds" => seconds = number,
            "--seed" => seed = number,
            _ => bail!("{option} is not known; expected --seconds or --seed"),
        }
        options.next();
    }
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--profile", "ci", "--workspace", "--lib", "--bins", "--locked", "--no-fail-fast"]);
    cargo.args(["--", "fuzz_", "--nocapture", "--test-threads", "2"]);
    cargo.env("SWITCHBOARD_FUZZ_MS", (seconds * 1000).to_string()).env("SWITCHBOARD_FUZZ_SEED", seed.to_string());
    Ok(cargo.status().context("cargo cannot be run")?.success())
}
