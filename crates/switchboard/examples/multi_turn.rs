//! An agent that asks back. Between the question and the answer nothing runs: the task is a row that waits, for minutes
//! or for weeks, through restarts.

use switchboard::{Agent, AgentBuilder, AgentError, ServeError, Skill, Traits, Turn};

struct Booking;

impl Agent for Booking {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        match turn.number() {
            1 => turn.ask("Which city?").await?,
            _ => turn.answer(format!("Booked a room in {}.", turn.text())).await?,
        }
        Ok(())
    }

    // It only computes an answer, so it may be asked before its message is stored, and stored together with the answer.
    fn traits(&self) -> Traits {
        Traits::pure()
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let agent = AgentBuilder::new("Booking", Booking)
        .skill(Skill::new("book", "Book a room", "Books a hotel room").tag("travel").example("I need a room"));
    switchboard::serve(agent).durable("switchboard-data/booking.db").run().await
}
