//! What can have happened to a task, and what it adds up to. Several events that happened together are one commit. Those that
//! the outside may see take a number (`seq`) and are shown as updates; the others are part of the record all the same. How a
//! stream was asked for decides after which state it ends.
//!
//! [`Head`] is the bounded summary of the events that decisions are made on: its size does not depend on how long the task
//! has run. [`Folded`] is the task that readers see; if a snapshot ever differs from the fold of the log, the log is right.
//! [`Restoration`] folds one artifact up to a checkpoint, so that a run can take back what an earlier run wrote after it. A2A
//! can replace and append but not cut, so followers are sent the older content anew: in one replacing update or, if that
//! would be too large, in one that replaces and others that append.

use std::sync::Arc;

use crate::model::redact::OWN_ANSWERS;
use crate::model::{
    AgentName, Artifact, ArtifactId, ArtifactUpdate, ContextId, Dialect, Json, Message, StatusUpdate, Task, TaskId,
    TaskState, TaskStatus, TaskView, Timestamp, TraceContext, Update, content_bytes, push_exact,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A message was accepted for an agent that may answer it directly; callers do not see a task yet. Internal.
    Received { inbound: Arc<Inbound>, context_id: ContextId },
    /// The task exists, submitted. Visible as the task itself.
    Opened { inbound: Arc<Inbound>, context_id: ContextId, at: Timestamp },
    /// A further message arrived and waits as the next turn. Internal.
    MessageAdded { inbound: Arc<Inbound> },
    /// Work began on the next waiting message, under a new fence. Internal; acceptance itself begins the first turn.
    TurnBegan { turn: u32, fence: u64 },
    /// The run ended without settling the task anew: it stays paused until the next message. Internal.
    TurnEnded,
    /// Visible.
    StatusChanged { state: TaskState, message: Option<Arc<Message>>, metadata: Option<Json>, at: Timestamp },
    /// Visible. `append` false replaces what the artifact held.
    ArtifactWritten { artifact: Arc<Artifact>, append: bool, last_chunk: bool, metadata: Option<Json>, attempt: u32 },
    /// A note of the agent is part of the conversation, in dialects that keep notes. Internal; the status that says it is
    /// visible.
    Noted { message: Arc<Message> },
    /// The agent answered directly: the record closes without ever having been a task. Internal.
    Replied { message: Arc<Message> },
    /// A caller asked for the task to be canceled. Internal.
    CancelRequested { metadata: Option<Json>, at: Timestamp },
    /// A worker took the task over. `attempt` is one higher if the worker before it died, and the same if that one had
    /// given the task back in order. Internal.
    Claimed { fence: u64, attempt: u32, at: Timestamp },
    /// Something the agent wants its next attempt to know. Internal.
    Checkpoint { value: Json },
}

impl Event {
    /// Whether the outside may see it, and so whether it takes a number.
    #[must_use]
    pub fn is_visible(&self) -> bool {
        match self {
            Self::Opened { .. } | Self::StatusChanged { .. } | Self::ArtifactWritten { .. } => true,
            Self::Received { .. }
            | Self::MessageAdded { .. }
            | Self::TurnBegan { .. }
            | Self::TurnEnded
            | Self::Noted { .. }
            | Self::Replied { .. }
            | Self::CancelRequested { .. }
            | Self::Claimed { .. }
            | Self::Checkpoint { .. } => false,
        }
    }
}

/// Whether a reader must fold this commit, made in state `before`, to know the task. A status that a later one replaces leaves no trace unless
/// it asked something (its message moves to history when the task goes on), so a reader that has the newest status from
/// elsewhere may skip commits of mere progress; a task with a million progress notes is still read quickly.
#[must_use]
pub fn is_needed_to_fold(before: TaskState, events: &[Event]) -> bool {
    events.iter().any(|event| match event {
        Event::StatusChanged { state, message, metadata, .. } => {
            before.is_interrupted() || (state.is_interrupted() && message.is_some()) || answer_of(metadata).is_some()
        }
        Event::Claimed { .. } | Event::CancelRequested { .. } | Event::TurnEnded => false,
        Event::Received { .. }
        | Event::Opened { .. }
        | Event::MessageAdded { .. }
        | Event::TurnBegan { .. }
        | Event::ArtifactWritten { .. }
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::Checkpoint { .. } => true,
    })
}

/// What a status says about its task that stays in the metadata of the task.
fn answer_of(metadata: &Option<Json>) -> Option<Json> {
    metadata.as_ref()?.only(&OWN_ANSWERS)
}

/// A message as it came in, with what the request said about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// The number of the turn it begins; 1 for the message that opened the task.
    pub turn: u32,
    pub message: Arc<Message>,
    /// The dialect it was said in.
    pub dialect: Dialect,
    pub metadata: Option<Json>,
    pub accepted_output_modes: Vec<String>,
    pub extensions: Vec<String>,
    /// The trace that it came in; the work on it belongs to the same.
    pub trace: Option<Arc<TraceContext>>,
}

/// The visible updates of one commit with their numbers, the first of which is `first_seq`.
pub fn updates<'a>(
    task_id: &'a TaskId,
    context_id: &'a ContextId,
    first_seq: u64,
    events: &'a [Event],
) -> impl Iterator<Item = (u64, Update)> + 'a {
    (first_seq..).zip(events.iter().filter_map(move |event| update(task_id, context_id, event)))
}

fn update(task_id: &TaskId, context_id: &ContextId, event: &Event) -> Option<Update> {
    match event {
        Event::Opened { .. } => {
            let mut opened = Folded::empty(task_id.clone(), context_id.clone());
            opened.apply(event);
            Some(Update::Task(TaskView::whole(opened.task)))
        }
        Event::StatusChanged { state, message, metadata, at } => Some(Update::Status(StatusUpdate {
            task_id: task_id.clone(),
            context_id: context_id.clone(),
            status: TaskStatus { state: *state, message: message.clone(), timestamp: *at },
            metadata: metadata.clone(),
        })),
        Event::ArtifactWritten { artifact, append, last_chunk, metadata, .. } => {
            Some(Update::Artifact(ArtifactUpdate {
                task_id: task_id.clone(),
                context_id: context_id.clone(),
                artifact: artifact.clone(),
                append: *append,
                last_chunk: *last_chunk,
                metadata: metadata.clone(),
            }))
        }
        Event::Received { .. }
        | Event::MessageAdded { .. }
        | Event::TurnBegan { .. }
        | Event::TurnEnded
        | Event::Noted { .. }
        | Event::Replied { .. }
        | Event::CancelRequested { .. }
        | Event::Claimed { .. }
        | Event::Checkpoint { .. } => None,
    }
}

/// How a stream was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamKind {
    /// By sending a message.
    Send,
    /// By subscribing to a task.
    Subscribe,
}

/// What a stream does after it has shown a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    Follow,
    Close,
}

/// Whether a stream goes on after showing `state`. Spec 3.1.2 closes streams at terminal states only; 11.7 says
/// terminal or interrupted. A send's stream closes at input-required, since nothing more can come before the next
/// message; it stays open at auth-required, since credentials may arrive out of band (7.6.1). A subscriber stays.
#[must_use]
pub fn after_state(kind: StreamKind, state: TaskState) -> StreamEnd {
    match (kind, state) {
        (_, TaskState::Completed | TaskState::Failed | TaskState::Canceled | TaskState::Rejected)
        | (StreamKind::Send, TaskState::InputRequired) => StreamEnd::Close,
        (StreamKind::Subscribe, TaskState::InputRequired)
        | (_, TaskState::Submitted | TaskState::Working | TaskState::AuthRequired | TaskState::Unspecified) => {
            StreamEnd::Follow
        }
    }
}

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
    /// The last checkpoint of the turns before the current one.
    pub earlier_checkpoint: Option<Json>,
    /// Whether older messages are missing in the history, and waiting turns have no contents, because a reader asked for no more.
    /// Such a fold is for that reader alone.
    pub is_shortened: bool,
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
        Self {
            task: Arc::new(task),
            open_turns: Vec::new(),
            reply: None,
            checkpoint: None,
            earlier_checkpoint: None,
            is_shortened: false,
        }
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
                // Answers of the server cannot be put there by a caller.
                let kept = inbound.metadata.as_ref().and_then(|metadata| metadata.without(&OWN_ANSWERS));
                task.metadata = kept.or_else(|| inbound.metadata.clone());
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
                self.earlier_checkpoint = self.checkpoint.take().or(self.earlier_checkpoint.take());
            }
            Event::StatusChanged { state, message, metadata, at } => {
                if let Some(answer) = answer_of(metadata) {
                    // What was said first stays: another agent may say something under the same key when its status is passed on.
                    let before = task.metadata.take();
                    task.metadata = Some(before.map_or_else(|| answer.clone(), |before| answer.merged_with(&before)));
                }
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

/// What a write does to what its artifact holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    Replace,
    /// Extends the artifact. If an earlier run of the same turn wrote to it last, the write replaces instead.
    Append,
    /// Extends what the turn's last checkpoint recorded of the artifact; if it recorded nothing, the write replaces. Refused
    /// while the artifact holds anything else: the run restores it first, see [`super::Restoration`].
    Resume,
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
