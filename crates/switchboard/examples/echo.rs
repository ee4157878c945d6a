//! The smallest agent: says what it was told.
//!
//! `cargo run --release -p switchboard --example echo`, then ask it something with curl:
//!
//! ```sh
//! curl -s http://127.0.0.1:8080/ -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"jsonrpc":"2.0","id":1,
//!   "method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hello"}]}}}'
//! ```

use switchboard::{AgentBuilder, AgentError, ServeError, Skill, Turn};

async fn echo(turn: Turn) -> Result<(), AgentError> {
    turn.answer(turn.text()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let agent = AgentBuilder::from_fn("Echo", echo)
        .description("Says what it was told")
        .skill(Skill::new("echo", "Echo", "Repeats the text of a message").tag("demo").example("hello"));
    switchboard::serve(agent).run().await
}
