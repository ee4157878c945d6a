//! Servers on PostgreSQL: `cargo run --release -p bench --bin replicas`

use bench::replicas::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
