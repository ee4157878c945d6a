//! What can be asked of a task (by a caller, by the run that works on it, or by the engine itself), and what a command
//! does to it. Pure: same head, command and time give the same events. Does not know how events are stored or who is
//! listening.

use std::sync::Arc;

use super::event::{Event, Head, Inbound, Phase, WriteMode};
use crate::error::ProtocolError;
use crate::model::{Artifact, ContextId, Json, Message, Part, TaskState, Timestamp, content_bytes, outweighs};

#[derive(Clone, Debug)]
pub enum Command {
    /// Accept the first message of a record.
    Open(Opening),
    /// Make a task of a record that has waited for a direct reply long enough.
    Birth {
        inbound: Arc<Inbound>,
    },
    /// Accept a further message. Its turn number is the head's `turns + 1`.
    AddMessage {
        inbound: Arc<Inbound>,
    },
    RequestCancel {
        metadata: Option<Json>,
    },
    /// A write by the run that holds `fence`.
    Run {
        fence: u64,
        inbound: Arc<Inbound>,
        command: RunCommand,
    },
    /// End the task on behalf of a run that did not end in time, and fence that run off. `inbound` is the message the run
    /// was to answer.
    Revoke {
        inbound: Arc<Inbound>,
        state: TaskState,
        message: Option<Arc<Message>>,
    },
    /// Fail a task that has paused for too long in this turn. No effect if it went on or ended meanwhile.
    EndPause {
        turn: u32,
        message: Arc<Message>,
    },
    /// Give the current turn to a new worker. It is another attempt if the one before was `interrupted`, and none more if
    /// the turn was given back in order or had not begun.
    Claim {
        interrupted: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Opening {
    pub inbound: Arc<Inbound>,
    pub context_id: ContextId,
    /// False for an agent that may answer directly: then the record is not a task yet.
    pub born: bool,
}

/// What a run can do to its task.
#[derive(Clone, Debug)]
pub enum RunCommand {
    Status(StatusWrite),
    Artifact(ArtifactWrite),
    Reply {
        message: Arc<Message>,
    },
    Checkpoint {
        value: Json,
    },
    EndTurn(TurnEnd),
    /// Make a task of a record that might still be answered directly.
    BecomeTask,
    /// All of these in one commit, each decided on what the ones before it leave. If one is refused, all are.
    Several(Vec<RunCommand>),
}

#[derive(Clone, Debug)]
pub struct ArtifactWrite {
    pub artifact: Arc<Artifact>,
    pub mode: WriteMode,
    pub last_chunk: bool,
    pub metadata: Option<Json>,
    /// A checkpoint that is recorded in the same commit as the write: a later attempt finds both or neither.
    pub checkpoint: Option<Json>,
    /// Completes the task in the same commit, if the end of the turn would. If a message waits, a cancel was asked for or the
    /// task is paused, the turn goes on until its agent returns.
    pub completes: bool,
}

#[derive(Clone, Debug)]
pub struct StatusWrite {
    pub state: TaskState,
    pub message: Option<Arc<Message>>,
    pub metadata: Option<Json>,
    /// A checkpoint that is recorded in the same commit as the status: a later attempt finds both or neither.
    pub checkpoint: Option<Json>,
}

/// How the agent's function came back.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// It returned: the task is completed unless it said otherwise.
    Returned,
    /// It failed, with a reason for the client.
    Failed { message: Option<Arc<Message>> },
}

/// How much one task may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub inbox_messages_max: u32,
    pub artifacts_max: usize,
    pub artifact_bytes_max: u64,
    /// What one write of a run may weigh, since it goes out as one update.
    pub write_bytes_max: u64,
}

/// Why a command has no effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The caller is told.
    Protocol(ProtocolError),
    /// The run has been replaced; what it does no longer counts.
    Fenced,
    /// The task has ended; a late write by its run is dropped.
    Closed { state: TaskState },
}

impl From<ProtocolError> for Refusal {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

/// The events a command causes. No events means: nothing to do, and that is fine.
///
/// # Errors
/// When the command may not be carried out on this task.
pub fn decide(head: &Head, command: Command, bounds: &Bounds, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut events = Vec::new();
    decide_onto(&mut events, head, command, bounds, now)?;
    Ok(events)
}

/// As [`decide`], but puts the events behind others. A refusal leaves those as they were.
///
/// # Errors
/// As [`decide`].
pub fn decide_onto(
    events: &mut Vec<Event>,
    head: &Head,
    command: Command,
    bounds: &Bounds,
    now: Timestamp,
) -> Result<(), Refusal> {
    match command {
        Command::Open(opening) => open(events, opening, now),
        Command::Birth { inbound } => birth(events, head, &inbound, now),
        Command::AddMessage { inbound } => add_message(events, head, inbound, bounds, now)?,
        Command::RequestCancel { metadata } => request_cancel(events, head, metadata, now)?,
        Command::Run { fence, inbound, command } => {
            if fence != head.fence {
                return Err(Refusal::Fenced);
            }
            run(events, head, &inbound, command, bounds, now)?;
        }
        Command::Revoke { inbound, state, message } => {
            if head.is_closed() {
                return Err(Refusal::Closed { state: head.state });
            }
            birth(events, head, &inbound, now);
            events.push(Event::Claimed { fence: head.fence + 1, attempt: head.attempt, at: now });
            events.push(Event::StatusChanged { state, message, metadata: None, at: now });
        }
        Command::EndPause { turn, message } => {
            if head.phase != Phase::Live || !head.state.is_interrupted() || head.turn != turn || head.inbox() > 0 {
                return Ok(());
            }
            // A run that waits for an authorization must not write any more.
            if head.running {
                events.push(Event::Claimed { fence: head.fence + 1, attempt: head.attempt, at: now });
            }
            events.push(Event::StatusChanged {
                state: TaskState::Failed,
                message: Some(message),
                metadata: None,
                at: now,
            });
        }
        Command::Claim { interrupted } => {
            if head.is_closed() || !head.running {
                return Err(Refusal::Closed { state: head.state });
            }
            let attempt = head.attempt + u32::from(interrupted);
            events.push(Event::Claimed { fence: head.fence + 1, attempt, at: now });
        }
    }
    Ok(())
}

fn open(events: &mut Vec<Event>, opening: Opening, now: Timestamp) {
    let Opening { inbound, context_id, born } = opening;
    events.push(match born {
        true => Event::Opened { inbound, context_id, at: now },
        false => Event::Received { inbound, context_id },
    });
}

fn birth(events: &mut Vec<Event>, head: &Head, inbound: &Arc<Inbound>, now: Timestamp) {
    match head.phase {
        Phase::Unborn => {
            events.push(Event::Opened { inbound: inbound.clone(), context_id: head.context_id.clone(), at: now });
        }
        Phase::Live | Phase::Replied => {}
    }
}

fn add_message(
    events: &mut Vec<Event>,
    head: &Head,
    inbound: Arc<Inbound>,
    bounds: &Bounds,
    now: Timestamp,
) -> Result<(), Refusal> {
    if head.phase != Phase::Live {
        return Err(ProtocolError::task_not_found(&head.id).into());
    }
    if head.state.is_terminal() {
        let reason = format!("Task {} is {} and takes no more messages", head.id, head.state.word());
        return Err(ProtocolError::unsupported(reason).into());
    }
    if head.inbox() >= bounds.inbox_messages_max {
        let reason = format!("task {} has {} unread messages, the most it keeps", head.id, head.inbox());
        return Err(ProtocolError::Unavailable { reason, retry_after_s: 5 }.into());
    }
    debug_assert_eq!(inbound.turn, head.turns + 1, "turns are numbered as they come");
    let added = Event::MessageAdded { inbound };
    if head.running {
        events.push(added);
        return Ok(());
    }
    // The pause ends first: the agent's question goes into history, and the answer behind it.
    end_pause(events, head, now);
    events.push(added);
    // The next turn in order, which is not this message's if an earlier one still waits.
    events.push(next_turn(head));
    Ok(())
}

/// Takes a task out of its pause, if it is in one.
fn end_pause(events: &mut Vec<Event>, head: &Head, now: Timestamp) {
    if head.state.is_interrupted() {
        events.push(Event::StatusChanged { state: TaskState::Submitted, message: None, metadata: None, at: now });
    }
}

fn next_turn(head: &Head) -> Event {
    Event::TurnBegan { turn: head.turn + 1, fence: head.fence + 1 }
}

fn request_cancel(events: &mut Vec<Event>, head: &Head, metadata: Option<Json>, now: Timestamp) -> Result<(), Refusal> {
    if head.phase != Phase::Live {
        return Err(ProtocolError::task_not_found(&head.id).into());
    }
    match head.state {
        // Spec 3.3.1 calls cancel idempotent, so a canceled task is answered with the task.
        TaskState::Canceled => return Ok(()),
        TaskState::Completed | TaskState::Failed | TaskState::Rejected => {
            return Err(ProtocolError::TaskNotCancelable { id: head.id.clone(), state: head.state }.into());
        }
        TaskState::Submitted
        | TaskState::Working
        | TaskState::InputRequired
        | TaskState::AuthRequired
        | TaskState::Unspecified => {}
    }
    if !head.cancel_requested {
        events.push(Event::CancelRequested { metadata, at: now });
    }
    if !head.running {
        events.push(Event::StatusChanged { state: TaskState::Canceled, message: None, metadata: None, at: now });
    }
    Ok(())
}

fn run(
    events: &mut Vec<Event>,
    head: &Head,
    inbound: &Arc<Inbound>,
    command: RunCommand,
    bounds: &Bounds,
    now: Timestamp,
) -> Result<(), Refusal> {
    if head.is_closed() {
        return match command {
            RunCommand::EndTurn(_) => Ok(()),
            _ => Err(Refusal::Closed { state: head.state }),
        };
    }
    match command {
        RunCommand::Status(mut write) => {
            check_write("a status", write.message.as_ref().map_or(&[], |message| &message.parts), bounds)?;
            let checkpoint = write.checkpoint.take();
            let status = status(head, write, now)?;
            birth(events, head, inbound, now);
            // Before the status, which may end the turn: a checkpoint belongs to a turn that is open.
            events.extend(checkpoint.map(|value| Event::Checkpoint { value }));
            let note = note(head, inbound, &status);
            events.push(status);
            events.extend(note);
        }
        RunCommand::Artifact(ArtifactWrite { artifact, mode, last_chunk, metadata, checkpoint, completes }) => {
            let append = check_artifact(head, &artifact, mode, bounds)?;
            birth(events, head, inbound, now);
            events.push(Event::ArtifactWritten { artifact, append, last_chunk, metadata, attempt: head.attempt });
            events.extend(checkpoint.map(|value| Event::Checkpoint { value }));
            if completes && would_complete(head) {
                events.push(completed(now));
            } else {
                events.extend(touch(head, inbound, now));
            }
        }
        RunCommand::Reply { message } => match head.phase {
            Phase::Unborn => {
                check_write("a direct reply", &message.parts, bounds)?;
                events.push(Event::Replied { message });
            }
            Phase::Live | Phase::Replied => return Err(agent_error("a direct reply after the task was opened")),
        },
        RunCommand::Checkpoint { value } => events.push(Event::Checkpoint { value }),
        RunCommand::EndTurn(end) => end_turn(events, head, inbound, end, now),
        RunCommand::BecomeTask => birth(events, head, inbound, now),
        RunCommand::Several(commands) => several(events, head, inbound, commands, bounds, now)?,
    }
    Ok(())
}

fn several(
    events: &mut Vec<Event>,
    head: &Head,
    inbound: &Arc<Inbound>,
    commands: Vec<RunCommand>,
    bounds: &Bounds,
    now: Timestamp,
) -> Result<(), Refusal> {
    let (before, mut head) = (events.len(), head.clone());
    for command in commands {
        let decided = events.len();
        if let Err(refusal) = run(events, &head, inbound, command, bounds, now) {
            events.truncate(before);
            return Err(refusal);
        }
        events[decided..].iter().for_each(|event| head.apply(event));
    }
    Ok(())
}

/// Notes of a task are kept up to this many updates. A conversation is read whole, so it must not grow for ever.
const NOTES_KEPT_SEQ_MAX: u64 = 1_000;

/// The note that a status says, where the dialect of the message keeps notes.
fn note(head: &Head, inbound: &Inbound, status: &Event) -> Option<Event> {
    match status {
        Event::StatusChanged { state: TaskState::Working, message: Some(message), .. }
            if inbound.dialect.rules().keeps_notes && head.seq < NOTES_KEPT_SEQ_MAX =>
        {
            Some(Event::Noted { message: message.clone() })
        }
        _ => None,
    }
}

/// How much older than a write a status may stay in dialects that tell progress by its time.
const TOUCH_MS: i64 = 100;

/// The status that a write moves on with it, where the dialect of the message tells progress by its time.
fn touch(head: &Head, inbound: &Inbound, now: Timestamp) -> Option<Event> {
    let is_due = match head.state {
        TaskState::Submitted => true,
        TaskState::Working => now.ms_since(head.status_at) >= TOUCH_MS,
        _ => false,
    };
    let working = Event::StatusChanged { state: TaskState::Working, message: None, metadata: None, at: now };
    (is_due && inbound.dialect.rules().keeps_notes).then_some(working)
}

fn agent_error(reason: impl Into<String>) -> Refusal {
    Refusal::Protocol(ProtocolError::InvalidAgentResponse { reason: reason.into() })
}

fn status(head: &Head, write: StatusWrite, now: Timestamp) -> Result<Event, Refusal> {
    let StatusWrite { state, message, metadata, checkpoint: _ } = write;
    if let TaskState::Submitted | TaskState::Unspecified = state {
        return Err(agent_error(format!("a run cannot set its task to {}", state.word())));
    }
    if head.phase == Phase::Live && !head.running {
        return Err(agent_error(format!("a status after the turn ended in {}", head.state.word())));
    }
    // Completed is written only with an empty inbox: while a message waits, the turn ends and the next one begins, and
    // what the agent had to say at the end is shown as progress.
    let state = if state == TaskState::Completed && head.inbox() > 0 { TaskState::Working } else { state };
    Ok(Event::StatusChanged { state, message, metadata, at: now })
}

/// One write is one update, so its size is limited.
fn check_write(what: &str, parts: &[Part], bounds: &Bounds) -> Result<(), Refusal> {
    if !outweighs(parts, bounds.write_bytes_max) {
        return Ok(());
    }
    let max = bounds.write_bytes_max;
    Err(agent_error(format!("{what} of more than {max} bytes; write a large artifact in chunks, and point to it")))
}

/// Checks a write and says whether it appends. The first write of a run replaces what an earlier run of the same turn left,
/// so that nothing is doubled, unless the run goes on from exactly what the turn's last checkpoint recorded.
fn check_artifact(head: &Head, artifact: &Artifact, mode: WriteMode, bounds: &Bounds) -> Result<bool, Refusal> {
    if head.phase == Phase::Live && !head.running {
        return Err(agent_error(format!("an artifact after the turn ended in {}", head.state.word())));
    }
    if artifact.parts.is_empty() {
        return Err(agent_error(format!("artifact {} has no parts", artifact.artifact_id)));
    }
    check_write("an artifact write", &artifact.parts, bounds)?;
    let known = head.artifact(artifact.artifact_id.as_str());
    let append = match (mode, known) {
        (WriteMode::Replace, _) | (WriteMode::Resume, None) => false,
        (WriteMode::Append, Some(known)) => known.turn != head.turn || known.fence == head.fence,
        (WriteMode::Append, None) if head.attempt <= 1 => {
            return Err(agent_error(format!("a chunk for artifact {}, which was never begun", artifact.artifact_id)));
        }
        (WriteMode::Append, None) => false,
        (WriteMode::Resume, Some(known)) => match known.checkpoint {
            Some(recorded) if !recorded.unchanged => {
                let id = &artifact.artifact_id;
                return Err(agent_error(format!(
                    "artifact {id} was written to after the checkpoint; restore it first"
                )));
            }
            Some(_) => true,
            None => false,
        },
    };
    if known.is_none() && head.artifacts.len() >= bounds.artifacts_max {
        return Err(agent_error(format!("more than {} artifacts", bounds.artifacts_max)));
    }
    let written: u64 = content_bytes(&artifact.parts);
    let before = if append { known.map_or(0, |known| known.bytes) } else { 0 };
    if before + written > bounds.artifact_bytes_max {
        let (id, max) = (&artifact.artifact_id, bounds.artifact_bytes_max);
        return Err(agent_error(format!("artifact {id} grew over {max} bytes")));
    }
    Ok(append)
}

/// Whether the task is completed when its agent returns now.
fn would_complete(head: &Head) -> bool {
    let paused = head.phase == Phase::Live && head.state.is_interrupted();
    !head.cancel_requested && head.inbox() == 0 && !paused
}

fn completed(now: Timestamp) -> Event {
    Event::StatusChanged { state: TaskState::Completed, message: None, metadata: None, at: now }
}

fn end_turn(events: &mut Vec<Event>, head: &Head, inbound: &Arc<Inbound>, end: TurnEnd, now: Timestamp) {
    birth(events, head, inbound, now);
    let status = |state, message| Event::StatusChanged { state, message, metadata: None, at: now };
    let paused = head.phase == Phase::Live && head.state.is_interrupted();
    if head.cancel_requested {
        events.push(status(TaskState::Canceled, None));
        return;
    }
    match end {
        TurnEnd::Failed { message } => events.push(status(TaskState::Failed, message)),
        TurnEnd::Returned if head.inbox() > 0 => {
            end_pause(events, head, now);
            events.push(next_turn(head));
        }
        TurnEnd::Returned if paused && head.running => events.push(Event::TurnEnded),
        TurnEnd::Returned if paused => {}
        TurnEnd::Returned => events.push(completed(now)),
    }
}
