//! Work that takes its time: progress as it goes, cancellable, and taken up again after a crash where it left off.

use std::time::Duration;

use switchboard::{AgentBuilder, AgentError, ServeError, Skill, Turn};

const STEPS: u32 = 30;

async fn count(turn: Turn) -> Result<(), AgentError> {
    // What the attempt before us finished, if there was one.
    let done: u32 = turn.checkpoint_as()?.unwrap_or(0);
    for step in done + 1..=STEPS {
        turn.working(format!("step {step} of {STEPS}, attempt {}", turn.attempt())).await?;
        tokio::select! {
            () = turn.cancelled() => return Ok(()),
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
        turn.checkpoint(&step).await?;
    }
    turn.answer(format!("{STEPS} steps done")).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let agent = AgentBuilder::from_fn("Counter", count)
        .skill(Skill::new("count", "Count", "Counts slowly and tells how far it is").tag("demo").example("count"));
    switchboard::serve(agent).durable("switchboard-data/counter.db").run().await
}
