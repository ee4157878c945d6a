//! How many instructions a send costs: `cargo run --release -p bench --bin instructions`

use bench::instructions::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
