//! What events add up to. [`Head`] is the bounded summary that decisions are made on: its size does not depend on how
//! long the task has run. [`Folded`] is the task that readers see; if a snapshot ever differs from the fold of the log,
//! the log is right.
//!
//! [`Restoration`] folds one artifact up to a checkpoint, so that a run can take back what an earlier run wrote after it.
//! A2A can replace and append but not cut, so followers are sent the older content anew: in one replacing update or, if
//! that would be too large, in one that replaces and others that append.

use std::sync::Arc;

use super::{Event, Inbound, WriteMode};
use crate::model::{
    AgentName, Artifact, ArtifactId, ContextId, Dialect, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp,
    content_bytes, push_exact,
};

/// Whether the record is a task yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Accepted, not yet a task: callers do not see it.
    Unborn,
    Live,
    /// Closed by a direct reply; never was a task.
    Replied,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub id: TaskId,
    pub context_id: ContextId,
    pub agent: AgentName,
    pub phase: Phase,
    pub state: TaskState,
    pub status_at: Timestamp,
    /// Grows with every commit.
    pub version: u64,
    /// The number of the last visible event.
    pub seq: u64,
    /// Turns accepted: how many messages have come in.
    pub turns: u32,
    /// The turn being worked on, or worked on last.
    pub turn: u32,
    /// Shared, because heads are copied at every step and this rarely changes.
    pub artifacts: Arc<[ArtifactHead]>,
    pub cancel_requested: bool,
    /// Whether a run is at work on the current turn, or ought to be.
    pub running: bool,
    /// Grows at every claim; a run may write only under the newest.
    pub fence: u64,
    /// How often the current turn has been tried: one more than the workers that died over it.
    pub attempt: u32,
    pub push_configs: u32,
    /// When the current turn must be over, however many attempts it takes, if its lifetime is limited at all.
    pub deadline: Option<Timestamp>,
}

/// What is known of an artifact without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactHead {
    pub id: ArtifactId,
    pub parts: u64,
    pub bytes: u64,
    /// The turn and attempt that wrote last.
    pub turn: u32,
    pub attempt: u32,
    /// The run that wrote last: the first write of a later run of the same turn replaces. 0 is a run before this was recorded;
    /// it is below every fence, so that it is an earlier run to all that come.
    pub fence: u64,
    /// What the last checkpoint of the current turn recorded, if there was one when the artifact was there.
    pub checkpoint: Option<AtCheckpoint>,
}

/// How far an artifact had come when its turn's last checkpoint was written. Its content then is the fold of its writes up
/// to `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtCheckpoint {
    pub parts: u64,
    pub bytes: u64,
    /// The task's last visible event at the checkpoint.
    pub seq: u64,
    /// Whether nothing has been written to the artifact since.
    pub unchanged: bool,
}

impl Head {
    /// The head of a record that does not exist yet.
    #[must_use]
    pub fn unopened(id: TaskId, context_id: ContextId, agent: AgentName) -> Self {
        Self {
            id,
            context_id,
            agent,
            phase: Phase::Unborn,
            state: TaskState::Submitted,
            status_at: Timestamp::default(),
            version: 0,
            seq: 0,
            turns: 0,
            turn: 0,
            artifacts: Arc::default(),
            cancel_requested: false,
            running: false,
            fence: 0,
            attempt: 0,
            push_configs: 0,
            deadline: None,
        }
    }

    /// Messages that wait for their turn.
    #[must_use]
    pub fn inbox(&self) -> u32 {
        self.turns - self.turn
    }

    /// Whether nothing about the record can change any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match self.phase {
            Phase::Unborn => false,
            Phase::Live => self.state.is_terminal(),
            Phase::Replied => true,
        }
    }

    /// Whether a blocking send may answer: terminal, or waiting for someone outside with nothing left to read.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self.phase {
            Phase::Unborn => false,
            Phase::Live => self.state.is_terminal() || (self.state.is_interrupted() && self.inbox() == 0),
            Phase::Replied => true,
        }
    }

    #[must_use]
    pub fn artifact(&self, id: &str) -> Option<&ArtifactHead> {
        self.artifacts.iter().find(|artifact| artifact.id.as_str() == id)
    }

    /// Applies one commit: every event, then one step of `version`.
    pub fn apply_commit(&mut self, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
        self.version += 1;
    }

    /// Applies one event, without ending the commit it belongs to.
    pub fn apply(&mut self, event: &Event) {
        if event.is_visible() {
            self.seq += 1;
        }
        match event {
            Event::Received { inbound, .. } => {
                self.turns = inbound.turn;
                self.turn = inbound.turn;
                self.attempt = 1;
                self.fence = 1;
                self.running = true;
            }
            Event::Opened { inbound, at, .. } => {
                self.phase = Phase::Live;
                self.turns = inbound.turn;
                self.turn = inbound.turn;
                self.attempt = self.attempt.max(1);
                self.fence = self.fence.max(1);
                self.running = true;
                self.state = TaskState::Submitted;
                self.status_at = *at;
            }
            Event::MessageAdded { inbound } => self.turns = inbound.turn,
            Event::TurnBegan { turn, fence } => {
                self.turn = *turn;
                self.fence = *fence;
                self.attempt = 1;
                self.running = true;
                self.forget_checkpoint();
            }
            Event::TurnEnded => self.running = false,
            Event::StatusChanged { state, at, .. } => {
                self.state = *state;
                self.status_at = *at;
                // A status of input-required ends the turn, unless the answer waits already. A status of auth-required
                // does not: the run may go on waiting for the authorization.
                if state.is_terminal() || (*state == TaskState::InputRequired && self.inbox() == 0) {
                    self.running = false;
                }
            }
            Event::ArtifactWritten { artifact, append, attempt, .. } => {
                let parts = artifact.parts.len() as u64;
                let bytes = content_bytes(&artifact.parts);
                let (turn, attempt, fence) = (self.turn, *attempt, self.fence);
                match self.artifacts.iter().position(|known| known.id == artifact.artifact_id) {
                    Some(place) => {
                        let known = &mut Arc::make_mut(&mut self.artifacts)[place];
                        if *append {
                            known.parts += parts;
                            known.bytes += bytes;
                        } else {
                            known.parts = parts;
                            known.bytes = bytes;
                        }
                        known.turn = turn;
                        known.attempt = attempt;
                        known.fence = fence;
                        if let Some(recorded) = &mut known.checkpoint {
                            recorded.unchanged = false;
                        }
                    }
                    None => {
                        let id = artifact.artifact_id.clone();
                        let new = ArtifactHead { id, parts, bytes, turn, attempt, fence, checkpoint: None };
                        self.artifacts = self.artifacts.iter().cloned().chain([new]).collect();
                    }
                }
            }
            Event::Replied { .. } => {
                self.phase = Phase::Replied;
                self.running = false;
            }
            Event::CancelRequested { .. } => self.cancel_requested = true,
            Event::Claimed { fence, attempt, .. } => {
                self.fence = *fence;
                self.attempt = *attempt;
            }
            Event::Noted { .. } => {}
            Event::Checkpoint { .. } => self.record_checkpoint(),
        }
    }

    /// Records how far the artifacts have come. One that an earlier run of this turn wrote to last keeps what was recorded
    /// before: what that run added is no part of what the run of this checkpoint has done.
    fn record_checkpoint(&mut self) {
        if self.artifacts.is_empty() {
            return;
        }
        let (turn, fence, seq) = (self.turn, self.fence, self.seq);
        for artifact in Arc::make_mut(&mut self.artifacts) {
            if artifact.turn != turn || artifact.fence == fence {
                let (parts, bytes) = (artifact.parts, artifact.bytes);
                artifact.checkpoint = Some(AtCheckpoint { parts, bytes, seq, unchanged: true });
            }
        }
    }

    /// A checkpoint is for the attempts of its own turn.
    fn forget_checkpoint(&mut self) {
        if self.artifacts.iter().any(|artifact| artifact.checkpoint.is_some()) {
            Arc::make_mut(&mut self.artifacts).iter_mut().for_each(|artifact| artifact.checkpoint = None);
        }
    }
}

/// A task and the little beside it that only its runs need.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    pub task: Arc<Task>,
    /// The turns that have not ended: the current one first, then the inbox.
    pub open_turns: Vec<Arc<Inbound>>,
    /// A direct reply, if that is how the record closed.
    pub reply: Option<Arc<Message>>,
    pub checkpoint: Option<Json>,
}

impl Folded {
    /// The fold of nothing.
    #[must_use]
    pub fn empty(id: TaskId, context_id: ContextId) -> Self {
        let status = TaskStatus { state: TaskState::Submitted, message: None, timestamp: Timestamp::default() };
        let task = Task {
            id,
            context_id,
            status,
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: None,
            created_at: Timestamp::default(),
            dialect: Dialect::V1_0,
        };
        Self { task: Arc::new(task), open_turns: Vec::new(), reply: None, checkpoint: None }
    }

    pub fn apply_all(&mut self, events: &[Event]) {
        for event in events {
            self.apply(event);
        }
    }

    pub fn apply(&mut self, event: &Event) {
        let task = Arc::make_mut(&mut self.task);
        match event {
            Event::Received { inbound, .. } => {
                push_exact(&mut task.history, inbound.message.clone());
                push_exact(&mut self.open_turns, inbound.clone());
            }
            Event::Opened { inbound, at, .. } => {
                task.status.timestamp = *at;
                task.created_at = *at;
                task.metadata.clone_from(&inbound.metadata);
                task.dialect = inbound.dialect;
                // A record that was received first already has its message.
                if task.history.is_empty() {
                    push_exact(&mut task.history, inbound.message.clone());
                    push_exact(&mut self.open_turns, inbound.clone());
                }
            }
            Event::MessageAdded { inbound } => {
                push_exact(&mut task.history, inbound.message.clone());
                push_exact(&mut self.open_turns, inbound.clone());
            }
            Event::TurnBegan { turn, .. } => {
                self.open_turns.retain(|open| open.turn >= *turn);
                self.checkpoint = None;
            }
            Event::StatusChanged { state, message, at, .. } => {
                task.take_status(TaskStatus { state: *state, message: message.clone(), timestamp: *at });
            }
            Event::ArtifactWritten { artifact, append, .. } => task.take_artifact(artifact, *append),
            Event::Noted { message } => push_exact(&mut task.history, message.clone()),
            Event::Replied { message } => self.reply = Some(message.clone()),
            Event::Checkpoint { value } => self.checkpoint = Some(value.clone()),
            Event::CancelRequested { .. } | Event::Claimed { .. } | Event::TurnEnded => {}
        }
    }
}

/// Collects the writes to one artifact, oldest first.
pub struct Restoration {
    id: ArtifactId,
    piece_bytes_max: u64,
    piece: Option<RestoredPiece>,
    piece_bytes: u64,
    /// Whether a piece has been given out that the next one extends.
    begun: bool,
}

/// Several older writes together, to be written again.
#[derive(Debug, PartialEq)]
pub struct RestoredPiece {
    pub artifact: Artifact,
    pub mode: WriteMode,
}

impl Restoration {
    /// Pieces weigh at most `piece_bytes_max`, unless a single write weighed more.
    #[must_use]
    pub fn new(id: ArtifactId, piece_bytes_max: u64) -> Self {
        Self { id, piece_bytes_max, piece: None, piece_bytes: 0, begun: false }
    }

    /// Takes the next write in, if it is one to this artifact. Gives back the piece before it once that is full.
    pub fn take(&mut self, written: &Artifact, append: bool) -> Option<RestoredPiece> {
        if written.artifact_id != self.id {
            return None;
        }
        if !append {
            // It replaced what came before. Pieces given out already are replaced by the next piece.
            self.piece = None;
            self.begun = false;
        }
        let bytes = written.weight();
        match &mut self.piece {
            Some(piece) if self.piece_bytes + bytes <= self.piece_bytes_max => {
                piece.artifact.append(written);
                self.piece_bytes += bytes;
                None
            }
            piece => {
                let full = piece.take();
                self.begun |= full.is_some();
                let mode = if self.begun { WriteMode::Append } else { WriteMode::Replace };
                *piece = Some(RestoredPiece { artifact: written.clone(), mode });
                self.piece_bytes = bytes;
                full
            }
        }
    }

    /// The last piece; none if there were no writes.
    #[must_use]
    pub fn finish(self) -> Option<RestoredPiece> {
        self.piece
    }
}
