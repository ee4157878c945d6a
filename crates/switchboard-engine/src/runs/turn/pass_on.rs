//! Passing on what another agent does with a task of its own: each of its updates becomes one of this task, in the same commit as
//! a checkpoint. After a crash the next attempt therefore knows exactly which updates were passed on.

use std::sync::Arc;

use serde::Serialize;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{ArtifactWrite, Phase, RunCommand, StatusWrite, WriteMode};
use switchboard_core::model::{ArtifactId, ArtifactUpdate, Message, StatusUpdate, TaskState};

use super::Turn;
use super::writes::checkpoint_json;
use crate::commit::WriteError;
use crate::runs::TurnError;

impl Turn {
    /// Passes on a status of another agent's task, and writes a [checkpoint](Turn::checkpoint) in the same commit: the next attempt
    /// finds both or neither. State, message and metadata stay as they are; the ids of task and context become those of this
    /// task, and its time is now. `Submitted` has no meaning here and is refused. After a state that ends or pauses the
    /// task, return.
    ///
    /// ```no_run
    /// # use switchboard_core::model::Update;
    /// # use switchboard_engine::runs::{AgentError, Turn};
    /// /// Passes on what came from elsewhere, numbered.
    /// async fn pass(turn: &Turn, number: u64, update: Update) -> Result<(), AgentError> {
    ///     match update {
    ///         Update::Status(update) => turn.pass_on_status(update, &number).await?,
    ///         Update::Artifact(update) => turn.pass_on_artifact(update, &number).await?,
    ///         Update::Message(message) => turn.pass_on_reply((*message).clone()).await?,
    ///         Update::Task(_) => {}
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Turn::status`] and [`Turn::checkpoint`].
    pub async fn pass_on_status(
        &self,
        update: StatusUpdate,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        let checkpoint = checkpoint_json(checkpoint)?;
        self.check_checkpoint(&checkpoint)?;
        let StatusUpdate { status, metadata, .. } = update;
        let state = status.state;
        let message = status.message.map(|message| Arc::new(self.as_own(Arc::unwrap_or_clone(message))));
        let write = StatusWrite { state, message, metadata, checkpoint: Some(checkpoint) };
        self.write(RunCommand::Status(write)).await?;
        self.work_time().note(state);
        Ok(())
    }

    /// Passes on a write to an artifact of another agent's task, and writes a [checkpoint](Turn::checkpoint) in the same commit. The
    /// artifact keeps its id. A chunk that is appended extends what this task holds of the artifact, whichever turn or attempt
    /// wrote that, and begins the artifact if there is none. Every write of a turn to the artifact must be passed on in this
    /// way: what an attempt that died wrote without a checkpoint is taken back first.
    ///
    /// # Errors
    /// As [`Turn::artifact`] and [`Turn::checkpoint`].
    pub async fn pass_on_artifact(
        &self,
        update: ArtifactUpdate,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        let checkpoint = checkpoint_json(checkpoint)?;
        self.check_checkpoint(&checkpoint)?;
        let ArtifactUpdate { artifact, append, last_chunk, metadata, .. } = update;
        let id = &artifact.artifact_id;
        let is_of_earlier_turn =
            || self.with_head(|head| head.artifact(id.as_str()).is_some_and(|known| known.turn != head.turn));
        let mode = match append {
            false => WriteMode::Replace,
            true if is_of_earlier_turn() => WriteMode::Append,
            // Boxed, because few runs need it.
            true => Box::pin(self.resume_artifact(id)).await?,
        };
        let checkpoint = Some(checkpoint);
        let write = ArtifactWrite { artifact, mode, last_chunk, metadata, checkpoint, completes: false };
        self.write(RunCommand::Artifact(write)).await
    }

    /// Passes on the direct answer of another agent. If this turn has a task already, because the answer took long or the agent
    /// never answers directly, the task is completed with the message instead.
    ///
    /// # Errors
    /// As [`Turn::reply`] and [`Turn::complete`].
    pub async fn pass_on_reply(&self, message: Message) -> Result<(), TurnError> {
        let message = self.as_own(message);
        if self.with_head(|head| head.phase) == Phase::Unborn {
            let reply = Arc::new(Message { task_id: None, ..message.clone() });
            match self.write(RunCommand::Reply { message: reply }).await {
                // The record became a task in the meantime.
                Err(TurnError::Refused(ProtocolError::InvalidAgentResponse { .. }))
                    if self.with_head(|head| head.phase) == Phase::Live => {}
                written => return written,
            }
        }
        let (state, message) = (TaskState::Completed, Some(Arc::new(message)));
        self.write(RunCommand::Status(StatusWrite { state, message, metadata: None, checkpoint: None })).await
    }

    /// How much the task holds of an artifact now, earlier turns and attempts included: the number of its parts, and the bytes of
    /// their content ([`Part::content_bytes`](switchboard_core::model::Part::content_bytes)). None if there is no such artifact. By it
    /// an agent that sees a snapshot of another agent's task knows what of it was passed on.
    #[must_use]
    pub fn artifact_size(&self, id: &ArtifactId) -> Option<(u64, u64)> {
        self.with_head(|head| head.artifact(id.as_str()).map(|known| (known.parts, known.bytes)))
    }

    /// How many bytes of JSON the parts of one write may take, about. A larger artifact is written in chunks.
    #[must_use]
    pub fn write_bytes_max(&self) -> u64 {
        self.engine().limits.reply_bytes_max
    }

    /// Whether the next message of the task waits for this turn to end. An agent that waits for something outside, such as an
    /// authorization, returns then. The store is asked, so this is nothing to do in a tight loop.
    ///
    /// # Errors
    /// When the store cannot be read, or the task is gone.
    pub async fn has_next_message(&self) -> Result<bool, TurnError> {
        match self.engine().reload(self.record()).await {
            Ok(()) => Ok(self.with_head(|head| head.inbox() > 0)),
            Err(WriteError::Refused(_) | WriteError::Duplicate(_)) => Err(TurnError::Stopped),
            // Reading stores nothing, so no limit of storage is met.
            Err(WriteError::Failed(_) | WriteError::OverStorage(_)) => Err(TurnError::Unavailable),
        }
    }

    /// A message of another agent as one of this task. The tasks that it refers to are unknown here.
    fn as_own(&self, mut message: Message) -> Message {
        let record = self.record();
        message.context_id = Some(record.context_id.clone());
        message.task_id = Some(record.id.clone());
        message.reference_task_ids.clear();
        message
    }
}
