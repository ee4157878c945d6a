//! The engine's public interface: it passes each call to its operation, and starts and stops the background loops.
#![warn(missing_docs, missing_debug_implementations)]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{BoxFuture, Caller, Endpoint, Owner, Reply, Request};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentName, ArtifactId, TaskId, TaskView, Timestamp};

use crate::audit;
use crate::continuations::{continue_forever, process_call};
use crate::health::Readiness;
use crate::operations::{cancel_task, push_configs, read_tasks, send_message};
use crate::ports::audit::AuditEntry;
use crate::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use crate::ports::store::{Scope, StoreStats};
use crate::ports::{HintStats, Links, Quarantine, Share};
use crate::push::{OutboxAdmin, deliver_forever};
use crate::runs::{Agents, Registered, RunHoldUse, give_back, process, sweep};
use crate::state::{Counters, EngineState};
use crate::supervisor::{Kind, Supervisor};
use crate::watching::catch_up_forever;

/// Durable tasks for the agents of one process.
#[derive(Clone)]
pub struct Engine {
    engine: Arc<EngineState>,
    agents: Arc<Agents>,
}

// The fields are trait objects without a useful `Debug`, so only the agents' names are shown.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("agents", &self.agents.keys()).finish_non_exhaustive()
    }
}

impl Engine {
    pub(crate) fn of(engine: Arc<EngineState>, agents: Arc<Agents>) -> Self {
        Self { engine, agents }
    }

    /// What runs hold, and what was refused because of it.
    #[must_use]
    pub fn run_holds(&self) -> RunHoldUse {
        RunHoldUse { queued: self.engine.queued_runs.usage(), message_bytes: self.engine.run_bytes.usage() }
    }

    /// What part this process has of the limits that hold for all processes with its store together.
    #[must_use]
    pub fn share(&self) -> Share {
        self.engine.store.share()
    }

    /// Resumes the runs that an earlier process left, and starts the background loops. Calls are answered before this,
    /// too, but interrupted runs are not resumed until it is called.
    pub fn start(&self) {
        self.engine.clock_guard.begin(self.engine.store.clock_record(), self.engine.now());
        self.engine.supervisor.spawn(Kind::Sweep, sweep(self.engine.clone(), self.agents.clone()));
        self.engine.supervisor.spawn(Kind::Sweep, catch_up_forever(self.engine.clone()));
        self.engine.supervisor.spawn(Kind::Sweep, deliver_forever(self.engine.clone()));
        self.engine.supervisor.spawn(Kind::Sweep, continue_forever(self.engine.clone()));
        self.engine.supervisor.spawn(Kind::Sweep, prune_forever(self.engine.clone()));
        let engine = self.engine.clone();
        let pause = Duration::from_millis(engine.limits.store_probe_ms.into());
        self.engine.supervisor.spawn(Kind::Sweep, async move { engine.health.watch(&*engine.store, pause).await });
    }

    /// Starts the run of a task that an asynchronous send has enqueued ([`EngineBuilder::self_fire`](crate::EngineBuilder::self_fire)). False if there is nothing to
    /// start: another post was first, the task has ended, or there is none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn process(&self, task: &TaskId) -> Result<bool, ProtocolError> {
        process(&self.engine, &self.agents, task).await.map_err(|error| self.engine.store_failed(&error))
    }

    /// Looks at a call that its run no longer waits for: the engine delivers its result, or looks again later. False if there is nothing to
    /// do: another process does it, the call is over, or there is none.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn process_call(&self, call: &str) -> Result<bool, ProtocolError> {
        process_call(&self.engine, call).await.map_err(|error| self.engine.store_failed(&error))
    }

    /// The endpoint of one agent.
    #[must_use]
    pub fn endpoint(&self, agent: &str) -> Option<Arc<dyn Endpoint>> {
        let agent = self.agents.get(agent)?.clone();
        Some(Arc::new(AgentEndpoint { engine: self.engine.clone(), agent }))
    }

    /// Sets where clients can download contents that are too large for a reply. Only the first call has an effect,
    /// because a process serves downloads under one address.
    pub fn serve_artifacts_at(&self, links: Arc<dyn Links>) {
        let _ = self.engine.links.set(links);
    }

    /// Opens an artifact of a task, or one part of it, for download.
    ///
    /// # Errors
    /// When there is no such agent, task, artifact or part, or the task is not the caller's. The error is the same in
    /// all cases.
    pub async fn artifact(
        &self,
        agent: &str,
        owner: &Owner,
        task: &TaskId,
        artifact: &ArtifactId,
        part: Option<u64>,
    ) -> Result<StoredArtifact, ProtocolError> {
        read_tasks::artifact(&self.engine, agent, owner, task, artifact, part).await
    }

    /// What one update of a task wrote to an artifact, or one part of that, for a client whose stream carried a link in
    /// its place.
    ///
    /// # Errors
    /// As [`Engine::artifact`], and when the single updates of the task are no longer kept.
    pub async fn artifact_update(
        &self,
        agent: &str,
        owner: &Owner,
        task: &TaskId,
        artifact: &ArtifactId,
        seq: u64,
        part: Option<u64>,
    ) -> Result<WrittenUpdate, ProtocolError> {
        read_tasks::update(&self.engine, agent, owner, task, artifact, seq, part).await
    }

    /// A view of a task that fits into one frame of a stream, for dialects whose streams carry whole tasks.
    #[must_use]
    pub fn fitted_to_frame(&self, agent: &str, owner: &Owner, view: TaskView) -> TaskView {
        let scope = Scope { owner: owner.clone(), agent: AgentName::from(agent) };
        self.engine.fitted(&scope, view, self.engine.frame_bytes_max())
    }

    /// The bytes at a cursor: at most about `bytes_max`, and at least one before the end.
    ///
    /// # Errors
    /// When the bytes are no longer kept, or the store does not answer.
    pub async fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> Result<ArtifactPiece, ProtocolError> {
        read_tasks::read_artifact(&self.engine, cursor, bytes_max).await
    }

    /// The agents that are served.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<Registered>> {
        let mut agents: Vec<_> = self.agents.values().cloned().collect();
        agents.sort_by(|a, b| a.name.cmp(&b.name));
        agents
    }

    /// The supervisor, which starts and stops all background tasks.
    #[must_use]
    pub fn supervisor(&self) -> &Supervisor {
        &self.engine.supervisor
    }

    /// Whether the engine can take messages, and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.engine.health.readiness(self.engine.supervisor.is_draining())
    }

    /// Warnings for operators while the process is ready: rows that cannot be read, and a wall clock that has jumped.
    /// One line each; they contain nothing confidential.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let Quarantine { rows, named } = self.engine.store.quarantine();
        let mut notices = Vec::new();
        if rows > 0 {
            let more = rows.saturating_sub(named.len() as u64);
            let mut names: Vec<_> = named.iter().map(ToString::to_string).collect();
            names.extend((more > 0).then(|| format!("and {more} more")));
            notices.push(format!("{rows} damaged and passed over: {}", names.join(", ")));
        }
        self.engine.clock_guard.compare(self.engine.now());
        notices.extend(self.engine.clock_guard.notice());
        notices
    }

    /// What has been counted since the start of the process.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.engine.counters
    }

    /// The store's own statistics: tasks by state, sizes.
    #[must_use]
    pub fn store_stats(&self) -> StoreStats {
        self.engine.store.stats()
    }

    /// What was counted about hints between processes.
    #[must_use]
    pub fn hint_stats(&self) -> HintStats {
        self.engine.hints.stats()
    }

    /// How long runs and deliveries have waited. The store finds and counts deliveries by an index.
    pub async fn queue_ages(&self) -> QueueAges {
        let (runs_waiting, oldest_run) = self.engine.runs.waiting();
        let due = tokio::time::timeout(QUEUE_LOOK_MAX, self.engine.store.next_delivery_at()).await;
        let overdue = |due: Timestamp| {
            let ms = self.engine.now().ms_since(due);
            Duration::from_millis(u64::try_from(ms).unwrap_or_default())
        };
        let oldest_delivery = match due {
            Ok(Ok(due)) => Some(due.map_or(Duration::ZERO, overdue)),
            Ok(Err(_)) | Err(_) => None,
        };
        let depth = self.engine.store.outbox().depth(OUTBOX_DEPTH_MAX);
        let deliveries_waiting = tokio::time::timeout(QUEUE_LOOK_MAX, depth).await.ok().and_then(Result::ok);
        QueueAges { runs_waiting, oldest_run, oldest_delivery, deliveries_waiting }
    }

    /// Adds an entry to the audit log, unless it is off.
    pub fn record_audit(&self, entry: AuditEntry) {
        self.engine.record_audit(entry);
    }

    /// Adds the entry of a refusal to the audit log. Beyond a number of refusals a minute, they are counted and summed up
    /// by their reason, so that a flood of them does not fill the disk; then `entry` is not called.
    pub fn record_refusal(&self, reason: &'static str, entry: impl FnOnce() -> AuditEntry) {
        audit::record_refusal(&self.engine, reason, entry);
    }

    /// The webhook deliveries of all owners, for operators only.
    #[must_use]
    pub fn outbox(&self) -> OutboxAdmin {
        OutboxAdmin::new(self.engine.clone())
    }

    /// How many runs are at work now.
    #[must_use]
    pub fn runs_alive(&self) -> usize {
        self.engine.runs.len()
    }

    /// Ends streams cleanly and starts no more runs or deliveries. Clients can resume their streams at another process,
    /// or later at this one.
    pub fn begin_drain(&self) {
        self.engine.supervisor.begin_drain();
        self.engine.tails.close_all();
    }

    /// Shuts down: waits for runs until `grace` is over, releases their leases, and drops what is left.
    pub async fn shutdown(&self, grace: Duration) {
        self.begin_drain();
        if !self.engine.supervisor.wait_runs(grace).await {
            tracing::warn!(
                runs = self.runs_alive(),
                "runs were cut off by shutdown; they are taken up at the next start"
            );
        }
        let held = self.engine.runs.held_runs();
        self.engine.supervisor.stop().await;
        give_back(&self.engine, &self.agents, held).await;
        audit::close(&self.engine).await;
    }
}

/// How long the store may take to tell the age of its oldest delivery.
const QUEUE_LOOK_MAX: Duration = Duration::from_secs(1);
/// Up to how many deliveries that wait are counted.
const OUTBOX_DEPTH_MAX: u32 = 10_000;

/// How long runs and deliveries have waited, for `/metrics`.
#[derive(Clone, Copy, Debug)]
pub struct QueueAges {
    /// Runs that wait to be started, and how long the oldest of them has waited.
    pub runs_waiting: usize,
    /// How long the oldest run that waits to be started has waited.
    pub oldest_run: Duration,
    /// How long the most overdue delivery has been due; none if the store did not answer in time.
    pub oldest_delivery: Option<Duration>,
    /// Deliveries that wait or are under way, counted up to 10,000; none if the store did not answer in time.
    pub deliveries_waiting: Option<u64>,
}

pub(crate) struct AgentEndpoint {
    pub(crate) engine: Arc<EngineState>,
    pub(crate) agent: Arc<Registered>,
}

impl Endpoint for AgentEndpoint {
    // Each operation is boxed separately, because one box for all of them would have the size of the largest at every
    // call.
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        let (engine, agent) = (&self.engine, &self.agent);
        match request {
            Request::SendMessage(send) => {
                Box::pin(async move { send_message::send_message(engine, agent, &caller, send).await })
            }
            Request::SendStreamingMessage(send) => {
                Box::pin(async move { send_message::send_streaming_message(engine, agent, &caller, send).await })
            }
            Request::GetTask { id, history_length } => {
                Box::pin(async move { read_tasks::get_task(engine, agent, &caller, &id, history_length).await })
            }
            Request::ListTasks(list) => {
                Box::pin(async move { read_tasks::list_tasks(engine, agent, &caller, list).await })
            }
            Request::CancelTask { id, metadata } => {
                Box::pin(async move { cancel_task::cancel_task(engine, agent, &caller, &id, metadata).await })
            }
            Request::SubscribeToTask { id } => {
                Box::pin(async move { read_tasks::subscribe(engine, agent, &caller, &id).await })
            }
            Request::CreatePushConfig(config) => {
                Box::pin(async move { push_configs::create(engine, agent, &caller, *config).await })
            }
            Request::GetPushConfig { task_id, id } => {
                Box::pin(async move { push_configs::get(engine, agent, &caller, &task_id, &id).await })
            }
            Request::ListPushConfigs { task_id, page_size, page_token } => {
                Box::pin(
                    async move { push_configs::list(engine, agent, &caller, &task_id, page_size, page_token).await },
                )
            }
            Request::DeletePushConfig { task_id, id } => {
                Box::pin(async move { push_configs::delete(engine, agent, &caller, &task_id, &id).await })
            }
            Request::GetExtendedAgentCard => {
                Box::pin(std::future::ready(read_tasks::get_extended_card(agent, &caller)))
            }
        }
    }

    fn card(&self) -> Arc<AgentCard> {
        self.agent.card.get()
    }
}

/// How many records are removed in one transaction.
const PRUNED_AT_ONCE: usize = 500;
const PRUNE_PAUSE: Duration = Duration::from_secs(60);
/// The first pruning comes this soon after the start, so that a server that is restarted every minute prunes, too. It
/// is a single batch, because a server that starts has other work.
const FIRST_PRUNE: Duration = Duration::from_secs(1);

/// Removes what is no longer kept, a little at a time.
async fn prune_forever(engine: Arc<EngineState>) {
    let _ = tokio::time::timeout(FIRST_PRUNE, engine.prune_due.notified()).await;
    prune(&engine, 1).await;
    loop {
        let _ = tokio::time::timeout(PRUNE_PAUSE, engine.prune_due.notified()).await;
        prune(&engine, usize::MAX).await;
    }
}

/// Removes what is no longer kept, in at most `times` batches of [`PRUNED_AT_ONCE`]. After a jump of the wall clock
/// ages are not known, so nothing is removed.
async fn prune(engine: &EngineState, times: usize) {
    engine.watch_clock().await;
    if engine.clock_is_held() {
        return;
    }
    let retention = engine.limits.retention(engine.now());
    for _ in 0..times {
        match engine.store.prune(retention, PRUNED_AT_ONCE).await {
            Ok(pruned) if pruned < PRUNED_AT_ONCE => break,
            Ok(pruned) => tracing::debug!(pruned, "old tasks were removed"),
            Err(error) => {
                tracing::warn!(?error, "old tasks could not be removed");
                break;
            }
        }
    }
    audit::forget(engine, times, PRUNED_AT_ONCE).await;
}
