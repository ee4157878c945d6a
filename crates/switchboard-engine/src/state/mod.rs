//! What all parts of the engine share, and what it holds: the ports, the limits, the counters, the agents that it knows, and
//! what it keeps about runs (`runs`), followed tasks (`tail`) and webhooks (`webhooks`). `record` is a record as this process
//! knows it. The parts that work with the state import it, and it imports none of them.

pub(crate) mod record;
pub(crate) mod runs;
pub(crate) mod tail;
pub(crate) mod webhooks;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use switchboard_core::call::{Caller, Frame, Owner, SharedUpdate};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::Bounds;
use switchboard_core::model::{AgentCard, AgentName, TaskId, TaskView, Timestamp, TraceContext};
use tokio::sync::Notify;

use self::runs::{FairSlots, RunCounters, RunRegistry, SelfFire, StreamedRuns, Traits};
use self::tail::Tails;
use self::webhooks::{SharedEndpointQueues, WebhookTraces};
use crate::auditor::Auditor;
use crate::budget::Budget;
use crate::clock_guard::ClockGuard;
use crate::health::Health;
use crate::limits::Limits;
use crate::ports::download::NoLinks;
use crate::ports::store::{AcceptedTask, OverStorage, Scope, StoreError, StoredTask};
use crate::ports::trace::SpanKind;
use crate::ports::{Callees, Clock, Hints, Ids, Links, Store, Tracer, Webhook};
use crate::reply_size::{ReplyBudget, fit, fit_update, is_surely_light, is_surely_light_update, put_links};
use crate::spans::OpenSpan;
use crate::supervisor::Supervisor;

/// The card of an agent as it is now. Most never change; that of an agent whose work is done elsewhere follows the other card.
pub struct CurrentCard(RwLock<Arc<AgentCard>>);

impl CurrentCard {
    /// The card as it is now.
    #[must_use]
    pub fn get(&self) -> Arc<AgentCard> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The next reader gets this one.
    pub fn replace(&self, card: AgentCard) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(card);
    }
}

impl From<AgentCard> for CurrentCard {
    fn from(card: AgentCard) -> Self {
        Self(RwLock::new(Arc::new(card)))
    }
}

impl fmt::Debug for CurrentCard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CurrentCard").field(&self.get().name).finish()
    }
}

/// What the engine knows of an agent that it serves, without being able to start it.
pub(crate) struct KnownAgent {
    pub(crate) card: Arc<CurrentCard>,
    pub(crate) traits: Traits,
}

pub(crate) struct EngineState {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hints: Arc<dyn Hints>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) webhook: Arc<dyn Webhook>,
    /// Takes the spans of traces that are recorded.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// The agents that agents of this process can call: those of this process, and those that a port finds.
    pub(crate) callees: Arc<dyn Callees>,
    /// Set if asynchronous sends are started by a post of the server to itself.
    pub(crate) self_fire: Option<SelfFire>,
    pub(crate) limits: Limits,
    pub(crate) known_agents: HashMap<AgentName, KnownAgent>,
    /// The agents' names in order. This process resumes the runs of these agents.
    pub(crate) served: Arc<[AgentName]>,
    pub(crate) tails: Arc<Tails>,
    pub(crate) runs: RunRegistry,
    pub(crate) streamed_runs: StreamedRuns,
    /// One permit for each run that may be at work at once.
    pub(crate) run_slots: FairSlots,
    /// Runs that wait for a slot, by owner.
    pub(crate) queued_runs: Budget<Owner>,
    /// Bytes of the messages that runs hold, by owner; small ones are not counted.
    pub(crate) run_bytes: Budget<Owner>,
    pub(crate) supervisor: Supervisor,
    pub(crate) counters: Counters,
    pub(crate) health: Health,
    pub(crate) audit: Auditor,
    /// Whether a line is logged for each completed task. Tasks that end in another state are always logged.
    pub(crate) logs_completed: bool,
    pub(crate) clock_guard: ClockGuard,
    /// Where contents that do not fit into a reply can be downloaded; set once the server serves downloads.
    pub(crate) links: OnceLock<Arc<dyn Links>>,
    /// The queues that decide which endpoint may be called now.
    pub(crate) endpoint_queues: SharedEndpointQueues,
    /// The traces that webhooks belong to.
    pub(crate) webhook_traces: WebhookTraces,
    /// Wakes the delivery loop.
    pub(crate) deliveries_due: Notify,
    /// Wakes the loop that looks after continuations.
    pub(crate) calls_due: Notify,
    /// Wakes the sweeper.
    pub(crate) runs_due: Notify,
    /// Wakes the sweeper, too, because another process has given runs back.
    pub(crate) runs_released: Arc<Notify>,
    /// Wakes the loop that asks which runs of this process were canceled by others.
    pub(crate) cancels_due: Arc<Notify>,
    /// Wakes the loop that prunes.
    pub(crate) prune_due: Notify,
}

impl EngineState {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The wall time without changes that were made to the clock since the first call. Use it for durations that only
    /// this process measures.
    pub(crate) fn steady_now(&self) -> Timestamp {
        self.clock_guard.steady(self.now())
    }

    /// Whether the wall clock has jumped lately, so that nothing may be ended or removed because of its age.
    pub(crate) fn clock_is_held(&self) -> bool {
        self.clock_guard.compare(self.now());
        self.clock_guard.is_held()
    }

    /// Compares the wall clock with the monotonic one, and stores a hold when one begins.
    pub(crate) async fn watch_clock(&self) {
        self.clock_guard.compare(self.now());
        if let Some(until) = self.clock_guard.unrecorded() {
            match self.store.hold_until(until).await {
                Ok(()) => self.clock_guard.recorded(until),
                Err(error) => tracing::warn!(?error, "that the clock has jumped could not be recorded yet"),
            }
        }
    }

    /// Begins a span under a place in a trace, if there is a tracer and the trace is recorded.
    pub(crate) fn span(
        &self,
        parent: Option<&TraceContext>,
        kind: SpanKind,
        name: &'static str,
    ) -> Option<Box<OpenSpan>> {
        OpenSpan::begin(self.tracer.as_ref()?, parent?, kind, name)
    }

    /// Has a continuation looked at when it is due: by the loop or, on a server that posts to itself, by a request that waits until then.
    pub(crate) fn look_later(&self, call: &str) {
        match &self.self_fire {
            Some(self_fire) => self_fire.fire_call(&self.supervisor, call),
            None => self.calls_due.notify_one(),
        }
    }

    pub(crate) fn uuid(&self) -> Arc<str> {
        self.ids.uuid(self.now())
    }

    pub(crate) fn bounds(&self) -> Bounds {
        Bounds {
            inbox_messages_max: self.limits.inbox_messages_max,
            artifacts_max: self.limits.artifacts_max,
            artifact_bytes_max: self.limits.artifact_bytes_max,
            write_bytes_max: self.limits.reply_bytes_max,
        }
    }

    fn room_of(&self, bytes_max: u64) -> ReplyBudget {
        let links = self.links.get().cloned().unwrap_or_else(|| Arc::new(NoLinks));
        ReplyBudget { bytes_max, links }
    }

    /// What one frame of a stream may hold, in bytes.
    pub(crate) fn frame_bytes_max(&self) -> u64 {
        self.limits.frame_bytes_max.min(self.limits.reply_bytes_max)
    }

    /// What the reply to a caller may hold, in bytes.
    pub(crate) fn reply_bytes_max(&self, caller: &Caller) -> u64 {
        if caller.takes_frames { self.frame_bytes_max() } else { self.limits.reply_bytes_max }
    }

    /// A stored record that fits into a reply.
    pub(crate) async fn stored_task(&self, scope: &Scope, id: &TaskId) -> Result<Option<StoredTask>, StoreError> {
        let stored = self.store.task(scope, id, self.limits.reply_bytes_max).await?;
        Ok(stored.map(|stored| self.with_links(scope, stored)))
    }

    /// The same for a caller that waited for the commit of a version: the task as it was then, or later.
    pub(crate) async fn stored_task_since(
        &self,
        scope: &Scope,
        id: &TaskId,
        version: u64,
    ) -> Result<Option<StoredTask>, StoreError> {
        let stored = self.store.task_since(scope, id, version, self.limits.reply_bytes_max).await?;
        Ok(stored.map(|stored| self.with_links(scope, stored)))
    }

    /// Puts links in the place of contents that the store has left out of a record.
    pub(crate) fn with_links(&self, scope: &Scope, mut stored: StoredTask) -> StoredTask {
        if !stored.outlined.is_empty() {
            let outlined = std::mem::take(&mut stored.outlined);
            let task = &mut Arc::make_mut(&mut stored.folded).task;
            put_links(&self.room_of(self.limits.reply_bytes_max), scope, task, outlined);
        }
        stored
    }

    /// The same for a task as it was when a message was accepted.
    pub(crate) fn with_links_then(&self, scope: &Scope, mut then: AcceptedTask) -> AcceptedTask {
        if !then.outlined.is_empty() {
            let outlined = std::mem::take(&mut then.outlined);
            put_links(&self.room_of(self.limits.reply_bytes_max), scope, &mut then.task, outlined);
        }
        then
    }

    /// A view of a task that takes at most `bytes_max` bytes in a reply or a frame.
    pub(crate) fn fitted(&self, scope: &Scope, view: TaskView, bytes_max: u64) -> TaskView {
        match is_surely_light(&view, bytes_max) {
            true => view,
            false => fit(&self.room_of(bytes_max), scope, view),
        }
    }

    /// A frame that its client can receive. A frame that is too large is encoded again with links in place of contents.
    /// That encoding is small, so the followers of a task need not share it.
    pub(crate) fn fitted_frame(&self, scope: &Scope, frame: Frame) -> Frame {
        let bytes_max = self.frame_bytes_max();
        if is_surely_light_update(&frame.update.update, bytes_max) {
            return frame;
        }
        match fit_update(&self.room_of(bytes_max), scope, frame.seq, &frame.update.update) {
            Some(update) => Frame { update: SharedUpdate::new(update), ..frame },
            None => frame,
        }
    }

    /// Called when a record was created. If tasks are pruned in batches, this one may have exceeded the limit.
    pub(crate) fn note_opened(&self) {
        if self.limits.retention_tasks_batch > 0 {
            self.prune_due.notify_one();
        }
    }

    /// The error for a client when the store fails. It contains only an incident id, under which the log has the cause.
    pub(crate) fn store_failed(&self, error: &StoreError) -> ProtocolError {
        let incident = self.uuid().to_string();
        tracing::error!(incident, ?error, "store failed");
        self.health.store_failed(error);
        match error {
            StoreError::Unavailable(_) => ProtocolError::Unavailable {
                reason: format!("the store does not answer (incident {incident})"),
                retry_after_s: 1,
            },
            StoreError::Corrupt(_) | StoreError::Damaged(_) | StoreError::Pruned => {
                ProtocolError::Internal { incident }
            }
        }
    }
}

/// Counters since the start of the process, for `/metrics`.
#[derive(Default)]
pub struct Counters {
    /// Runs whose agent this process does not serve. Runs of served agents are counted per agent.
    pub unserved_runs: RunCounters,
    /// Commits that were refused because too many bytes would have been stored, by [`OverStorage::place`].
    pub storage_refusals: [AtomicU64; OverStorage::ALL.len()],
    /// Runs that were taken from a process that gave no sign of life.
    pub lease_steals: AtomicU64,
    /// Writes of runs that were refused because another process has taken the run over.
    pub fenced_writes: AtomicU64,
    pub streams_opened: AtomicU64,
    pub streams_closed: AtomicU64,
    pub deliveries_made: AtomicU64,
    pub deliveries_failed: AtomicU64,
    pub deliveries_parked: AtomicU64,
    /// Deliveries that were put back because their endpoint was down or busy.
    pub deliveries_held: AtomicU64,
    /// Updates that were skipped for receivers that were far behind.
    pub deliveries_skipped: AtomicU64,
    pub deliveries_redriven: AtomicU64,
    pub deliveries_purged: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        Self::add_many(counter, 1);
    }

    pub(crate) fn add_many(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Ordering::Relaxed);
    }
}
