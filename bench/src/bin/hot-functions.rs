//! Writes the order of the server's functions: `cargo run --release -p bench --bin hot-functions`

use bench::hot_functions::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
