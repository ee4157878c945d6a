//! What it costs to know who calls: `cargo run --release -p bench --bin credentials`

use bench::credentials::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
