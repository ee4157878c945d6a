//! The agent of the simulation: does what the message says, slowly, and not always well.

use std::time::Duration;

use switchboard_engine::runs::{Agent, AgentError, Turn};

pub(super) struct Puppet;

/// What a chunk of an answer says.
pub(super) fn chunk(number: u64) -> String {
    format!("[{number}]")
}

/// The whole answer to `chunks N`.
pub(super) fn answer(chunks: u64) -> String {
    (1..=chunks).map(chunk).collect()
}

impl Agent for Puppet {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let text = turn.text();
        let mut words = text.split(' ');
        let (verb, number) = (words.next().unwrap_or_default(), words.next().and_then(|n| n.parse().ok()).unwrap_or(1));
        match verb {
            "chunks" => {
                let mut writer = turn.artifact_writer();
                for n in 1..=number {
                    writer.text(chunk(n)).await?;
                    tokio::time::sleep(Duration::from_millis(5 * (n % 4))).await;
                }
            }
            "slow" => {
                for step in 0..number {
                    turn.working(format!("step {step}")).await?;
                    tokio::select! {
                        () = turn.cancelled() => return Ok(()),
                        () = tokio::time::sleep(Duration::from_millis(700)) => {}
                    }
                }
                turn.answer("slow done").await?;
            }
            // Does not listen to cancel; its late write must not count.
            "stubborn" => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                turn.answer("too late").await?;
            }
            "ask" if turn.number() == 1 => turn.ask("what?").await?,
            "fail" => return Err(AgentError::told("as told")),
            "panic" => panic!("as told"),
            _ => turn.answer(text).await?,
        }
        Ok(())
    }
}
