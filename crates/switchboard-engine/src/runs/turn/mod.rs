//! The agent's handle while it works on one message: the message, the caller, and the methods to answer. Everything the
//! agent writes is committed by the engine's only writer and is durable when the call returns.
//!
//! A turn of an agent without effects begins *staged*: what it writes at once is kept here and committed together with
//! the acceptance of its message. The first time it has to wait, the stage is committed, and from then on the turn
//! writes directly.
//!
//! This file holds what a turn knows, [`writes`] what its agent writes, and [`pass_on`] what it passes on from other agents.

mod pass_on;
mod writes;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use switchboard_core::call::Owner;
use switchboard_core::lifecycle::{Folded, Head, Inbound};
use switchboard_core::model::{
    AgentCard, AgentName, Json, Message, PartContent, Task, TaskId, Timestamp, TraceContext,
};
use tokio_util::sync::CancellationToken;

pub use pass_on::PassedOn;

use super::agent_error::AgentError;
use super::call_error::AgentCallError;
use super::turn_state::{TurnCalls, WorkTime};
use crate::commit::Stage;
use crate::ports::store::TaskKey;
use crate::ports::trace::{SpanKind, attribute};
use crate::spans::OpenSpan;
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::{RunEnd, Writes, Writing};

pub(super) use writes::{Written, checkpoint_json};

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
    /// Created by the first call to another agent.
    calls: OnceLock<Box<TurnCalls>>,
    /// If the trace of the message is recorded.
    span: Option<RunSpan>,
}

impl Writing for Inner {
    fn writes(&self) -> &Writes {
        &self.writes
    }
}

/// The span of a run.
struct RunSpan {
    context: Arc<TraceContext>,
    /// Taken when the run ends.
    open: Mutex<Option<Box<OpenSpan>>>,
}

impl RunSpan {
    fn begin(engine: &EngineState, start: &TurnStart) -> Option<Self> {
        let mut span = engine.span(start.inbound.trace.as_deref(), SpanKind::Internal, "run")?;
        span.says(attribute::AGENT, start.record.scope.agent.as_str().to_owned());
        span.says(attribute::TASK, start.record.id.as_str().to_owned());
        span.says(attribute::TURN, start.inbound.turn);
        span.says(attribute::ATTEMPT, start.attempt);
        Some(Self { context: span.context().clone(), open: Mutex::new(Some(span)) })
    }
}

/// What a turn knows besides its message and its task.
#[derive(Default)]
pub(crate) struct Background {
    pub(crate) referenced: Vec<Arc<Task>>,
    /// The last checkpoint of each of them that has one.
    pub(crate) referenced_checkpoints: Vec<(TaskId, Json)>,
    /// Messages of earlier tasks in the same context, oldest first.
    pub(crate) context: Vec<Arc<Message>>,
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

impl Turn {
    pub(crate) fn direct(engine: Arc<EngineState>, start: TurnStart, task: Arc<Task>) -> Self {
        Self::new(engine, start, OnceLock::from(task), None)
    }

    pub(crate) fn staged(engine: Arc<EngineState>, start: TurnStart, stage: Stage) -> Self {
        Self::new(engine, start, OnceLock::new(), Some(stage))
    }

    fn new(engine: Arc<EngineState>, start: TurnStart, task: OnceLock<Arc<Task>>, stage: Option<Stage>) -> Self {
        let span = RunSpan::begin(&engine, &start);
        let TurnStart { record, inbound, fence, attempt, interrupted, run_max, background, .. } = start;
        record.trace.set(span.as_ref().map_or(inbound.trace.as_ref(), |span| Some(&span.context)));
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
            calls: OnceLock::new(),
            span,
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

    /// The name of the agent that works on this turn, as it is served.
    #[must_use]
    pub fn agent(&self) -> &AgentName {
        &self.inner.record.scope.agent
    }

    /// The agents of this server, this one included, with their cards as they are now, in the order of their names.
    #[must_use]
    pub fn agents_here(&self) -> Vec<(AgentName, Arc<AgentCard>)> {
        let EngineState { served, known_agents, .. } = &*self.inner.engine;
        served.iter().filter_map(|name| Some((name.clone(), known_agents.get(name)?.card.get()))).collect()
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

    /// The trace that this work belongs to: the one the message came with, under the span of this run if it is recorded. Calls to
    /// others pass it on as `traceparent` and `tracestate`.
    #[must_use]
    pub fn trace(&self) -> Option<&Arc<TraceContext>> {
        self.inner.span.as_ref().map_or(self.inner.inbound.trace.as_ref(), |span| Some(&span.context))
    }

    /// Begins the span of a call to another server, under that of this run; none if the trace is not recorded.
    #[must_use]
    pub fn call_span(&self, callee: &str) -> Option<Box<OpenSpan>> {
        let mut span = self.inner.engine.span(self.trace().map(|trace| &**trace), SpanKind::Client, "call")?;
        span.says(attribute::AGENT, self.agent().as_str().to_owned());
        span.says(attribute::CALLEE, callee.to_owned());
        Some(span)
    }

    /// Ends the span of the run.
    pub(crate) fn end_span(&self, how: RunEnd) {
        let Some(span) = &self.inner.span else { return };
        let Some(mut open) = span.open.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        open.says(attribute::RUN_END, how.word());
        open.says(attribute::STATE, self.inner.record.with_head(|head| head.state.word()));
        if how.is_failure() || matches!(how, RunEnd::TimedOut | RunEnd::NotStarted | RunEnd::StoreFailed) {
            open.fails(how.word());
        }
    }

    /// The tasks the message refers to, those that exist and belong to the caller.
    #[must_use]
    pub fn referenced_tasks(&self) -> &[Arc<Task>] {
        &self.inner.background.referenced
    }

    /// What the turns of a task that the message refers to left with [`Turn::checkpoint`], as JSON: the last value. For agents that
    /// know the task elsewhere by what they kept of it.
    #[must_use]
    pub fn referenced_checkpoint(&self, id: &TaskId) -> Option<&Json> {
        let mut known = self.inner.background.referenced_checkpoints.iter();
        known.find(|(task, _)| task == id).map(|(_, checkpoint)| checkpoint)
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

    pub(super) fn engine(&self) -> &EngineState {
        &self.inner.engine
    }

    pub(super) fn engine_arc(&self) -> &Arc<EngineState> {
        &self.inner.engine
    }

    /// The key of the record in the store. A turn whose acceptance is not committed yet waits for that.
    pub(super) async fn committed_key(&self) -> Result<TaskKey, AgentCallError> {
        let record = &self.inner.record;
        tokio::select! {
            biased;
            () = record.committed() => record.key().ok_or(AgentCallError::Stopped),
            () = self.cancel_token().cancelled() => Err(AgentCallError::Stopped),
        }
    }

    pub(super) fn calls(&self) -> &TurnCalls {
        self.inner.calls.get_or_init(Box::default)
    }

    /// The calls of this turn, if it has made any.
    pub(super) fn calls_made(&self) -> Option<&TurnCalls> {
        self.inner.calls.get().map(|calls| &**calls)
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

    /// The turn as what makes writes.
    pub(super) fn writing(&self) -> Arc<dyn Writing> {
        self.inner.clone()
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
