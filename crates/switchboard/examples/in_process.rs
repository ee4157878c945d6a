//! A whole round trip without a socket: how to test an agent of yours.

use switchboard::{AgentBuilder, Server, TaskState, Turn};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let shout = AgentBuilder::from_fn("Shout", |turn: Turn| async move {
        turn.answer(turn.text().to_uppercase()).await?;
        Ok(())
    });
    let server = Server::builder().agent(shout).build()?;
    let shout = server.local("shout").ok_or_else(|| anyhow::anyhow!("the agent is served under its slug"))?;

    let task = shout.send_text("hello").await?.into_task().ok_or_else(|| anyhow::anyhow!("it answers with a task"))?;
    assert_eq!(task.state(), TaskState::Completed);
    assert_eq!(task.artifacts[0].text(), "HELLO");
    assert_eq!(shout.task(&task.id).await?, task);
    server.shutdown(std::time::Duration::from_secs(1)).await;
    Ok(())
}
