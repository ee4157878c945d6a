//! Calls of an agent to other agents ([`Turn::call`]). A call has a row in the store and an id that is the same in every attempt of the
//! run, so that after a crash the next attempt finds the task that the other agent has for it, and sends nothing twice.
//!
//! When the run ends, its open calls end with it (`call_ending.rs`).

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, Endpoint, Reply, Request, SendMessage, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Json, Message, Part, Role, Task, TaskId, TaskState, Update};
use tokio::time::{sleep, timeout};

use super::call_ending::{CALL_CANCEL_MAX, CallEnding, cancel_remote, end_call, hand_over};
use super::call_error::AgentCallError;
use super::callees::{caller, find_callee};
use super::run_time::AT_MOST_KEY;
use super::turn::Turn;
use crate::hops::Hops;
use crate::ports::Callee;
use crate::ports::calls::{CallRow, CallStatus, CallStep, INLINE_LOOK_MS};
use crate::ports::store::StoreError;
use crate::sha256::sha256;
use crate::state::EngineState;

/// How many calls one turn may make.
pub const TURN_CALLS_MAX: usize = 100;
/// The pauses between looks at a task whose agent has no streams: the first, each twice the one before, and the longest.
const CALL_LOOK_FIRST: Duration = Duration::from_millis(250);
const CALL_LOOK_LONGEST: Duration = Duration::from_secs(5);

/// What is said to another agent: a text, parts, or a whole message. Of a message, the role and the id are set by the call; its
/// `task_id` goes on with a task of the other agent, such as one that asked something back.
#[derive(Clone, Debug)]
pub struct CallMessage(Message);

impl From<&str> for CallMessage {
    fn from(text: &str) -> Self {
        Self::from(vec![Part::text(text)])
    }
}

impl From<String> for CallMessage {
    fn from(text: String) -> Self {
        Self::from(vec![Part::text(text)])
    }
}

impl From<Vec<Part>> for CallMessage {
    fn from(parts: Vec<Part>) -> Self {
        Self(Message::new(Role::User, "", parts))
    }
}

impl From<Message> for CallMessage {
    fn from(message: Message) -> Self {
        Self(message)
    }
}

/// What another agent answered.
#[derive(Clone, Debug)]
pub struct CallAnswer {
    task: Option<Arc<Task>>,
    message: Option<Arc<Message>>,
}

impl CallAnswer {
    /// The other agent's task; none if it answered with a message alone.
    #[must_use]
    pub fn task(&self) -> Option<&Arc<Task>> {
        self.task.as_ref()
    }

    /// The direct answer, if it was one.
    #[must_use]
    pub fn message(&self) -> Option<&Arc<Message>> {
        self.message.as_ref()
    }

    /// How the other agent's task stands: ended, or waiting for an answer. A direct answer counts as completed.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.task.as_ref().map_or(TaskState::Completed, |task| task.state())
    }

    /// Whether the other agent has done what was asked.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state() == TaskState::Completed
    }

    /// The answer in words: the text of a direct answer, else of the artifacts, else of the message of the status.
    #[must_use]
    pub fn text(&self) -> String {
        match (&self.task, &self.message) {
            (Some(task), _) => task.answer_text(),
            (None, Some(message)) => message.text(),
            (None, None) => String::new(),
        }
    }
}

/// Who takes the answer of a call, which decides how long the other agent may work on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerFor {
    /// The run that makes the call, which waits for it.
    Run,
    /// The run, or its task after it, when the call has become a continuation.
    Task,
}

/// A call whose message the other agent has. Dropping it changes nothing: what becomes of a call that nobody waits for is said at
/// [`Turn::call`].
pub struct Call {
    turn: Turn,
    id: String,
    callee: Callee,
    task: Option<TaskId>,
    /// A direct answer, or a task that had settled when the message was accepted.
    answer: Option<CallAnswer>,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("agent", &self.callee.id)
            .field("task", &self.task)
            .finish_non_exhaustive()
    }
}

impl Turn {
    /// Calls another agent: one of this server, or one that the server knows by its directory. It returns when the other agent has
    /// the message; [`Call::wait`] waits for the answer.
    ///
    /// The call is durable. Its id is made from this task, the turn, the agent and the message, so a later attempt that makes the same
    /// call finds the task that the other agent has for it, and nothing is sent twice. The other agent works for the owner of this
    /// task. It is told the trace, how often the message has been passed on (at most three times, and never to an agent that has had
    /// it, [`hops`](crate::hops)), and how much time it has: what is left of this run, and what a call may take whose run no longer
    /// waits for it ([`Limits::continuation_s_max`](crate::limits::Limits)).
    ///
    /// If this run fails or is canceled, or its time is over, the other agent's task is canceled. If the agent returns while nobody
    /// waits for the answer and the task waits for input, the answer comes as the next message of the task. If the task is
    /// completed, the other agent works on by itself.
    ///
    /// # Errors
    /// When there is no such agent, the call would go round in a circle, or the agent does not take the message.
    pub async fn call(&self, agent: &str, message: impl Into<CallMessage>) -> Result<Call, AgentCallError> {
        let message = message.into().0;
        // Boxed, because an agent's future reserves memory for everything that it may await.
        Box::pin(self.begin_call(agent, message, AnswerFor::Task)).await
    }

    /// Calls another agent and waits for its answer: [`Turn::call`] and [`Call::wait`]. The other agent is told that it has no more time
    /// than this run.
    ///
    /// # Errors
    /// As both of them.
    pub async fn call_and_wait(
        &self,
        agent: &str,
        message: impl Into<CallMessage>,
    ) -> Result<CallAnswer, AgentCallError> {
        let message = message.into().0;
        Box::pin(self.begin_call(agent, message, AnswerFor::Run)).await?.wait().await
    }

    /// Asks an agent about the tasks that it has for the owner of this one: to read, list, follow or cancel them.
    ///
    /// # Errors
    /// What the agent answers; also when there is no such agent, and for a message, which [`Turn::call`] sends.
    pub async fn ask_callee(&self, agent: &str, request: Request) -> Result<Reply, ProtocolError> {
        let is_question = match &request {
            Request::GetTask { .. }
            | Request::ListTasks(_)
            | Request::CancelTask { .. }
            | Request::SubscribeToTask { .. } => true,
            Request::SendMessage(_)
            | Request::SendStreamingMessage(_)
            | Request::CreatePushConfig(_)
            | Request::GetPushConfig { .. }
            | Request::ListPushConfigs { .. }
            | Request::DeletePushConfig { .. }
            | Request::GetExtendedAgentCard => false,
        };
        if !is_question {
            return Err(ProtocolError::unsupported(format!("{} is not asked in this way", request.operation())));
        }
        match find_callee(self.engine_arc(), self.owner(), agent).await {
            Ok(callee) => callee.endpoint.call(caller(self.owner(), self.trace()), request).await,
            Err(error) => Err(ProtocolError::unsupported(error.to_string())),
        }
    }

    /// The agent of this name, to be called for the owner of this task: one of this server, or one that the server knows by its
    /// directory. For agents that pass a task on; [`Turn::call`] makes calls that are found again after a crash.
    ///
    /// # Errors
    /// When there is no such agent, or it cannot be called now.
    pub async fn callee(&self, agent: &str) -> Result<Callee, AgentCallError> {
        find_callee(self.engine_arc(), self.owner(), agent).await
    }

    async fn begin_call(
        &self,
        name: &str,
        mut message: Message,
        answer_for: AnswerFor,
    ) -> Result<Call, AgentCallError> {
        let key = self.committed_key().await?;
        let engine = self.engine_arc().clone();
        let calls = engine.store.calls().ok_or(AgentCallError::NotSupported)?;
        let callee = find_callee(&engine, self.owner(), name).await?;
        let own = self.record().scope.agent.as_str();
        let hops = Hops::read(self.metadata());
        let hop = hops.arrive(own).and_then(|()| hops.next(own, &callee.id)).map_err(AgentCallError::Hop)?;
        if callee.is_local && message.context_id.is_none() && message.task_id.is_none() {
            message.context_id = Some(self.record().context_id.clone());
        }
        let id = self.next_call_id(&callee.id, &message)?;
        (message.role, message.message_id) = (Role::User, id.as_str().into());
        let row = CallRow {
            id: id.clone(),
            parent: key,
            parent_id: self.record().id.clone(),
            scope: self.record().scope.clone(),
            turn: self.number(),
            agent: callee.id.clone(),
            status: CallStatus::Inline,
            has_left: false,
            remote_task: None,
            remote_context: None,
            attempts: 0,
            due_at: Some(engine.now().plus_ms(INLINE_LOOK_MS)),
            claimed_until: None,
            give_up_at: None,
            deliver_to: None,
            outcome: None,
            receipt: None,
            error: None,
            trace: self.trace().cloned(),
            created_at: engine.now(),
            ended_at: None,
        };
        let row = calls.open_call(row).await.map_err(|error| self.call_not_kept(&error))?;
        self.calls().lock().open.push(id.clone());
        let call = |task: Option<TaskId>, answer: Option<CallAnswer>| Call {
            turn: self.clone(),
            id: id.clone(),
            callee: callee.clone(),
            task,
            answer,
        };
        if let Some(task) = row.remote_task {
            tracing::debug!(task = %self.record().id, agent = callee.id, remote = %task, "call found again");
            return Ok(call(Some(task), None));
        }
        if row.has_left && !callee.recognises_repeats {
            return Err(AgentCallError::OutcomeUnknown { agent: callee.id.clone() });
        }
        let hop = hop
            .thread(self.record().context_id.as_str())
            .parent_run(self.record().id.as_str())
            .parent_turn(&self.number().to_string())
            .invocation(&id);
        let mut send = SendMessage::new(message);
        send.return_immediately = true;
        send.history_length = Some(0);
        send.metadata = Some(hop.metadata(self.time_for(answer_for).as_ref()));
        let sending = send_and_note(engine.clone(), self.clone(), callee.clone(), id.clone(), send);
        // If the run is dropped meanwhile, the send still goes to its end, so that the other agent's task is known and can be canceled.
        let (task, answer) = engine.supervisor.unbroken(Box::pin(sending)).await?;
        Ok(call(task, answer))
    }

    /// What the other agent is told about the time that it has: as long as somebody takes its answer.
    fn time_for(&self, answer_for: AnswerFor) -> Option<Json> {
        let engine = self.engine_arc();
        let left_ms = self.deadline().ms_since(engine.now());
        let run = u64::try_from(left_ms / 1000).unwrap_or_default().max(1);
        let seconds = match answer_for {
            AnswerFor::Run => run,
            // The call may be handed over at the very end of the run.
            AnswerFor::Task => run.saturating_add(engine.limits.continuation_s_max.into()),
        };
        Json::from_serialize(&HashMap::from([(AT_MOST_KEY, seconds)])).ok()
    }

    /// The id of the call that is made next. It does not depend on the attempt, nor on the order in which different calls are made.
    fn next_call_id(&self, agent: &str, message: &Message) -> Result<String, AgentCallError> {
        let anonymous = Message { message_id: "".into(), role: Role::User, ..message.clone() };
        let mut bytes = (agent.len() as u64).to_be_bytes().to_vec();
        bytes.extend(agent.as_bytes());
        bytes.extend(anonymous.canonical());
        let digest: String = sha256(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let mut state = self.calls().lock();
        if state.count >= TURN_CALLS_MAX {
            return Err(AgentCallError::TooManyCalls { max: TURN_CALLS_MAX });
        }
        state.count += 1;
        let number = state.made.entry(digest.clone()).or_insert(0);
        *number += 1;
        Ok(format!("{}-{}-{digest}-{number}", self.record().id, self.number()))
    }

    pub(super) fn call_not_kept(&self, error: &StoreError) -> AgentCallError {
        let _ = self.engine_arc().store_failed(error);
        self.note_unwritten();
        AgentCallError::Unavailable
    }
}

impl Call {
    /// Names the call: the id of its message, and the `invocationId` in the metadata of the request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The agent that was called.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.callee.id
    }

    /// The other agent's task; none if it has answered with a message alone.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.task.as_ref()
    }

    /// Waits until the other agent's task has settled: it has ended, or waits for an answer. How long is bounded by the time that this
    /// run may take. If this task is canceled meanwhile, the other one is as well.
    ///
    /// # Errors
    /// [`AgentCallError::Canceled`]; [`AgentCallError::Refused`] if the other agent has lost the task.
    pub async fn wait(&self) -> Result<CallAnswer, AgentCallError> {
        let settled = async { Some(self.settled().await) };
        match self.unless_canceled(settled).await? {
            Some(answer) => answer,
            None => Err(AgentCallError::Stopped),
        }
    }

    /// Waits for the answer for so long; none if it is not there then. The call goes on.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub async fn wait_for(&self, limit: Duration) -> Result<Option<CallAnswer>, AgentCallError> {
        let settled = async { timeout(limit, self.settled()).await.ok() };
        self.unless_canceled(settled).await?.transpose()
    }

    /// Lets the answer come as the next message of this task, although the agent does not wait for it: the task must then wait for
    /// input when the agent returns ([`Turn::ask`]). The next turn reads it with [`Turn::called_back`]. If the other agent takes longer
    /// than [`Limits::continuation_s_max`](crate::limits::Limits), the message says that it didn't respond in time.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn deliver_later(&self) -> Result<(), AgentCallError> {
        self.hand_over(None).await
    }

    /// Has the answer posted to this URL, whatever becomes of this task meanwhile. The body is JSON with `call`, `agent`, `taskId`,
    /// `state` and `text`, and has the same `Idempotency-Key` if it is posted again.
    ///
    /// # Errors
    /// [`AgentCallError::Refused`] if the server may not post to this address.
    pub async fn deliver_to(&self, url: &str) -> Result<(), AgentCallError> {
        let checked = self.turn.engine_arc().webhook.check(url);
        checked.map_err(|why| refused(&self.callee.id, ProtocolError::invalid("url", why)))?;
        self.hand_over(Some(url.to_owned())).await
    }

    async fn hand_over(&self, deliver_to: Option<String>) -> Result<(), AgentCallError> {
        self.close();
        self.note(hand_over(self.turn.engine_arc(), deliver_to)).await?;
        self.turn.engine_arc().look_later(&self.id);
        Ok(())
    }

    /// Cancels the other agent's task.
    ///
    /// # Errors
    /// [`AgentCallError::Refused`] if it has ended already.
    pub async fn cancel(&self) -> Result<(), AgentCallError> {
        let Some(task) = &self.task else { return Ok(()) };
        self.close();
        let canceled = cancel_remote(&self.callee, self.turn.owner(), task, self.turn.trace()).await;
        let step = CallStep::Failed { error: "canceled by the agent that made it".to_owned() };
        self.note(step).await?;
        canceled.map_err(|error| refused(&self.callee.id, error))
    }

    async fn settled(&self) -> Result<CallAnswer, AgentCallError> {
        if let Some(answer) = &self.answer {
            self.close();
            return Ok(answer.clone());
        }
        let Some(task) = &self.task else { return Err(AgentCallError::Stopped) };
        let caller = caller(self.turn.owner(), self.turn.trace());
        match settle(&*self.callee.endpoint, &caller, task).await {
            Ok(task) => {
                self.close();
                // One that asks something back is not over: it is canceled with this task.
                self.note(if task.state().is_terminal() { CallStep::Used } else { CallStep::Answered }).await?;
                Ok(CallAnswer { task: Some(task), message: None })
            }
            Err(error) => {
                self.close();
                self.note(CallStep::Failed { error: error.to_string() }).await?;
                Err(refused(&self.callee.id, error))
            }
        }
    }

    /// Waits, unless this task is canceled meanwhile; then the other one is canceled.
    async fn unless_canceled<T>(&self, wait: impl Future<Output = T>) -> Result<T, AgentCallError> {
        tokio::select! {
            biased;
            done = wait => Ok(done),
            () = self.turn.cancelled() => {
                // What could not be canceled in time is canceled when the run has ended.
                let _ = timeout(CALL_CANCEL_MAX, self.cancel()).await;
                Err(AgentCallError::Canceled { agent: self.callee.id.clone(), task: self.task.clone() })
            }
        }
    }

    /// The run has the answer of this call, or wants none.
    fn close(&self) {
        self.turn.calls().lock().open.retain(|open| *open != self.id);
    }

    async fn note(&self, step: CallStep) -> Result<(), AgentCallError> {
        let engine = self.turn.engine_arc();
        let Some(calls) = engine.store.calls() else { return Err(AgentCallError::NotSupported) };
        match calls.change_call(&self.id, step).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.turn.call_not_kept(&error)),
        }
    }
}

/// Sends the message of a call, and records which task the other agent has for it.
async fn send_and_note(
    engine: Arc<EngineState>,
    turn: Turn,
    callee: Callee,
    id: String,
    send: SendMessage,
) -> Result<(Option<TaskId>, Option<CallAnswer>), AgentCallError> {
    let Some(calls) = engine.store.calls() else { return Err(AgentCallError::NotSupported) };
    let note = async |step: CallStep| calls.change_call(&id, step).await.map_err(|error| turn.call_not_kept(&error));
    if !callee.recognises_repeats {
        note(CallStep::Left(true)).await?;
    }
    let mut span = turn.call_span(&callee.id);
    let mut caller = caller(turn.owner(), span.as_ref().map(|span| span.context()).or(turn.trace()));
    caller.idempotency_key = Some(id.clone());
    let answered = callee.endpoint.call(caller, Request::SendMessage(send.into())).await;
    if let (Some(span), Err(error)) = (&mut span, &answered) {
        // Its text may quote the message.
        span.fails(if error.retry_after_s().is_some() { "unavailable" } else { "refused" });
    }
    drop(span);
    let error = match answered {
        Ok(Reply::SentTask(view)) => {
            let task = view.task;
            let step = CallStep::Remote { task: task.id.clone(), context: Some(task.context_id.clone()) };
            let row = note(step).await?;
            tracing::debug!(task = %turn.record().id, agent = callee.id, remote = %task.id, "agent called");
            let ended = turn.calls().lock().ended.and_then(CallEnding::of);
            if let (Some(row), Some(ending)) = (row, ended) {
                // The run has ended in the meantime, and did not know this task.
                end_call(&engine, row, ending).await;
            }
            return Ok((Some(task.id.clone()), None));
        }
        Ok(Reply::SentMessage(message)) => {
            note(CallStep::Used).await?;
            return Ok((None, Some(CallAnswer { task: None, message: Some(message) })));
        }
        Ok(_) => {
            ProtocolError::InvalidAgentResponse { reason: "an answer of another kind than was asked for".to_owned() }
        }
        Err(error) => error,
    };
    if let ProtocolError::Unavailable { reason, .. } = &error {
        // The message has not arrived, or the agent recognises it when it comes again.
        note(CallStep::Left(false)).await?;
        return Err(AgentCallError::Unreachable { agent: callee.id, reason: reason.clone() });
    }
    note(CallStep::Failed { error: error.to_string() }).await?;
    Err(refused(&callee.id, error))
}

fn refused(agent: &str, error: ProtocolError) -> AgentCallError {
    AgentCallError::Refused { agent: agent.to_owned(), error }
}

/// Waits until a task has settled: by its stream where there is one, else by asking from time to time. An agent that does not answer
/// is asked again; one that no longer has the task is an error.
pub(crate) async fn settle(endpoint: &dyn Endpoint, caller: &Caller, id: &TaskId) -> Result<Arc<Task>, ProtocolError> {
    let mut pause = CALL_LOOK_FIRST;
    loop {
        if let Ok(Reply::Stream(updates)) =
            endpoint.call(caller.clone(), Request::SubscribeToTask { id: id.clone() }).await
        {
            follow(updates).await;
        }
        let request = Request::GetTask { id: id.clone(), history_length: Some(0) };
        match endpoint.call(caller.clone(), request).await {
            Ok(Reply::Task(view)) if view.task.state().is_settled() => return Ok(view.task),
            Ok(_) => {}
            Err(error) if error.retry_after_s().is_some() => {}
            Err(error) => return Err(error),
        }
        sleep(pause).await;
        pause = (pause * 2).min(CALL_LOOK_LONGEST);
    }
}

/// Reads a stream until the task has settled, or the stream ends.
async fn follow(mut updates: UpdateStream) {
    while let Some(Ok(frame)) = poll_fn(|cx| updates.as_mut().poll_next(cx)).await {
        let is_settled = match &frame.update.update {
            Update::Task(view) => view.task.state().is_settled(),
            Update::Status(update) => update.status.state.is_settled(),
            Update::Artifact(_) => false,
            Update::Message(_) => true,
        };
        if is_settled {
            return;
        }
    }
}
