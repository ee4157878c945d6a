//! The server that `restart` kills, and whose runs `replicas` lets wait: its agent waits for ever when the text begins with "wait", and
//! echoes otherwise. `waiting --listen ADDRESS --data FOLDER`, or `--store URL --replica NAME` for PostgreSQL.

use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use switchboard::{AgentBuilder, AgentError, PostgresOptions, SecretKeys, Server, Turn};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    data: Option<PathBuf>,
    #[arg(long, conflicts_with = "data", requires = "replica")]
    store: Option<String>,
    #[arg(long)]
    replica: Option<String>,
    /// For the secrets of webhooks. No client registers any here.
    #[arg(long, env = "SWITCHBOARD_SECRETS_KEY", hide = true)]
    secrets_key: Option<String>,
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
    let server = Server::builder().agent(agent);
    let server = match (arguments.data, arguments.store) {
        (_, Some(url)) => {
            let options = PostgresOptions::new(url).replica(arguments.replica.unwrap_or_default());
            let keys = arguments.secrets_key.map(|key| SecretKeys::parse(&key)).transpose()?;
            server.postgres(keys.into_iter().fold(options, PostgresOptions::secrets))
        }
        (Some(folder), None) => server.sqlite(folder),
        (None, None) => anyhow::bail!("--data or --store is missing"),
    };
    server.build()?.bind(arguments.listen).await?.run_until(pending(), Duration::ZERO).await;
    Ok(())
}
