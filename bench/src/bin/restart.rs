//! A server killed with many tasks at work: `cargo run --release -p bench --bin restart -- --tasks 100000`

use bench::restart::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
