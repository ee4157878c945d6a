//! The agent's handle while it works on one message: the message, the caller, and the methods to answer. Everything the
//! agent writes is committed by the engine's only writer and is durable when the call returns.
//!
//! A turn of an agent without effects begins *staged*: what it writes at once is kept here and committed together with
//! the acceptance of its message. The first time it has to wait, the stage is committed, and from then on the turn
//! writes directly.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use switchboard_core::call::Owner;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{
    ArtifactWrite, Command, Folded, Head, Inbound, Refusal, RunCommand, StatusWrite, TurnEnd, WriteMode, decide_onto,
};
use switchboard_core::model::{
    Artifact, ArtifactId, Json, Message, Part, PartContent, Role, Task, TaskState, Timestamp,
};
use tokio_util::sync::CancellationToken;

use super::attached::Writes;
use super::run_time::WorkTime;
use super::{AgentError, ArtifactWriter, Background, RunEnd, TurnError};
use crate::commit::{Record, Stage, WriteError};
use crate::engine_state::EngineState;
use crate::ports::store::OverStorage;

/// One message being worked on.
#[derive(Clone)]
pub struct Turn {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Arc<EngineState>,
    record: Arc<Record>,
    inbound: Arc<Inbound>,
    fence: u64,
    attempt: u32,
    interrupted: bool,
    run_max: Duration,
    deadline: Timestamp,
    /// Created on first use, because most turns are over before they could be canceled.
    cancel: OnceLock<CancellationToken>,
    background: Background,
    checkpoint: Option<Json>,
    earlier_checkpoint: Option<Json>,
    /// The task as it was when the turn began.
    task: OnceLock<Arc<Task>>,
    artifacts_made: AtomicU32,
    /// Whether the agent has ended its turn.
    answered: AtomicBool,
    /// Whether the store failed to take something that the agent wrote.
    unwritten: AtomicBool,
    /// Whether the task ended because too many bytes would have been stored.
    over_storage: AtomicBool,
    writes: Writes,
    work_time: WorkTime,
    stage: Mutex<Option<Stage>>,
}

/// What a turn starts from.
pub(crate) struct TurnStart {
    pub(crate) record: Arc<Record>,
    pub(crate) inbound: Arc<Inbound>,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    /// Whether the turn may have been worked on before.
    pub(crate) interrupted: bool,
    pub(crate) run_max: Duration,
    pub(crate) background: Background,
    pub(crate) checkpoint: Option<Json>,
    /// The last checkpoint of the turns before.
    pub(crate) earlier_checkpoint: Option<Json>,
    pub(crate) now: Timestamp,
}

impl TurnStart {
    /// The start of a turn that has had no run yet.
    pub(crate) fn first(
        record: Arc<Record>,
        inbound: Arc<Inbound>,
        head: &Head,
        run_max: Duration,
        background: Background,
        now: Timestamp,
    ) -> Self {
        let (fence, attempt) = (head.fence, head.attempt);
        Self {
            record,
            inbound,
            fence,
            attempt,
            interrupted: false,
            run_max,
            background,
            checkpoint: None,
            earlier_checkpoint: None,
            now,
        }
    }
}

// Messages must not appear in logs, so only names and numbers are shown.
impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("task", &self.inner.record.id)
            .field("number", &self.number())
            .field("attempt", &self.attempt())
            .finish_non_exhaustive()
    }
}

/// A checkpoint as it is stored.
pub(super) fn checkpoint_json<T: Serialize + ?Sized>(value: &T) -> Result<Json, TurnError> {
    Json::from_serialize(value).map_err(TurnError::Checkpoint)
}

impl Turn {
    pub(crate) fn direct(engine: Arc<EngineState>, start: TurnStart, task: Arc<Task>) -> Self {
        Self::new(engine, start, OnceLock::from(task), None)
    }

    pub(crate) fn staged(engine: Arc<EngineState>, start: TurnStart, stage: Stage) -> Self {
        Self::new(engine, start, OnceLock::new(), Some(stage))
    }

    fn new(engine: Arc<EngineState>, start: TurnStart, task: OnceLock<Arc<Task>>, stage: Option<Stage>) -> Self {
        let TurnStart { record, inbound, fence, attempt, interrupted, run_max, background, .. } = start;
        let TurnStart { checkpoint, earlier_checkpoint, now, .. } = start;
        let deadline = now.plus_ms(i64::try_from(run_max.as_millis()).unwrap_or(i64::MAX / 2));
        let inner = Inner {
            engine,
            record,
            inbound,
            fence,
            attempt,
            interrupted,
            run_max,
            deadline,
            cancel: OnceLock::new(),
            background,
            checkpoint,
            earlier_checkpoint,
            task,
            artifacts_made: AtomicU32::new(0),
            answered: AtomicBool::new(false),
            unwritten: AtomicBool::new(false),
            over_storage: AtomicBool::new(false),
            writes: Writes::default(),
            work_time: WorkTime::new(),
            stage: Mutex::new(stage),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The message to work on.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.inner.inbound.message
    }

    /// The text of the message: all its text parts, joined by line breaks. (Of a message in the dialect of selectools also
    /// its data, as JSON.)
    #[must_use]
    pub fn text(&self) -> String {
        (self.inner.inbound.dialect.rules().prompt)(self.message())
    }

    /// The first data part of the message, read as a value of yours.
    ///
    /// ```ignore
    /// #[derive(serde::Deserialize)]
    /// struct Order { city: String, nights: u32 }
    ///
    /// let order: Order = turn.data()?;
    /// ```
    ///
    /// # Errors
    /// When the message has no data part, or it has another shape. The error is made for `?`: the task fails, and the
    /// client reads what is missing.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, AgentError> {
        let data = self.message().parts.iter().find_map(|part| match &part.content {
            PartContent::Data(json) => Some(json),
            PartContent::Text(_) | PartContent::Raw(_) | PartContent::Url(_) => None,
        });
        let Some(data) = data else { return Err(AgentError::told("The message has no data part, and one is needed")) };
        data.deserialize().map_err(|error| AgentError::told(format!("The data of the message does not fit: {error}")))
    }

    /// The task as it was when this turn began: its history, its artifacts so far.
    #[must_use]
    pub fn task(&self) -> &Arc<Task> {
        self.inner.task.get_or_init(|| {
            let stage = self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner);
            // Folded on demand: most agents never ask for it, and a task kept here would be copied at the first write.
            let mut began = Folded::empty(self.inner.record.id.clone(), self.inner.record.context_id.clone());
            began.apply_all(stage.as_ref().map_or(&[], |stage| &stage.events[..stage.opening]));
            began.task
        })
    }

    /// The messages of this task so far, oldest first, this turn's message last.
    #[must_use]
    pub fn history(&self) -> &[Arc<Message>] {
        &self.task().history
    }

    /// Which message of this task this is, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.inner.inbound.turn
    }

    /// How often this message has been tried, from 1. More than 1 means that a run died: what it did outside may have
    /// been done already. A run that an orderly stop of the server cut off does not count; see
    /// [`Turn::was_interrupted`].
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// Whether this message may have been worked on before: by a run that died, or by one that an orderly stop of the
    /// server cut off. What it did outside may have been done already.
    #[must_use]
    pub fn was_interrupted(&self) -> bool {
        self.inner.interrupted
    }

    /// Names this attempt in calls to others, so that they can tell a late duplicate from the real one.
    #[must_use]
    pub fn fencing_token(&self) -> String {
        format!("{}:{}", self.inner.record.id, self.inner.fence)
    }

    /// Whose task this is, as proved by the caller's credential.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.inner.record.scope.owner
    }

    /// The request's own metadata, beside the message's.
    #[must_use]
    pub fn metadata(&self) -> Option<&Json> {
        self.inner.inbound.metadata.as_ref()
    }

    /// Media types the caller can read; empty is anything.
    #[must_use]
    pub fn accepted_output_modes(&self) -> &[String] {
        &self.inner.inbound.accepted_output_modes
    }

    /// Extension URIs the caller activated.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.inner.inbound.extensions
    }

    /// The W3C `traceparent` the message came with.
    #[must_use]
    pub fn trace_parent(&self) -> Option<&str> {
        self.inner.inbound.trace_parent.as_deref()
    }

    /// The tasks the message refers to, those that exist and belong to the caller.
    #[must_use]
    pub fn referenced_tasks(&self) -> &[Arc<Task>] {
        &self.inner.background.referenced
    }

    /// What was said before in the same context, oldest first: the messages of the caller's other tasks with this agent,
    /// and what they were answered. Empty unless the agent has a context memory
    /// ([`Traits::with_context_messages_max`](super::Traits::with_context_messages_max)). What was said in this task is in
    /// [`Turn::history`].
    #[must_use]
    pub fn context(&self) -> &[Arc<Message>] {
        &self.inner.background.context
    }

    /// How long this run may take: what the call asked for, or else what the agent declares.
    #[must_use]
    pub fn run_max(&self) -> Duration {
        self.inner.run_max
    }

    /// When this run will be ended if it has not ended itself. Paused time does not count.
    #[must_use]
    pub fn deadline(&self) -> Timestamp {
        self.inner.deadline
    }

    /// Resolves when cancellation of the task was requested. If the agent returns after that, the task is canceled; an
    /// agent that does not return in time is dropped.
    pub async fn cancelled(&self) {
        self.cancel_token().cancelled().await;
    }

    /// Whether cancellation of the task was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancel.get().is_some_and(CancellationToken::is_cancelled)
    }

    /// What an earlier run for this message left with [`Turn::checkpoint`], read as a value of yours; none if it left
    /// nothing, as on every first attempt.
    ///
    /// # Errors
    /// When it has another shape, as after an update of the agent that changed its type. The error is made for `?`: the task
    /// fails, and the log has the reason.
    pub fn checkpoint_as<T: DeserializeOwned>(&self) -> Result<Option<T>, AgentError> {
        let read = self.last_checkpoint().map(Json::deserialize).transpose();
        read.map_err(|error| {
            let details = format!("the checkpoint does not fit: {error}");
            AgentError::with_details("The agent could not read its checkpoint", details)
        })
    }

    /// What an earlier run for this message left with [`Turn::checkpoint`], as JSON.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<&Json> {
        self.inner.checkpoint.as_ref()
    }

    /// What the turns of this task before this one left with [`Turn::checkpoint`], as JSON: the last value of the last turn that
    /// left one. For agents that must know in a later turn what they did in an earlier one, such as which conversation elsewhere
    /// the task belongs to.
    #[must_use]
    pub fn earlier_checkpoint(&self) -> Option<&Json> {
        self.inner.earlier_checkpoint.as_ref()
    }

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

    /// Begins an artifact that is written in chunks, or goes on with it after an interruption: see
    /// [`ArtifactWriter::resume`].
    #[must_use]
    pub fn artifact_writer(&self) -> ArtifactWriter {
        ArtifactWriter::new(self.clone(), self.next_artifact_id())
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
    /// on with them: see [`ArtifactWriter::resume`].
    ///
    /// # Errors
    /// [`TurnError::Checkpoint`] when the value cannot be written as JSON; [`TurnError::Refused`] when it is too large (64 KiB
    /// of JSON by default). Also when the task has ended, or the store did not take it.
    pub async fn checkpoint<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), TurnError> {
        self.write_checkpoint(checkpoint_json(value)?).await
    }

    pub(super) async fn write_checkpoint(&self, value: Json) -> Result<(), TurnError> {
        self.check_checkpoint(&value)?;
        self.write(RunCommand::Checkpoint { value }).await
    }

    pub(super) fn check_checkpoint(&self, value: &Json) -> Result<(), TurnError> {
        let (bytes, max) = (value.as_str().len(), self.inner.engine.limits.checkpoint_bytes_max);
        if bytes <= max {
            return Ok(());
        }
        let reason = format!("a checkpoint of {bytes} bytes, more than {max}");
        Err(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason }))
    }

    /// Ids of unnamed artifacts are the same in every attempt, so that a second attempt writes over the first.
    fn next_artifact_id(&self) -> ArtifactId {
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
    pub(super) fn with_head<T>(&self, read: impl FnOnce(&Head) -> T) -> T {
        match &*self.inner.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(stage) => read(&stage.head),
            None => self.inner.record.with_head(read),
        }
    }

    pub(super) async fn write(&self, command: RunCommand) -> Result<(), TurnError> {
        if self.inner.answered.load(Ordering::Relaxed) {
            return Err(TurnError::Stopped);
        }
        match self.stage_write(&command) {
            Some(staged) => staged,
            // Boxed, because an agent's future reserves memory for everything that it may await, and most of it is
            // never awaited.
            None => Box::pin(self.write_now(command)).await,
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
    pub(super) fn failed_over_storage(&self, over: OverStorage) -> TurnEnd {
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

    pub(super) fn engine(&self) -> &EngineState {
        &self.inner.engine
    }

    /// Notes that the store failed: an error that the agent returns because of it is not the agent's failure.
    pub(super) fn note_unwritten(&self) {
        self.inner.unwritten.store(true, Ordering::Relaxed);
    }

    pub(crate) fn record(&self) -> &Arc<Record> {
        &self.inner.record
    }

    pub(crate) fn inbound(&self) -> &Arc<Inbound> {
        &self.inner.inbound
    }

    pub(crate) fn fence(&self) -> u64 {
        self.inner.fence
    }

    /// Whether the store failed to take something that the agent wrote.
    pub(crate) fn has_unwritten(&self) -> bool {
        self.inner.unwritten.load(Ordering::Relaxed)
    }

    /// Whether the task ended because the store has no room for what the agent wrote.
    pub(crate) fn is_over_storage(&self) -> bool {
        self.inner.over_storage.load(Ordering::Relaxed)
    }

    /// The writes of the agent that the store has not answered yet.
    pub(crate) fn writes(&self) -> &Writes {
        &self.inner.writes
    }

    pub(crate) fn work_time(&self) -> &WorkTime {
        &self.inner.work_time
    }

    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        self.inner.cancel.get_or_init(CancellationToken::new)
    }
}

fn refused(refusal: Refusal) -> TurnError {
    match refusal {
        Refusal::Protocol(error) => TurnError::Refused(error),
        Refusal::Fenced | Refusal::Closed { .. } => TurnError::Stopped,
    }
}
