//! What a relay costs: `cargo build --release && cargo run --release -p bench --bin relayed`

use bench::relayed::{Arguments, run};
use clap::Parser as _;

// The real server's allocator: this binary is also the proxy that it measures.
#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
