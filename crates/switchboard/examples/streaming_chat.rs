//! A conversation with an agent: each line of standard input is a message, and the answer is written as it streams in. A question of the
//! agent is answered by the next line. Without an address it talks to an agent of its own.
//!
//!     cargo run --example streaming_chat -- http://127.0.0.1:3000

use std::future::pending;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use switchboard::client::Client;
use switchboard::model::Update;
use switchboard::{AgentBuilder, AgentClient, AgentError, Bound, Message, Part, Role, Server, TaskId, TaskState, Turn};
use tokio::task::block_in_place;

#[tokio::main]
async fn main() -> Result<()> {
    let (url, own) = match std::env::args().nth(1) {
        Some(url) => (url, None),
        None => {
            let own = an_agent().await?;
            (format!("http://{}", own.local_addr()), Some(own))
        }
    };
    let serving = async {
        match own {
            Some(own) => own.run_until(pending(), Duration::ZERO).await,
            None => pending().await,
        }
    };
    tokio::select! {
        outcome = chat(&url) => outcome,
        () = serving => anyhow::bail!("the agent stopped"),
    }
}

async fn chat(url: &str) -> Result<()> {
    let agent = Client::builder().build()?.agent(url).await?;
    writeln!(std::io::stdout(), "{}: {}", agent.card().name, agent.card().description)?;
    let mut lines = std::io::stdin().lines();
    // The task whose question the next line answers.
    let mut asked = None;
    while let Some(line) = block_in_place(|| lines.next()) {
        asked = say(&agent, &line?, asked).await?;
    }
    Ok(())
}

/// Sends one line and writes what comes of it. Returns the task if it waits for an answer.
async fn say(agent: &AgentClient, line: &str, asked: Option<TaskId>) -> Result<Option<TaskId>> {
    let mut message = Message::new(Role::User, "", vec![Part::text(line)]);
    message.task_id = asked;
    let mut out = std::io::stdout();
    let mut stream = agent.stream(message).await?;
    while let Some(frame) = stream.next().await {
        match &frame?.update.update {
            Update::Artifact(update) => write!(out, "{}", update.artifact.text())?,
            Update::Message(message) => write!(out, "{}", message.text())?,
            Update::Status(update) => {
                if let Some(message) = &update.status.message {
                    write!(out, "[{}]", message.text())?;
                }
            }
            Update::Task(_) => {}
        }
        out.flush()?;
    }
    writeln!(out)?;
    Ok(stream.task().filter(|task| task.state() == TaskState::InputRequired).map(|task| task.id.clone()))
}

/// An agent to talk to: says each word of a message, and asks back when it is asked something.
async fn an_agent() -> Result<Bound> {
    async fn repeat(turn: Turn) -> Result<(), AgentError> {
        if turn.number() == 1 && turn.text().ends_with('?') {
            turn.ask("Why do you ask?").await?;
            return Ok(());
        }
        let mut words = turn.artifact_writer();
        for word in turn.text().split_whitespace() {
            words.text(format!("{word} ")).await?;
        }
        Ok(())
    }
    let agent = AgentBuilder::from_fn("Parrot", repeat).description("Says what you say, word by word");
    Ok(Server::builder().agent(agent).build()?.bind(([127, 0, 0, 1], 0).into()).await?)
}
