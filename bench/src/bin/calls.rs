//! What a call costs the client: `cargo run --release -p bench --bin calls`

use bench::calls::{Arguments, run};
use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

fn main() -> anyhow::Result<()> {
    run(&Arguments::parse())
}
