//! The server that `restart` kills: its agent waits for ever when the text begins with "wait", and echoes otherwise.
//! `waiting --listen ADDRESS --data FOLDER`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use switchboard::{AgentBuilder, AgentError, Turn};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    data: PathBuf,
}

async fn wait_or_echo(turn: Turn) -> Result<(), AgentError> {
    let text = turn.text();
    if text.starts_with("wait") {
        turn.cancelled().await;
        return Ok(());
    }
    turn.answer(text).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let agent = AgentBuilder::from_fn("Waiting", wait_or_echo).run_max(HOUR, HOUR);
    switchboard::serve(agent).durable(arguments.data).listen(arguments.listen).run().await?;
    Ok(())
}
