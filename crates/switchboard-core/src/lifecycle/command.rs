//! What can be asked of a task: by a caller, by the run that works on it, or by the engine itself.

use std::sync::Arc;

use crate::model::{Artifact, ContextId, Json, Message, TaskState};

use super::Inbound;

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
    Reply { message: Arc<Message> },
    Checkpoint { value: Json },
    EndTurn(TurnEnd),
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

#[derive(Clone, Debug)]
pub struct StatusWrite {
    pub state: TaskState,
    pub message: Option<Arc<Message>>,
    pub metadata: Option<Json>,
}

/// How the agent's function came back.
#[derive(Clone, Debug)]
pub enum TurnEnd {
    /// It returned: the task is completed unless it said otherwise.
    Returned,
    /// It failed, with a reason for the client.
    Failed { message: Option<Arc<Message>> },
}
