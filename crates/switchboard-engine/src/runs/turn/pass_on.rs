//! Passing on what another agent does with a task of its own: its updates become updates of this task, in the same commit as
//! a checkpoint. After a crash the next attempt therefore knows exactly which updates were passed on.

use std::sync::Arc;

use serde::Serialize;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{ArtifactWrite, Phase, RunCommand, StatusWrite, WriteMode};
use switchboard_core::model::{ArtifactId, ArtifactUpdate, Message, StatusUpdate, TaskState};

use super::Turn;
use super::writes::checkpoint_json;
use crate::commit::WriteError;
use crate::runs::agent_error::TurnError;

/// An update of another agent's task that is [passed on](Turn::pass_on).
#[derive(Clone, Debug)]
pub enum PassedOn {
    /// A status. `Submitted` has no meaning here and is refused. After a state that ends or pauses the task, return.
    Status(StatusUpdate),
    /// A write to an artifact, which keeps its id. A chunk that is appended extends what this task holds of the artifact,
    /// whichever turn or attempt wrote that, and begins the artifact if there is none. Every write of a turn to the artifact must
    /// be passed on: what an attempt that died wrote without a checkpoint is taken back first.
    Artifact(ArtifactUpdate),
}

impl Turn {
    /// Passes on updates of another agent's task, and writes a [checkpoint](Turn::checkpoint), all in one commit: the next attempt
    /// finds everything or nothing. States, messages, artifacts and metadata stay as they are; the ids of task and context become
    /// those of this task, and the time is now. Without updates the other agent has begun a task, and has not said more: then this
    /// turn is one of a task, too, and is not answered directly any more.
    ///
    /// ```no_run
    /// # use switchboard_core::model::Update;
    /// # use switchboard_engine::runs::{AgentError, PassedOn, Turn};
    /// /// Passes on what came from elsewhere, numbered.
    /// async fn pass(turn: &Turn, number: u64, update: Update) -> Result<(), AgentError> {
    ///     match update {
    ///         Update::Status(update) => turn.pass_on(vec![PassedOn::Status(update)], &number).await?,
    ///         Update::Artifact(update) => turn.pass_on(vec![PassedOn::Artifact(update)], &number).await?,
    ///         Update::Message(message) => turn.pass_on_reply((*message).clone()).await?,
    ///         Update::Task(_) => {}
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Turn::status`], [`Turn::artifact`] and [`Turn::checkpoint`]. If one of the updates is refused, all are.
    pub async fn pass_on(
        &self,
        updates: Vec<PassedOn>,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        let checkpoint = checkpoint_json(checkpoint)?;
        self.check_checkpoint(&checkpoint)?;
        let (mut commands, mut states) = (Vec::with_capacity(updates.len().max(2)), Vec::new());
        if updates.is_empty() {
            commands.push(RunCommand::BecomeTask);
        }
        let mut written: Vec<ArtifactId> = Vec::new();
        for update in updates {
            commands.push(match update {
                PassedOn::Status(update) => {
                    states.push(update.status.state);
                    RunCommand::Status(self.status_write(update))
                }
                PassedOn::Artifact(update) => {
                    let mode = match update.append {
                        false => WriteMode::Replace,
                        // The stored task does not have it yet.
                        true if written.contains(&update.artifact.artifact_id) => WriteMode::Append,
                        true => self.appending(&update.artifact.artifact_id).await?,
                    };
                    written.push(update.artifact.artifact_id.clone());
                    let ArtifactUpdate { artifact, last_chunk, metadata, .. } = update;
                    let (checkpoint, completes) = (None, false);
                    RunCommand::Artifact(ArtifactWrite { artifact, mode, last_chunk, metadata, checkpoint, completes })
                }
            });
        }
        match commands.last_mut() {
            Some(RunCommand::Status(write)) => write.checkpoint = Some(checkpoint),
            Some(RunCommand::Artifact(write)) => write.checkpoint = Some(checkpoint),
            _ => commands.push(RunCommand::Checkpoint { value: checkpoint }),
        }
        let command = match commands.pop() {
            Some(only) if commands.is_empty() => only,
            last => {
                commands.extend(last);
                RunCommand::Several(commands)
            }
        };
        self.write(command).await?;
        states.into_iter().for_each(|state| self.work_time().note(state));
        Ok(())
    }

    fn status_write(&self, update: StatusUpdate) -> StatusWrite {
        let StatusUpdate { status, metadata, .. } = update;
        let message = status.message.map(|message| Arc::new(self.as_own(Arc::unwrap_or_clone(message))));
        StatusWrite { state: status.state, message, metadata, checkpoint: None }
    }

    /// How a chunk is written that extends an artifact.
    async fn appending(&self, id: &ArtifactId) -> Result<WriteMode, TurnError> {
        let is_of_earlier_turn =
            self.with_head(|head| head.artifact(id.as_str()).is_some_and(|known| known.turn != head.turn));
        match is_of_earlier_turn {
            true => Ok(WriteMode::Append),
            // Boxed, because few runs need it.
            false => Box::pin(self.resume_artifact(id)).await,
        }
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
