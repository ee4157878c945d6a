//! What an agent writes while it works on a message: statuses, artifacts, questions, checkpoints and the end of its turn. All of it goes
//! through [`Turn::write`], which keeps it in the stage of the turn or has the engine's only writer commit it.

use std::future::{Ready, ready};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use futures_util::future::Either;
use serde::Serialize;
use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{
    ArtifactWrite, Command, Head, Refusal, RunCommand, StatusWrite, TurnEnd, WriteMode, decide_onto,
};
use switchboard_core::model::{Artifact, ArtifactId, Json, Message, Part, Role, TaskState};

use super::Turn;
use crate::commit::{Stage, WriteError};
use crate::ports::store::OverStorage;
use crate::runs::agent_error::TurnError;
use crate::state::runs::RunEnd;

/// A write of the agent. One that is kept in the stage is done already. The others are boxed, because an agent's future reserves memory
/// for everything that it may await.
pub(in crate::runs) type Written<'a> = Either<Ready<Result<(), TurnError>>, BoxFuture<'a, Result<(), TurnError>>>;

/// A checkpoint as it is stored.
pub(in crate::runs) fn checkpoint_json<T: Serialize + ?Sized>(value: &T) -> Result<Json, TurnError> {
    Json::from_serialize(value).map_err(TurnError::Checkpoint)
}

impl Turn {
    /// Sets the status to working, optionally with a text.
    ///
    /// # Errors
    /// When the task has ended, or the store did not take it.
    pub async fn working(&self, text: impl Into<String>) -> Result<(), TurnError> {
        let text = text.into();
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::text(text)] };
        self.status(TaskState::Working, parts).await
    }

    /// Sets a status with a message of any parts (none is no message).
    ///
    /// # Errors
    /// When the task has ended, the state makes no sense here, or the store did not take it.
    pub async fn status(&self, state: TaskState, parts: Vec<Part>) -> Result<(), TurnError> {
        let message = (!parts.is_empty()).then(|| self.agent_message(parts));
        self.write(RunCommand::Status(StatusWrite { state, message, metadata: None, checkpoint: None })).await?;
        self.inner.work_time.note(state);
        Ok(())
    }

    /// Adds a finished artifact; an id is made if it has none.
    ///
    /// # Errors
    /// When the task has ended, a limit is exceeded, or the store did not take it.
    pub async fn artifact(&self, mut artifact: Artifact) -> Result<(), TurnError> {
        if artifact.artifact_id.is_empty() {
            artifact.artifact_id = self.next_artifact_id();
        }
        self.write_artifact(artifact, WriteMode::Replace, true, None).await
    }

    /// Adds a finished artifact of one text. The task goes on; [`Turn::answer`] completes it, too.
    ///
    /// # Errors
    /// As [`Turn::artifact`].
    pub async fn text_artifact(&self, text: impl Into<String>) -> Result<(), TurnError> {
        self.artifact(Artifact::new(self.next_artifact_id(), vec![Part::text(text)])).await
    }

    /// Answers with a text artifact and completes the task, both in one commit. Nothing can be written after this; if the next
    /// message of the task waits already, its turn begins when the agent returns.
    ///
    /// # Errors
    /// As [`Turn::artifact`].
    pub async fn answer(&self, text: impl Into<String>) -> Result<(), TurnError> {
        self.answer_with(Artifact::new(self.next_artifact_id(), vec![Part::text(text)])).await
    }

    /// Answers with an artifact of any parts, as [`Turn::answer`] does with a text. An id is made if it has none.
    ///
    /// # Errors
    /// As [`Turn::artifact`].
    pub async fn answer_with(&self, mut artifact: Artifact) -> Result<(), TurnError> {
        if artifact.artifact_id.is_empty() {
            artifact.artifact_id = self.next_artifact_id();
        }
        let (artifact, mode) = (artifact.into(), WriteMode::Replace);
        let write =
            ArtifactWrite { artifact, mode, last_chunk: true, metadata: None, checkpoint: None, completes: true };
        self.write(RunCommand::Artifact(write)).await?;
        self.inner.answered.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Replies with a message and no task. Only for agents that declare they may.
    ///
    /// # Errors
    /// When a task has been opened already.
    pub async fn reply(&self, parts: Vec<Part>) -> Result<(), TurnError> {
        let message = Message { task_id: None, ..Arc::unwrap_or_clone(self.agent_message(parts)) };
        self.write(RunCommand::Reply { message: Arc::new(message) }).await
    }

    /// Asks the caller something and pauses: the answer comes as the next turn. Return after this.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn ask(&self, question: impl Into<String>) -> Result<(), TurnError> {
        self.status(TaskState::InputRequired, vec![Part::text(question)]).await
    }

    /// Sets the status to auth-required. The run may wait for the authorization, or return; the next message then
    /// begins another turn.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn require_auth(&self, explanation: impl Into<String>) -> Result<(), TurnError> {
        self.status(TaskState::AuthRequired, vec![Part::text(explanation)]).await
    }

    /// Completes the task with a closing text. Returning does the same without one.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn complete(&self, text: impl Into<String>) -> Result<(), TurnError> {
        self.status(TaskState::Completed, vec![Part::text(text)]).await
    }

    /// Rejects the task.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn reject(&self, reason: impl Into<String>) -> Result<(), TurnError> {
        self.status(TaskState::Rejected, vec![Part::text(reason)]).await
    }

    /// Fails the task with a reason for the client.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn fail(&self, reason: impl Into<String>) -> Result<(), TurnError> {
        self.status(TaskState::Failed, vec![Part::text(reason)]).await
    }

    /// Sets the status to working, with metadata: an object that readers of the stream are shown with this status. Members that are
    /// answers of Switchboard itself ([`OWN_ANSWERS`](switchboard_core::model::redact::OWN_ANSWERS)) stay in the metadata of the
    /// task, where the first value of each is kept.
    ///
    /// # Errors
    /// As [`Turn::status`].
    pub async fn working_with_metadata(&self, metadata: Json) -> Result<(), TurnError> {
        let (state, message, metadata) = (TaskState::Working, None, Some(metadata));
        self.write(RunCommand::Status(StatusWrite { state, message, metadata, checkpoint: None })).await?;
        self.inner.work_time.note(state);
        Ok(())
    }

    /// Stores a value for the next attempt in case this one dies; the next attempt reads it with
    /// [`Turn::checkpoint_as`]. The value is anything that serializes, [`Json`] included. Only the last one is kept,
    /// and no client sees it. The lengths of the task's artifacts are recorded with it, so that the next attempt can go
    /// on with them: see [`ArtifactWriter::resume`](crate::runs::ArtifactWriter::resume).
    ///
    /// # Errors
    /// [`TurnError::Checkpoint`] when the value cannot be written as JSON; [`TurnError::Refused`] when it is too large (64 KiB
    /// of JSON by default). Also when the task has ended, or the store did not take it.
    pub async fn checkpoint<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), TurnError> {
        self.write_checkpoint(checkpoint_json(value)?).await
    }

    pub(in crate::runs) async fn write_checkpoint(&self, value: Json) -> Result<(), TurnError> {
        self.check_checkpoint(&value)?;
        self.write(RunCommand::Checkpoint { value }).await
    }

    pub(in crate::runs) fn check_checkpoint(&self, value: &Json) -> Result<(), TurnError> {
        let (bytes, max) = (value.as_str().len(), self.inner.engine.limits.checkpoint_bytes_max);
        if bytes <= max {
            return Ok(());
        }
        let reason = format!("a checkpoint of {bytes} bytes, more than {max}");
        Err(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason }))
    }

    /// Ids of unnamed artifacts are the same in every attempt, so that a second attempt writes over the first.
    pub(in crate::runs) fn next_artifact_id(&self) -> ArtifactId {
        let ordinal = self.inner.artifacts_made.fetch_add(1, Ordering::Relaxed) + 1;
        // This is nearly always the id, so it is not formatted.
        if (self.inner.inbound.turn, ordinal) == (1, 1) {
            return "artifact-1-1".into();
        }
        format!("artifact-{}-{ordinal}", self.inner.inbound.turn).into()
    }

    pub(crate) fn agent_message(&self, parts: Vec<Part>) -> Arc<Message> {
        let record = &self.inner.record;
        let mut message = Message::new(Role::Agent, self.inner.engine.uuid(), parts);
        message.context_id = Some(record.context_id.clone());
        message.task_id = Some(record.id.clone());
        Arc::new(message)
    }

    /// The head as this run has left it. Only the run that holds the fence writes artifacts and checkpoints, so those
    /// parts of the head are up to date.
    pub(in crate::runs) fn with_head<T>(&self, read: impl FnOnce(&Head) -> T) -> T {
        match &*self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(stage) => read(&stage.head),
            None => self.inner.record.with_head(read),
        }
    }

    pub(in crate::runs) fn write(&self, command: RunCommand) -> Written<'_> {
        if self.inner.answered.load(Ordering::Relaxed) {
            return Either::Left(ready(Err(TurnError::Stopped)));
        }
        match self.stage_write(&command) {
            Some(staged) => Either::Left(ready(staged)),
            None => Either::Right(Box::pin(self.write_now(command))),
        }
    }

    async fn write_now(&self, command: RunCommand) -> Result<(), TurnError> {
        let _under_way = self.inner.writes.begin();
        if self.inner.record.key().is_none() {
            // The stage is being committed now. If the turn was discarded with its stage, its token is cancelled.
            tokio::select! {
                biased;
                () = self.inner.record.committed() => {}
                () = self.cancel_token().cancelled() => return Err(TurnError::Stopped),
            }
        }
        let command = Command::Run { fence: self.inner.fence, inbound: self.inner.inbound.clone(), command };
        match self.inner.engine.write(&self.inner.record, command).await {
            Ok(_) => Ok(()),
            Err(WriteError::Refused(refusal)) => Err(refused(refusal)),
            Err(WriteError::Duplicate(_)) => Err(TurnError::Stopped),
            Err(WriteError::OverStorage(over)) => self.end_over_storage(over).await,
            Err(WriteError::Failed(_)) => {
                self.note_unwritten();
                Err(TurnError::Unavailable)
            }
        }
    }

    /// Ends the task because the store has no room for what the agent wrote, and tells the agent to stop.
    async fn end_over_storage(&self, over: OverStorage) -> Result<(), TurnError> {
        let (fence, inbound) = (self.inner.fence, self.inner.inbound.clone());
        let command = Command::Run { fence, inbound, command: RunCommand::EndTurn(self.failed_over_storage(over)) };
        match self.inner.engine.write(&self.inner.record, command).await {
            Ok(_) | Err(WriteError::Refused(_) | WriteError::Duplicate(_)) => {
                self.cancel_token().cancel();
                Err(TurnError::Stopped)
            }
            Err(WriteError::OverStorage(_) | WriteError::Failed(_)) => {
                self.note_unwritten();
                Err(TurnError::Unavailable)
            }
        }
    }

    /// The end of a turn whose writes the store has no room for.
    pub(in crate::runs) fn failed_over_storage(&self, over: OverStorage) -> TurnEnd {
        self.inner.over_storage.store(true, Ordering::Relaxed);
        self.inner.record.fails_by(RunEnd::StorageFull.word());
        TurnEnd::Failed { message: Some(self.agent_message(vec![Part::text(over.reason())])) }
    }

    /// Decides a write in the stage, if there is one.
    fn stage_write(&self, command: &RunCommand) -> Option<Result<(), TurnError>> {
        let mut stage = self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = stage.as_mut()?;
        let (fence, inbound) = (self.inner.fence, self.inner.inbound.clone());
        let command = Command::Run { fence, inbound, command: command.clone() };
        let engine = &self.inner.engine;
        let before = stage.events.len();
        stage.at = engine.now();
        let decided = decide_onto(&mut stage.events, &stage.head, command, &engine.bounds(), stage.at);
        stage.apply_from(before);
        Some(decided.map_err(refused))
    }

    /// Ends a staged turn inside its stage.
    pub(crate) fn end_in_stage(&self, end: TurnEnd) {
        let is_closed = |stage: &Option<Stage>| stage.as_ref().is_none_or(|stage| stage.head.is_closed());
        if is_closed(&self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        // No other writer can change the stage, so the only possible refusal is a write to a closed task, and then
        // there is nothing to do.
        let _ = self.stage_write(&RunCommand::EndTurn(end));
    }

    /// Takes the stage away: from now on the turn writes directly.
    pub(crate) fn unstage(&self) -> Option<Stage> {
        // The task as it was at the beginning must be known before the stage is gone.
        let _ = self.task();
        self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the stage of a turn whose agent has returned, sparing it a copy of the task.
    pub(crate) fn finish_stage(&self) -> Option<Stage> {
        self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn refused(refusal: Refusal) -> TurnError {
    match refusal {
        Refusal::Protocol(error) => TurnError::Refused(error),
        Refusal::Fenced | Refusal::Closed { .. } => TurnError::Stopped,
    }
}
