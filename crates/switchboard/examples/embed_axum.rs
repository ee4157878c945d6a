//! An agent inside an axum app that has other things to do, and that stops in order: on Ctrl-C or SIGTERM the agent's
//! streams end first (clients resume them later), then the app closes its connections, then running agents have ten
//! seconds, and what is left goes on at the next start.
//!
//!     cargo run --example embed_axum -- 127.0.0.1:3000 switchboard-data/embedded.db

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use switchboard::{AgentBuilder, AgentError, Server, Skill, Turn};

const GRACE: Duration = Duration::from_secs(10);

async fn count(turn: Turn) -> Result<(), AgentError> {
    let mut numbers = turn.artifact_writer().with_name("numbers");
    for number in 1..=600 {
        numbers.text(format!("{number}\n")).await?;
        tokio::select! {
            () = turn.cancelled() => return Ok(()),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or("127.0.0.1:3000".to_owned());
    let database = args.next().unwrap_or("switchboard-data/embedded.db".to_owned());
    let counter = AgentBuilder::from_fn("Counter", count)
        .skill(Skill::new("count", "Count", "Counts to 600, ten numbers a second").tag("demo").example("count"));
    let agents = Server::builder()
        .agent(counter)
        .sqlite(database)
        // The address under which clients reach it: it goes into the card.
        .public_url(format!("http://{address}/a2a"))
        .host_check(true)
        .build()?;
    // Taken before the server is mounted, because afterwards it is out of reach.
    let handle = agents.handle();

    let app = Router::new().route("/", get(|| async { "my app" })).nest("/a2a", agents.into_router()?);
    let listener = tokio::net::TcpListener::bind(&address).await?;
    axum::serve(listener, app).with_graceful_shutdown(handle.drain_when(switchboard::stop_signal())).await?;
    handle.shutdown(GRACE).await;
    Ok(())
}
