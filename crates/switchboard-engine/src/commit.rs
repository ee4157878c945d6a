//! The only writer of task logs. A command is decided on the head that this process holds, and its events are appended
//! if the task's version has not changed meanwhile. If it has, the head is loaded again and the command is decided
//! again, a limited number of times. After that the followers in this process get the events, and other processes get a
//! hint. A commit that ends a task logs one line.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use switchboard_core::call::BoxFuture;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, Event, Folded, Head, Phase, Refusal, decide, is_needed_to_fold};
use switchboard_core::model::{TaskId, TaskState, Timestamp};

use crate::escaped::Escaped;
use crate::ports::audit::AuditEntry;
use crate::ports::store::{
    Accept, Accepted, Commit, CommitError, LeaseChange, OverStorage, PushChange, StoreError, Target, TaskKey,
};
use crate::ports::trace::attribute;
use crate::ports::{Hint, News};
use crate::state::record::Record;
use crate::state::{Counters, EngineState};

/// Events that were decided together, with the head they were decided on and the head after them.
pub(crate) struct Step {
    before: Basis,
    after: Arc<Head>,
    pub(crate) events: Arc<[Event]>,
    /// When the last of it was decided.
    at: Timestamp,
}

impl Step {
    pub(crate) fn from(before: &Head, events: Arc<[Event]>, at: Timestamp) -> Self {
        let mut after = before.clone();
        for event in &*events {
            after.apply(event);
        }
        Self::of(Basis::of(before), after, events, at)
    }

    /// The step to a head that already contains the events.
    pub(crate) fn of(before: Basis, mut after: Head, events: Arc<[Event]>, at: Timestamp) -> Self {
        after.version = before.version + 1;
        Self { before, after: Arc::new(after), events, at }
    }
}

/// What a commit needs from the head it was decided on.
#[derive(Clone, Copy)]
pub(crate) struct Basis {
    version: u64,
    state: TaskState,
    status_at: Timestamp,
    running: bool,
    fence: u64,
}

impl Basis {
    pub(crate) fn of(head: &Head) -> Self {
        let Head { version, state, status_at, running, fence, .. } = *head;
        Self { version, state, status_at, running, fence }
    }
}

/// What goes into the same transaction as the events.
#[derive(Default)]
pub(crate) struct Extras {
    pub(crate) push: Vec<PushChange>,
    pub(crate) accept: Option<Accept>,
    /// An entry of the audit log.
    pub(crate) audit: Option<Box<AuditEntry>>,
    /// The fold after this commit, if it is known.
    pub(crate) folded: Option<Arc<Folded>>,
    /// The run that starts with this commit has no slot yet. That it has begun is recorded when it gets one.
    pub(crate) waits: bool,
    /// The process that commits does not start the run: the one that claims it does, this or another.
    pub(crate) enqueues: bool,
    /// Set if the step takes over a run whose lease is free; the value says whether the earlier run was interrupted.
    pub(crate) claims: Option<Claim>,
}

#[derive(Clone, Copy)]
pub(crate) struct Claim {
    interrupted: bool,
}

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum WriteError {
    Refused(Refusal),
    Duplicate(Accepted),
    /// More bytes would be stored than may be.
    OverStorage(OverStorage),
    /// The store failed, and the client was given an incident id.
    Failed(ProtocolError),
}

impl WriteError {
    /// The error that a caller gets.
    pub(crate) fn into_protocol(self) -> ProtocolError {
        match self {
            Self::Refused(Refusal::Protocol(error)) | Self::Failed(error) => error,
            Self::OverStorage(over) => over.refusal(),
            Self::Refused(Refusal::Fenced | Refusal::Closed { .. }) | Self::Duplicate(_) => {
                ProtocolError::unsupported("the task has changed meanwhile; read it again")
            }
        }
    }
}

impl EngineState {
    /// Carries out a command and returns the events it caused.
    pub(crate) async fn write(&self, record: &Record, command: Command) -> Result<Arc<[Event]>, WriteError> {
        self.write_before_run(record, command, false).await
    }

    /// The same for a command that may begin another turn; `waits` means that its run has no slot yet.
    pub(crate) async fn write_before_run(
        &self,
        record: &Record,
        command: Command,
        waits: bool,
    ) -> Result<Arc<[Event]>, WriteError> {
        let fence = match &command {
            Command::Run { fence, .. } => Some(*fence),
            _ => None,
        };
        for _ in 0..self.limits.commit_attempts_max {
            let (head, now) = (record.head(), self.now());
            let decided = decide(&head, command.clone(), &self.bounds(), now);
            if let Err(Refusal::Fenced) = &decided {
                Counters::add(&self.counters.fenced_writes);
            }
            let events = decided.map_err(WriteError::Refused)?;
            if events.is_empty() {
                return Ok(Arc::from(events));
            }
            let step = Step::from(&head, events.into(), now);
            let events = step.events.clone();
            match self.append(record, step, fence, Extras { waits, ..Extras::default() }).await {
                Err(AppendError::Conflict) => self.reload(record).await?,
                Err(AppendError::Write(error)) => return Err(error),
                Ok(()) => return Ok(events),
            }
        }
        Err(WriteError::Failed(contended(&record.id)))
    }

    /// Takes over a run whose lease is free, by a commit. False if the lease is no longer free: another process has
    /// claimed the run, its holder has renewed the lease, or the task has changed.
    pub(crate) async fn claim(&self, record: &Record, interrupted: bool) -> Result<bool, StoreError> {
        let (head, now) = (record.head(), self.now());
        let Ok(events) = decide(&head, Command::Claim { interrupted }, &self.bounds(), now) else {
            return Ok(false);
        };
        let extras = Extras { claims: Some(Claim { interrupted }), ..Extras::default() };
        let (asked, head, _) = self.ask_store(record, Step::from(&head, events.into(), now), None, extras);
        match asked.await {
            Ok(_) => {
                if interrupted {
                    Counters::add(&self.counters.lease_steals);
                }
                // A claim is not visible, so followers of the task have nothing to read.
                record.saw(head);
                Ok(true)
            }
            Err(
                CommitError::Conflict
                | CommitError::Fenced
                | CommitError::Duplicate(_)
                | CommitError::Full
                | CommitError::OverStorage(_),
            ) => Ok(false),
            Err(CommitError::Store(error)) => Err(error),
        }
    }

    /// Appends a decided step, if the record is still where the step was decided. The request goes to the store at
    /// once. The returned future waits for the answer and holds only what that needs.
    pub(crate) fn append<'a>(
        &'a self,
        record: &'a Record,
        step: Step,
        fence: Option<u64>,
        extras: Extras,
    ) -> impl Future<Output = Result<(), AppendError>> + Send + 'a {
        let (events, at) = (step.events.clone(), step.at);
        let ends = step.after.is_closed() && !(step.before.state.is_terminal() && step.before.version > 0);
        let span = self.tracer.as_ref().and_then(|tracer| record.trace.commit_span(tracer));
        let (asked, head, first_seq) = self.ask_store(record, step, fence, extras);
        async move {
            let answered = asked.await;
            if let Some(mut span) = span {
                span.says(attribute::COMMIT_EVENTS, i64::try_from(events.len()).unwrap_or(i64::MAX));
                if answered.is_err() {
                    span.fails("the store did not take the commit");
                }
            }
            if ends && answered.is_ok() {
                self.log_ended(record, &head, at);
            }
            self.appended(record, head, first_seq, &events, answered)
        }
    }

    /// Hands a commit to the store. Returns the pending answer, the head after the commit, and the number of its first
    /// visible event.
    fn ask_store(
        &self,
        record: &Record,
        step: Step,
        fence: Option<u64>,
        extras: Extras,
    ) -> (BoxFuture<'_, Result<TaskKey, CommitError>>, Arc<Head>, u64) {
        let Extras { push, accept, audit, folded, waits, enqueues, claims } = extras;
        let Step { before, mut after, events, at } = step;
        let target = match record.key() {
            Some(key) => Target::Existing { key, expected_version: before.version },
            None => Target::New { scope: record.scope.clone() },
        };
        let head = Arc::make_mut(&mut after);
        for change in &push {
            match change {
                PushChange::Put { .. } => head.push_configs += 1,
                PushChange::Delete { .. } => head.push_configs = head.push_configs.saturating_sub(1),
            }
        }
        let was_running = before.running && before.version > 0;
        let paused_at = (before.state == TaskState::AuthRequired).then_some(before.status_at);
        // A run that is taken over has the deadline of its turn, and a lease of another kind.
        let begins = claims.is_none() && head.running && (!was_running || head.fence != before.fence);
        let lease_ms = self.limits.lease_ms;
        let lease = match claims {
            Some(Claim { interrupted }) => LeaseChange::Claim { lease_ms, interrupted },
            None if begins && enqueues => LeaseChange::Keep,
            None if begins => LeaseChange::Take { lease_ms, waits },
            None => LeaseChange::Keep,
        };
        if begins {
            head.deadline = self.limits.processing_s_max.map(|seconds| at.plus_ms(i64::from(seconds) * 1000));
        } else if !head.running {
            head.deadline = None;
        } else if let Some(paused_at) = paused_at.filter(|_| head.state != TaskState::AuthRequired) {
            head.deadline = head.deadline.map(|deadline| deadline.plus_ms(at.ms_since(paused_at)));
        }
        let commit = Commit {
            target,
            fence,
            folds: is_needed_to_fold(before.state, &events),
            events,
            head: after.clone(),
            lease,
            push,
            accept,
            audit,
            at,
            storage: self.limits.storage(),
            folded,
        };
        let first_seq = commit.first_seq();
        (self.store.commit(commit), after, first_seq)
    }

    /// Applies the store's answer, and tells followers.
    fn appended(
        &self,
        record: &Record,
        head: Arc<Head>,
        first_seq: u64,
        events: &[Event],
        answered: Result<TaskKey, CommitError>,
    ) -> Result<(), AppendError> {
        match answered {
            Ok(key) => {
                record.is_stored_as(key);
                let push_waits = head.push_configs > 0;
                let (seq, has_replied, running) = (head.seq, head.phase == Phase::Replied, head.running);
                record.saw(head);
                self.health.commit_failed.store(false, Ordering::Relaxed);
                if seq >= first_seq || has_replied {
                    if let Some(tail) = record.tail().or_else(|| self.tails.find(&record.id)) {
                        tail.take_commit(&record.context_id, first_seq, events);
                    }
                    let news = if has_replied { News::Replied } else { News::Event(seq) };
                    self.hints.notify(Hint { task: &record.id, news });
                }
                if running && events.iter().any(|event| matches!(event, Event::CancelRequested { .. })) {
                    self.hints.notify(Hint { task: &record.id, news: News::CancelRequested });
                }
                if push_waits {
                    self.deliveries_due.notify_one();
                }
                Ok(())
            }
            Err(CommitError::Conflict) => Err(AppendError::Conflict),
            Err(CommitError::Fenced) => {
                Counters::add(&self.counters.fenced_writes);
                Err(AppendError::Write(WriteError::Refused(Refusal::Fenced)))
            }
            Err(CommitError::Duplicate(accepted)) => Err(AppendError::Write(WriteError::Duplicate(accepted))),
            Err(CommitError::Full) => {
                let reason = "the store is full and every task in it is still active".to_owned();
                Err(AppendError::Write(WriteError::Failed(ProtocolError::Unavailable { reason, retry_after_s: 30 })))
            }
            Err(CommitError::OverStorage(over)) => {
                self.counters.storage_refusals[over.place()].fetch_add(1, Ordering::Relaxed);
                Err(AppendError::Write(WriteError::OverStorage(over)))
            }
            Err(CommitError::Store(error)) => Err(AppendError::Write(WriteError::Failed(self.store_failed(&error)))),
        }
    }

    /// Reads the head again after another commit came first.
    pub(crate) async fn reload(&self, record: &Record) -> Result<(), WriteError> {
        match self.store.head(&record.scope, &record.id).await {
            Ok(Some(stored)) => {
                record.saw(stored.head);
                Ok(())
            }
            Ok(None) => Err(WriteError::Failed(ProtocolError::task_not_found(&record.id))),
            Err(error) => Err(WriteError::Failed(self.store_failed(&error))),
        }
    }
}

pub(crate) enum AppendError {
    Conflict,
    Write(WriteError),
}

/// Every attempt conflicted with the commit of another writer.
pub(crate) fn contended(id: &TaskId) -> ProtocolError {
    let reason = format!("task {id} is being changed by many writers at once");
    ProtocolError::Unavailable { reason, retry_after_s: 1 }
}

/// The writes of a turn before it first had to wait. They are kept in memory and committed together with the acceptance of
/// its message.
pub(crate) struct Stage {
    /// The record as it is in the store.
    pub(crate) before: Basis,
    /// The record with `events` applied.
    pub(crate) head: Head,
    pub(crate) events: Vec<Event>,
    pub(crate) folded: Folded,
    /// How many of the events are the acceptance of the message; the others are the agent's.
    pub(crate) opening: usize,
    /// When the newest of the events happened.
    pub(crate) at: Timestamp,
}

impl Stage {
    /// A stage that begins with these events.
    pub(crate) fn begin(head: &Head, folded: Folded, events: Vec<Event>, at: Timestamp) -> Self {
        let (before, opening) = (Basis::of(head), events.len());
        let mut stage = Self { before, head: head.clone(), events, folded, opening, at };
        stage.apply_from(0);
        stage
    }

    /// Applies the events from this index on.
    pub(crate) fn apply_from(&mut self, place: usize) {
        for event in &self.events[place..] {
            self.head.apply(event);
            self.folded.apply(event);
        }
    }
}

impl EngineState {
    /// Logs the end of a task that a commit has just closed. The line contains no text of messages or artifacts.
    fn log_ended(&self, record: &Record, head: &Head, ended_at: Timestamp) {
        let (state, reason) = match (head.phase, head.state) {
            (Phase::Replied, _) => ("replied", "replied"),
            (_, TaskState::Failed) => ("failed", record.failed_by()),
            (_, state) => (state.word(), state.word()),
        };
        let is_completed = head.phase == Phase::Replied || head.state == TaskState::Completed;
        if is_completed && !self.logs_completed {
            return;
        }
        // The fields are computed only if the line is written. Its words are a field, too, so that they need no formatter.
        tracing::info!(
            message = "task ended", task = %Escaped::new(record.id.as_str()), agent = record.scope.agent.as_str(), state,
            duration_ms = ended_at.ms_since(record.opened_at()), attempts = head.attempt, reason,
            trace_id = record.trace.get().map(|trace| trace.trace_id_text())
        );
    }
}
