//! Drives an agent through its turns, independently of any connection: ends it when it is canceled or out of time,
//! records how it ended, and continues with the next waiting message.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, RunCommand, TurnEnd};
use switchboard_core::model::{FAILED_UNTOLD, Part, TIMED_OUT, Timestamp};
use tokio_util::sync::CancellationToken;

use super::agent::{AgentFuture, Registered};
use super::agent_error::AgentError;
use super::agent_error::mark_invalid_response;
use super::run_slots::RunHold;
use super::run_slots::{Begun, RunSlot, Waited};
use super::run_time::end_pause_in_time;
use super::run_time::queued_too_long;
use super::turn::TurnStart;
use super::turn::{Background, Turn};
use crate::commit::WriteError;
use crate::escaped::Escaped;
use crate::ports::store::StoredTask;
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::{AttachedRun, Guard, RunEnd};
use crate::supervisor::{Kind, poll_when_woken};

/// How an agent's function ended.
pub(crate) enum Outcome {
    Returned,
    Failed(AgentError),
    /// The agent panicked with this message.
    Panicked(String),
}

impl Outcome {
    /// The command that records this outcome, and the ending under which the run is counted. The cause of a failure is
    /// logged under an incident id, and the client gets the text meant for it.
    pub(crate) fn into_end(self, engine: &EngineState, agent: &Registered, turn: &Turn) -> (TurnEnd, RunEnd) {
        let (error, how) = match self {
            Self::Returned => return (TurnEnd::Returned, RunEnd::Completed),
            Self::Failed(error) => {
                let how = error.run_end();
                (error, how)
            }
            Self::Panicked(text) => (AgentError::with_details(PANICKED, text), RunEnd::Panicked),
        };
        let incident = engine.uuid();
        let record = turn.record();
        // An error after a request to stop is no incident, nor is a failure that the agent chose. The log line of the
        // ended task covers both.
        if error.is_incident() && !turn.is_cancelled() {
            let cause = error.cause_text().unwrap_or_default();
            let trace_id = turn.trace().map(|trace| trace.trace_id_text());
            tracing::warn!(
                task = %Escaped::new(record.id.as_str()), agent = %record.scope.agent, attempt = turn.attempt(),
                incident = &*incident, reason = how.word(), what = %Escaped::new(error.client_text()),
                cause = %Escaped::new(&cause), trace_id, "run failed"
            );
        }
        record.fails_by(how.word());
        let text = error.text_for_client(agent.source.traits().error_details, &incident);
        let message = turn.agent_message(vec![Part::text(text)]);
        (TurnEnd::Failed { message: Some(mark_invalid_response(message, &error)) }, how)
    }
}

/// What the client of an agent that panicked reads.
const PANICKED: &str = FAILED_UNTOLD;

/// The message of a panic. Nearly every panic has a text.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a text"))
}

/// Polls an agent once, and turns a panic into an outcome.
pub(crate) fn poll_agent(future: &mut AgentFuture, cx: &mut Context<'_>) -> Poll<Outcome> {
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(()))) => Poll::Ready(Outcome::Returned),
        Ok(Poll::Ready(Err(error))) => Poll::Ready(Outcome::Failed(error)),
        Err(payload) => Poll::Ready(Outcome::Panicked(panic_text(&*payload))),
    }
}

/// Asks an agent whether it takes a message now. A panic refuses the message; its cause is logged under the incident that the client reads.
pub(crate) fn admitted(engine: &EngineState, agent: &Registered) -> Result<(), ProtocolError> {
    match catch_unwind(AssertUnwindSafe(|| agent.source.admit())) {
        Ok(answer) => answer,
        Err(payload) => {
            let (incident, cause) = (engine.uuid(), panic_text(&*payload));
            tracing::error!(
                agent = %agent.name, incident = &*incident, cause = %Escaped::new(&cause),
                "an agent panicked when it was asked whether it takes a message"
            );
            Err(ProtocolError::Internal { incident: incident.to_string() })
        }
    }
}

/// Waits for work of an agent outside its runs. A panic ends that work alone, and is logged.
pub(super) async fn caught(agent: &Registered, what: &'static str, mut work: BoxFuture<'static, ()>) {
    let polled = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) => Poll::Ready(None),
        Err(payload) => Poll::Ready(Some(panic_text(&*payload))),
    });
    if let Some(cause) = polled.await {
        tracing::error!(agent = %agent.name, cause = %Escaped::new(&cause), "an agent panicked while it was {what}");
    }
}

/// Polls an agent once; none if it has to wait for something. The poll registers no waker: the agent is polled again
/// when its run is spawned, and registers the right waker then.
pub(crate) fn poll_once(future: &mut AgentFuture) -> Option<Outcome> {
    match poll_agent(future, &mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// An agent at work.
pub(crate) struct Run {
    engine: Arc<EngineState>,
    agent: Arc<Registered>,
    turn: Turn,
    future: AgentFuture,
    /// None if the record was never committed.
    guard: Option<Guard>,
    begun: Begun,
    held: RunHold,
    /// The run was registered so long after its lease was taken that another process may have claimed it meanwhile.
    is_late: bool,
}

/// What a run starts from, besides its turn.
pub(crate) struct RunStart {
    pub(crate) begun: Begun,
    /// The earliest time at which the lease was taken.
    pub(crate) leased_at: Timestamp,
    /// Whether the turn may have been worked on before.
    pub(crate) interrupted: bool,
    pub(crate) held: RunHold,
}

enum Ended {
    By(Outcome),
    TimedOut,
    /// The run waited for its slot for longer than a task may.
    NotStarted {
        max_s: u32,
    },
    CancelTimedOut,
    /// The run no longer counts: its lease is lost, or its turn is over without it.
    LetGo,
}

impl Run {
    /// Starts the current turn of a record.
    pub(crate) fn begin(
        engine: Arc<EngineState>,
        agent: Arc<Registered>,
        record: Arc<Record>,
        stored: &StoredTask,
        background: Background,
        from: RunStart,
    ) -> Option<Self> {
        let RunStart { begun, leased_at, interrupted, held } = from;
        let inbound = stored.folded.open_turns.first()?.clone();
        let run_max = engine.run_max(agent.source.traits(), inbound.metadata.as_ref(), stored.head.deadline);
        let mut start = TurnStart::first(record, inbound, &stored.head, run_max, background, engine.now());
        start.interrupted = interrupted;
        start.checkpoint.clone_from(&stored.folded.checkpoint);
        start.earlier_checkpoint.clone_from(&stored.folded.earlier_checkpoint);
        let turn = Turn::direct(engine.clone(), start, stored.folded.task.clone());
        if stored.head.cancel_requested {
            turn.cancel_token().cancel();
        }
        let future = agent.source.start(turn.clone());
        Some(Self::new(engine, agent, turn, future, begun, leased_at, held))
    }

    /// A run whose agent has been started. It is registered from here on, so that a cancel finds it.
    pub(crate) fn new(
        engine: Arc<EngineState>,
        agent: Arc<Registered>,
        turn: Turn,
        future: AgentFuture,
        begun: Begun,
        leased_at: Timestamp,
        held: RunHold,
    ) -> Self {
        let record = turn.record();
        let register = |key| engine.runs.register(record.clone(), key, turn.fence(), turn.cancel_token().clone());
        let guard = record.key().map(register);
        let is_late = engine.now().ms_since(leased_at) >= i64::from(engine.limits.lease_ms) / 2;
        Self { engine, agent, turn, future, guard, begun, held, is_late }
    }

    /// Lets the run continue as a background task.
    pub(crate) fn spawn(self) {
        let engine = self.engine.clone();
        engine.supervisor.spawn(Kind::Run, self.go());
    }

    /// The run, for a caller that waits for its outcome.
    pub(crate) fn attach(self) -> AttachedRun {
        let (engine, writing) = (self.engine.clone(), self.turn.writing());
        AttachedRun { run: engine.supervisor.attached(Box::pin(self.go())), writing }
    }

    async fn go(self) {
        if !self.turn.inbound().dialect.rules().limits_pauses {
            return self.drive().await;
        }
        let (engine, traits) = (self.engine.clone(), self.agent.source.traits().clone());
        let record = self.turn.record().clone();
        self.drive().await;
        // Shutdown waits for runs, but need not wait for this timer.
        let ending = end_pause_in_time(engine.clone(), traits, record);
        engine.supervisor.spawn(Kind::Sweep, ending);
    }

    async fn drive(mut self) {
        loop {
            let Some(guard) = self.guard.take() else { return };
            if self.is_late && !holds_lease(&self.engine, &self.turn).await {
                return;
            }
            let is_known = matches!(self.begun, Begun::Already(_));
            let waited = match std::mem::replace(&mut self.begun, Begun::NotYet) {
                // The run was canceled before the agent was started or resumed.
                Begun::Already(Some(_)) if self.turn.is_cancelled() => Waited::Canceled,
                Begun::Already(Some(slot)) => Waited::HasSlot(slot),
                Begun::Already(None) | Begun::NotYet => {
                    self.engine.wait_for_slot(&self.agent, &self.turn, guard.lost()).await
                }
            };
            let mut slot = None;
            let ended = match waited {
                Waited::LetGo => return,
                // The agent has not begun, so there is nothing to stop.
                Waited::Canceled => Ended::By(Outcome::Returned),
                Waited::TooLate { max_s } => Ended::NotStarted { max_s },
                Waited::HasSlot(taken) => {
                    if !is_known && !record_beginning(&self.engine, &self.turn).await {
                        return;
                    }
                    slot = Some(taken);
                    self.held.begins();
                    self.agent.source.runs().start();
                    guard.begins();
                    self.wait(guard.lost()).await
                }
            };
            let (end, how) = match ended {
                Ended::LetGo => {
                    let shown = RunEnd::shown_by(&self.turn.record().head(), self.turn.number());
                    self.turn.end_calls(shown);
                    return self.count(shown, slot.is_some());
                }
                // The agent did not fail: the store did not take what it wrote. The lease runs out, and then the run is
                // handled as if its process had died.
                Ended::By(Outcome::Failed(error)) if self.turn.has_unwritten() => {
                    let (record, error) = (self.turn.record(), format!("{error:?}"));
                    tracing::warn!(
                        task = %Escaped::new(record.id.as_str()), agent = %self.agent.name, attempt = self.turn.attempt(),
                        error = %Escaped::new(&error), "a run was interrupted by the store"
                    );
                    return self.count(RunEnd::StoreFailed, slot.is_some());
                }
                Ended::By(outcome) => outcome.into_end(&self.engine, &self.agent, &self.turn),
                Ended::TimedOut => self.time_out(TIMED_OUT.to_owned(), RunEnd::TimedOut),
                Ended::NotStarted { max_s } => self.time_out(queued_too_long(max_s), RunEnd::NotStarted),
                // A caller requested the cancellation, so the turn ends as canceled.
                Ended::CancelTimedOut => (TurnEnd::Returned, RunEnd::Canceled),
            };
            // The timeout is written under the run's fence, like all its writes: a process that was frozen may have
            // been replaced, and the run that replaced this one has its own time.
            let (fence, inbound) = (self.turn.fence(), self.turn.inbound().clone());
            let command = Command::Run { fence, inbound, command: RunCommand::EndTurn(end) };
            let ended_at = self.engine.now();
            let begun = slot.is_some();
            // The next message of the task keeps the slot, unless other runs wait for it.
            let slot = slot.filter(|_| !self.engine.is_crowded(&self.agent));
            let wrote = match record_end(&self.engine, &self.turn, command, slot.is_none()).await {
                Recorded::Written => true,
                Recorded::EndedBefore => false,
                Recorded::Superseded => return self.count(RunEnd::Superseded, begun),
                Recorded::NotTaken => return self.count(RunEnd::StoreFailed, begun),
            };
            drop(guard);
            let shown = self.turn.record().with_head(|head| RunEnd::shown_by(head, self.turn.number()));
            // The task records only that it failed, so the reason is taken from this run.
            let how = if self.turn.is_over_storage() { RunEnd::StorageFull } else { how };
            let how = if (wrote || how == RunEnd::StorageFull) && shown == RunEnd::Failed { how } else { shown };
            self.turn.end_calls(how);
            self.count(how, begun);
            let (running, turn) = self.turn.record().with_head(|head| (head.running, head.turn));
            if !running || turn <= self.turn.number() {
                return;
            }
            match next_turn(&self.engine, &self.agent, &self.turn, slot, ended_at).await {
                Some(next) => self = next,
                None => return,
            }
        }
    }

    fn time_out(&self, text: String, how: RunEnd) -> (TurnEnd, RunEnd) {
        self.turn.record().fails_by(how.word());
        (TurnEnd::Failed { message: Some(self.turn.agent_message(vec![Part::text(text)])) }, how)
    }

    /// Counts the end of the run; its agent was started if it has `begun`.
    fn count(&self, how: RunEnd, begun: bool) {
        let runs = self.agent.source.runs();
        self.turn.end_span(how);
        match begun {
            true => runs.end(how, self.turn.work_time().elapsed()),
            false => runs.end_unstarted(how),
        }
    }

    /// Runs the agent until it ends or must be ended.
    async fn wait(&mut self, lost: &CancellationToken) -> Ended {
        let run_max = self.turn.run_max() + self.agent.source.traits().wind_down;
        let grace = Duration::from_millis(u64::from(self.engine.limits.cancel_grace_ms));
        let cancel = self.turn.cancel_token().clone();
        let turn = self.turn.clone();
        turn.work_time().begin();
        let future = &mut self.future;
        let out_of_time = async {
            match turn.inbound().dialect.rules().limits_pauses {
                true => tokio::time::sleep(run_max).await,
                false => turn.work_time().used_up(run_max).await,
            }
        };
        let canceled_too_long = async {
            cancel.cancelled().await;
            tokio::time::sleep(grace).await;
        };
        let must_end = std::pin::pin!(async {
            tokio::select! {
                biased;
                () = lost.cancelled() => Ended::LetGo,
                () = canceled_too_long => Ended::CancelTimedOut,
                // An agent that has ended its turn may tidy up for as long as it might have worked. Then it is dropped.
                () = out_of_time => {
                    if turn.record().with_head(|head| head.running) { Ended::TimedOut } else { Ended::LetGo }
                }
            }
        });
        let mut must_end = poll_when_woken(must_end);
        let mut is_timed = false;
        poll_fn(|cx| {
            // The agent comes first. What a run writes that no longer counts is refused by its fence.
            if let Poll::Ready(outcome) = turn.writes().poll(|| poll_agent(future, cx)) {
                return Poll::Ready(Ended::By(outcome));
            }
            // Timers are started when the agent waits for something other than the store. One that only answers needs none.
            is_timed = is_timed || !turn.writes().is_under_way(cx);
            if is_timed { Pin::new(&mut must_end).poll(cx) } else { Poll::Pending }
        })
        .await
    }
}

/// Whether the run is still held by this process. Another process may have claimed it while this one was frozen before
/// the run was registered.
async fn holds_lease(engine: &EngineState, turn: &Turn) -> bool {
    let Some(key) = turn.record().key() else { return false };
    match engine.store.renew_leases(vec![(key, turn.fence())], engine.limits.lease_ms).await {
        Ok(lost) => lost.is_empty(),
        Err(error) => {
            // The lease runs out and the sweeper takes the turn up again.
            let _ = engine.store_failed(&error);
            false
        }
    }
}

/// Records that a claimed or waiting run begins; false if it may not, because this process has lost it or the store
/// failed.
async fn record_beginning(engine: &EngineState, turn: &Turn) -> bool {
    let Some(key) = turn.record().key() else { return false };
    match engine.store.begin_runs(vec![(key, turn.fence())]).await {
        Ok(lost) => lost.is_empty(),
        Err(error) => {
            // The lease runs out and the sweeper takes the turn up again.
            let _ = engine.store_failed(&error);
            false
        }
    }
}

/// The result of recording how a turn ended.
enum Recorded {
    Written,
    /// The agent's own last write had already ended the turn.
    EndedBefore,
    /// The run no longer counts: another process has taken over, or a caller ended the turn.
    Superseded,
    /// The store did not take it before the server stopped.
    NotTaken,
}

/// Records how the turn ended, and tries again until the store has answered or the server shuts down.
async fn record_end(engine: &EngineState, turn: &Turn, mut command: Command, next_waits: bool) -> Recorded {
    let mut pause = Duration::from_millis(50);
    loop {
        match engine.write_before_run(turn.record(), command.clone(), next_waits).await {
            Ok(events) if events.is_empty() => return Recorded::EndedBefore,
            Ok(_) => return Recorded::Written,
            Err(WriteError::Refused(_) | WriteError::Duplicate(_)) => return Recorded::Superseded,
            // What the agent returned is too much to be stored. This end is not.
            Err(WriteError::OverStorage(over)) if !turn.is_over_storage() => {
                let (fence, inbound) = (turn.fence(), turn.inbound().clone());
                let failed = RunCommand::EndTurn(turn.failed_over_storage(over));
                command = Command::Run { fence, inbound, command: failed };
            }
            Err(WriteError::OverStorage(_)) => return Recorded::NotTaken,
            Err(WriteError::Failed(_)) if engine.supervisor.is_draining() => return Recorded::NotTaken,
            Err(WriteError::Failed(_)) => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(5));
            }
        }
    }
}

async fn next_turn(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    turn: &Turn,
    slot: Option<RunSlot>,
    leased_at: Timestamp,
) -> Option<Run> {
    let record = turn.record();
    // The next turn begins under the fence after this one. If the fence is another, another process has claimed the
    // task.
    let fence = turn.fence() + 1;
    match engine.stored_task(&record.scope, &record.id).await {
        Ok(Some(stored)) if stored.head.running && stored.head.fence == fence => {
            let background = engine.background(agent, &record.scope, &stored).await;
            let begun = slot.map_or(Begun::NotYet, |slot| Begun::Already(Some(slot)));
            let waits = matches!(begun, Begun::NotYet);
            let held = engine.hold_accepted(&record.scope.owner, &stored.folded.task, waits);
            let from = RunStart { begun, leased_at, interrupted: false, held };
            Run::begin(engine.clone(), agent.clone(), record.clone(), &stored, background, from)
        }
        Ok(_) => None,
        Err(error) => {
            // The lease runs out and the sweeper takes the turn up again.
            let _ = engine.store_failed(&error);
            None
        }
    }
}
