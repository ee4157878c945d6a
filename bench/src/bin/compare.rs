//! The one command: builds, starts and compares. `cargo run --release -p bench --bin compare`

use bench::compare::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<std::process::ExitCode> {
    run(&Arguments::parse())
}
