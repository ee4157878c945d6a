//! How a task moves, rule by rule and over random histories. A [`Record`] plays the part of the store: it decides a
//! command, appends what came of it, and keeps head and fold beside the log.

mod artifacts;
mod cancel;
mod properties;
mod runs;
mod turns;
mod visibility;

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{Dialect, Json, Message, Part, Role, TaskState, Timestamp};

use super::{
    ArtifactWrite, Bounds, Command, Event, Folded, Head, Inbound, Opening, Refusal, Restoration, RestoredPiece,
    RunCommand, StatusWrite, TurnEnd, decide,
};

const BOUNDS: Bounds =
    Bounds { inbox_messages_max: 3, artifacts_max: 3, artifact_bytes_max: 100, write_bytes_max: 1_000 };

struct Record {
    head: Head,
    folded: Folded,
    /// Every commit with the head it was decided on.
    log: Vec<(Head, Vec<Event>)>,
    now_ms: i64,
}

impl Record {
    fn unopened() -> Self {
        let head = Head::unopened("t-1".into(), "c-1".into(), "agent".into());
        let folded = Folded::empty("t-1".into(), "c-1".into());
        Self { head, folded, log: Vec::new(), now_ms: 1_000 }
    }

    /// A task that has just been accepted.
    fn opened() -> Self {
        let mut record = Self::unopened();
        record.does(open(true));
        record
    }

    /// A record whose agent may still answer directly.
    fn received() -> Self {
        let mut record = Self::unopened();
        record.does(open(false));
        record
    }

    fn tries(&mut self, command: Command) -> Result<Vec<Event>, Refusal> {
        self.now_ms += 1_000;
        let events = decide(&self.head, command, &BOUNDS, Timestamp::from_ms(self.now_ms))?;
        if !events.is_empty() {
            self.takes(events.clone());
        }
        Ok(events)
    }

    /// Appends events as one commit.
    fn takes(&mut self, events: Vec<Event>) {
        let before = self.head.clone();
        self.head.apply_commit(&events);
        self.folded.apply_all(&events);
        self.log.push((before, events));
    }

    fn does(&mut self, command: Command) -> Vec<Event> {
        self.tries(command).expect("the command is allowed")
    }

    fn is_refused(&mut self, command: Command) -> Refusal {
        self.tries(command).expect_err("the command is not allowed")
    }

    /// A further message from the client.
    fn hears(&mut self, text: &str) -> Vec<Event> {
        let command = self.message(text);
        self.does(command)
    }

    fn message(&self, text: &str) -> Command {
        Command::AddMessage { inbound: inbound(self.head.turns + 1, text) }
    }

    /// A write by the run that is at work now.
    fn runs(&mut self, command: RunCommand) -> Vec<Event> {
        let command = self.by_run(command);
        self.does(command)
    }

    fn by_run(&self, command: RunCommand) -> Command {
        run_under(self.head.fence, command)
    }

    /// Brings an artifact back to what the last checkpoint recorded of it, as a run does before it goes on with it.
    fn restores(&mut self, id: &str) {
        let Some(to) = self.head.artifact(id).and_then(|artifact| artifact.checkpoint) else { return };
        let mut restoration = Restoration::new(id.into(), 300);
        let mut pieces: Vec<RestoredPiece> = Vec::new();
        let mut seq = 0;
        for event in self.log.iter().flat_map(|(_, events)| events).filter(|event| event.is_visible()) {
            seq += 1;
            match event {
                Event::ArtifactWritten { artifact, append, .. } if seq <= to.seq => {
                    pieces.extend(restoration.take(artifact, *append));
                }
                _ => {}
            }
        }
        for RestoredPiece { artifact, mode } in pieces.into_iter().chain(restoration.finish()) {
            let artifact = artifact.into();
            let write =
                ArtifactWrite { artifact, mode, last_chunk: false, metadata: None, checkpoint: None, completes: false };
            self.runs(RunCommand::Artifact(write));
        }
    }

    fn state(&self) -> TaskState {
        assert_eq!(self.head.state, self.folded.task.status.state);
        self.head.state
    }

    /// The texts of the conversation.
    fn history(&self) -> Vec<String> {
        self.folded.task.history.iter().map(|message| message.text()).collect()
    }

    fn artifact(&self, id: &str) -> String {
        self.folded.task.artifact(id).map(|artifact| artifact.text()).unwrap_or_default()
    }
}

fn open(born: bool) -> Command {
    Command::Open(Opening { inbound: inbound(1, "first"), context_id: "c-1".into(), born })
}

fn run_under(fence: u64, command: RunCommand) -> Command {
    Command::Run { fence, inbound: inbound(1, "first"), command }
}

fn inbound(turn: u32, text: &str) -> Arc<Inbound> {
    Arc::new(Inbound {
        turn,
        message: says(Role::User, text),
        dialect: Dialect::V1_0,
        metadata: (turn == 1).then(|| Json::from_trusted(r#"{"from":"first"}"#)),
        accepted_output_modes: Vec::new(),
        extensions: Vec::new(),
        trace: None,
    })
}

fn says(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message::new(role, format!("m-{text}"), vec![Part::text(text)]))
}

fn status(state: TaskState) -> RunCommand {
    RunCommand::Status(StatusWrite { state, message: None, metadata: None, checkpoint: None })
}

fn status_saying(state: TaskState, text: &str) -> RunCommand {
    RunCommand::Status(StatusWrite { state, message: Some(says(Role::Agent, text)), metadata: None, checkpoint: None })
}

fn returned() -> RunCommand {
    RunCommand::EndTurn(TurnEnd::Returned)
}

fn failed() -> RunCommand {
    RunCommand::EndTurn(TurnEnd::Failed { message: Some(says(Role::Agent, "broken")) })
}

fn is_agent_error(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Protocol(ProtocolError::InvalidAgentResponse { .. }))
}
