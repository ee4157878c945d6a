//! Many streams at once: `cargo run --release -p bench --bin tokens`

use bench::tokens::{Arguments, run};
use clap::Parser as _;

// The real server's allocator: this binary is also the servers that it measures.
#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
