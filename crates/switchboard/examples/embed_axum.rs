//! An agent inside an axum app that has other things to do.

use std::net::Ipv4Addr;

use axum::Router;
use axum::routing::get;
use switchboard::{AgentBuilder, Server, Skill, Turn};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move {
        turn.answer(turn.text()).await?;
        Ok(())
    })
    .skill(Skill::new("echo", "Echo", "Repeats the text of a message").tag("demo"));
    let agents = Server::builder()
        .agent(echo)
        // The address under which clients reach it: it goes into the card.
        .public_url("http://127.0.0.1:3000/a2a")
        .host_check(true)
        .build()?;

    let app = Router::new().route("/", get(|| async { "my app" })).nest("/a2a", agents.into_router());
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 3000)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}
