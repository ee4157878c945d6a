//! Tasks with webhooks at a steady rate: `cargo run --release -p bench --bin webhooks -- --rate 1000 --seconds 60`

use bench::webhooks::{Arguments, run};
use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
