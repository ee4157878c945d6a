//! An agent that answers word by word. Each chunk is durable and on its way to every follower when the call returns. If the
//! process dies, the next attempt goes on with the next word.

use std::time::Duration;

use switchboard::{AgentBuilder, AgentError, ServeError, Skill, Turn};

async fn recite(turn: Turn) -> Result<(), AgentError> {
    turn.working("reciting").await?;
    let mut poem = turn.artifact_writer().with_name("poem").resume();
    let said: usize = if poem.resumes() { turn.checkpoint_as()?.unwrap_or(0) } else { 0 };
    for (number, word) in (1_usize..).zip("so much depends upon a red wheel barrow".split(' ')).skip(said) {
        poem.text_with_checkpoint(format!("{word} "), &number).await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let agent = AgentBuilder::from_fn("Reciter", recite)
        .skill(Skill::new("recite", "Recite", "Recites a poem, word by word").tag("poetry").example("a poem, please"));
    switchboard::serve(agent).durable("switchboard-data/reciter.db").run().await
}
