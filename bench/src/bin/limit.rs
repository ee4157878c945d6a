//! The parsing limit server as a process: `limit --port 9000`.

use clap::Parser;
use tokio::net::TcpListener;

// The real server's allocator, so that the ratio compares code and not allocators.
#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

/// Parses A2A 1.0 JSON-RPC and answers; keeps nothing.
#[derive(Parser)]
struct Arguments {
    /// Port on 127.0.0.1.
    #[arg(long, default_value_t = 9000)]
    port: u16,
}

// The default runtime, as the real server has: as many workers as there are cores it may use.
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", Arguments::parse().port)).await?;
    bench::limit::serve(listener).await?;
    Ok(())
}
