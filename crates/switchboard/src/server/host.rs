//! The host: the engine behind the agents of a server, with its store and its supervisor. It starts and stops them, and gives the
//! edge what it may ask beside calls ([`Downloads`], [`Operations`]). A server that only mounts endpoints has no engine and keeps
//! no tasks.
//!
//! What an engine and its store count is the part of the host in `/metrics`.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Caller, Endpoint, Frame, Owner, Reply, Request, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentName, ArtifactId, TaskId, TaskState, TaskView};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::{MemoryStore, STORAGE_BYTES_MAX_DEFAULT};
use switchboard_engine::ports::audit::AuditEntry;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use switchboard_engine::ports::store::{COMMIT_BATCH_BOUNDS, COMMIT_MICROS_BOUNDS, OverStorage, Scope};
use switchboard_engine::ports::{Clock, Hints, Links, Share, Store};
use switchboard_engine::push::OutboxAdmin;
use switchboard_engine::runs::{RunCounters, RunEnd};
use switchboard_engine::supervisor::Supervisor;
#[cfg(feature = "sqlite")]
use switchboard_engine::system::SystemClock;
use switchboard_engine::{Engine, QueueAges, Readiness};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::server::metrics::{buckets, family, histogram, in_seconds, read, sample, single};
use crate::server::ports::{Downloads, Operations, Processor, WantedArtifact};
use crate::server::serve_error::ServeError;
use crate::server::telemetry::Telemetry;
use crate::server::uri::encode;

#[cfg(feature = "sqlite")]
use std::path::{Path, PathBuf};

/// Where tasks are kept.
pub(crate) enum StoreChoice {
    /// So many tasks at most.
    Memory(usize),
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf, switchboard_stores::sqlite::SqliteOptions),
    #[cfg(feature = "postgres")]
    Postgres(switchboard_stores::postgres::PostgresOptions, Option<switchboard_stores::nats::NatsOptions>),
    Given(Arc<dyn Store>),
}

/// A store, and the hints between the processes that share it.
pub(crate) struct OpenStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hints: Option<Arc<dyn Hints>>,
}

impl From<Arc<dyn Store>> for OpenStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self { store, hints: None }
    }
}

impl StoreChoice {
    /// Where the data is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Memory(_) => "in memory, gone when it stops".to_owned(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path, _) => path.display().to_string(),
            #[cfg(feature = "postgres")]
            Self::Postgres(options, _) => format!("PostgreSQL, schema {}", options.schema_name()),
            Self::Given(_) => "in a store of its own".to_owned(),
        }
    }

    /// The limits with what is usual for this store, where they have what is usual for a disk of one process.
    pub(crate) fn adapt(&self, mut limits: Limits) -> Limits {
        match self {
            Self::Memory(_) if limits.storage_bytes_max == Limits::default().storage_bytes_max => {
                limits.storage_bytes_max = STORAGE_BYTES_MAX_DEFAULT;
            }
            // Other processes write too, and their hints may be lost, so followers look with every sweep.
            #[cfg(feature = "postgres")]
            Self::Postgres(..) => limits.follow_poll_ms = limits.follow_poll_ms.min(limits.sweep_ms),
            _ => {}
        }
        limits
    }

    pub(crate) fn open(self, clock: &Arc<dyn Clock>, limits: &Limits) -> Result<OpenStore, ServeError> {
        let store: Arc<dyn Store> = match self {
            Self::Memory(tasks_max) => {
                // One that prunes in batches must be able to hold the task that is too many.
                let kept_max = limits.retention_tasks_max.saturating_add(limits.retention_tasks_batch);
                let kept_max = usize::try_from(kept_max).unwrap_or(usize::MAX);
                Arc::new(MemoryStore::new(clock.clone(), tasks_max.min(kept_max)))
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path, options) => {
                let opened = switchboard_stores::sqlite::SqliteStore::open(&path, clock.clone(), options);
                Arc::new(opened.map_err(ServeError::store)?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(options, nats) => {
                use switchboard_stores::{nats::NatsHints, postgres::PostgresStore};
                let group = options.schema_name().to_owned();
                let store = PostgresStore::open(options.carries_hints(nats.is_none())).map_err(ServeError::store)?;
                let hints: Arc<dyn Hints> = match nats {
                    Some(nats) => Arc::new(NatsHints::start(&nats, &group).map_err(ServeError::store)?),
                    None => store.hints(),
                };
                return Ok(OpenStore { store: Arc::new(store), hints: Some(hints) });
            }
            Self::Given(store) => store,
        };
        Ok(store.into())
    }
}

/// What runs behind a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Host {
    engine: Option<Engine>,
    supervisor: Supervisor,
    telemetry: Option<Arc<Telemetry>>,
    is_started: Arc<AtomicBool>,
}

impl Host {
    /// Without an engine, a host supervises connections and keeps no tasks.
    pub(crate) fn new(engine: Option<Engine>, telemetry: Option<Arc<Telemetry>>) -> Self {
        let supervisor = engine.as_ref().map_or_else(Supervisor::new, |engine| engine.supervisor().clone());
        Self { engine, supervisor, telemetry, is_started: Arc::default() }
    }

    /// What an operator may see and do in a database that no server has open. An engine that is not started answers
    /// questions and does nothing else.
    #[cfg(feature = "sqlite")]
    pub(crate) fn offline(database: &Path) -> Result<Arc<dyn Operations>, ServeError> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        // Secrets of webhooks are not shown, so their keys are not needed.
        let secrets = switchboard_stores::sqlite::SecretKeySource::Untouched;
        let options = switchboard_stores::sqlite::SqliteOptions { secrets, ..Default::default() };
        let opened = StoreChoice::Sqlite(database.to_owned(), options).open(&clock, &Limits::default())?;
        Ok(Arc::new(EngineOperations(Engine::builder(opened.store).build())))
    }

    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Starts the engine and the export of spans, the first time it is called.
    pub(crate) fn start(&self) {
        if self.is_started.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(engine) = &self.engine {
            engine.start();
        }
        if let Some(telemetry) = &self.telemetry {
            telemetry.start(&self.supervisor);
        }
    }

    /// Ends streams cleanly and stops starting things.
    pub(crate) fn begin_drain(&self) {
        match &self.engine {
            Some(engine) => engine.begin_drain(),
            None => self.supervisor.begin_drain(),
        }
    }

    /// Stops for good: waits for runs until `grace` is over, drops what is left, and sends the last traces and metrics.
    pub(crate) async fn shutdown(&self, grace: Duration) {
        match &self.engine {
            Some(engine) => engine.shutdown(grace).await,
            None => {
                self.supervisor.begin_drain();
                self.supervisor.stop().await;
            }
        }
        if let Some(telemetry) = &self.telemetry {
            // Boxed, because it is large and most servers have none.
            Box::pin(telemetry.flush()).await;
        }
    }

    pub(crate) fn runs_alive(&self) -> usize {
        self.engine.as_ref().map_or(0, Engine::runs_alive)
    }

    pub(crate) fn operations(&self) -> Option<Arc<dyn Operations>> {
        self.engine.clone().map(|engine| Arc::new(EngineOperations(engine)) as Arc<dyn Operations>)
    }

    /// What part this server has of the limits that are for all servers with its store together.
    pub(crate) fn share(&self) -> Share {
        self.engine.as_ref().map(Engine::share).unwrap_or_default()
    }

    /// The bytes of the artifacts of one of the engine's agents.
    pub(crate) fn downloads(&self, agent: &str) -> Option<Arc<dyn Downloads>> {
        let engine = self.engine.clone().filter(|engine| engine.endpoint(agent).is_some())?;
        Some(Arc::new(EngineDownloads { engine, agent: agent.into() }))
    }

    /// Starts the runs of tasks that were enqueued.
    pub(crate) fn task_processor(&self) -> Option<Arc<dyn Processor>> {
        self.engine.clone().map(|engine| Arc::new(TaskProcessor(engine)) as Arc<dyn Processor>)
    }

    /// Looks after calls that nobody waits for.
    pub(crate) fn continuation_processor(&self) -> Option<Arc<dyn Processor>> {
        self.engine.clone().map(|engine| Arc::new(ContinuationProcessor(engine)) as Arc<dyn Processor>)
    }

    /// Makes links to artifacts begin with `base`, the public URL without a slash at its end.
    pub(crate) fn serve_artifacts_at(&self, base: &str) {
        if let Some(engine) = &self.engine {
            engine.serve_artifacts_at(Arc::new(ServedAt { base: base.to_owned() }));
        }
    }
}

struct TaskProcessor(Engine);

impl Processor for TaskProcessor {
    fn process<'a>(&'a self, row: &'a str) -> BoxFuture<'a, Result<(), ProtocolError>> {
        Box::pin(async move { self.0.process(&TaskId::from(row)).await.map(drop) })
    }
}

struct ContinuationProcessor(Engine);

impl Processor for ContinuationProcessor {
    fn process<'a>(&'a self, row: &'a str) -> BoxFuture<'a, Result<(), ProtocolError>> {
        Box::pin(async move { self.0.process_call(row).await.map(drop) })
    }
}

/// Every agent is served under its name, and there its artifacts are.
struct ServedAt {
    base: String,
}

impl Links for ServedAt {
    fn artifact(&self, scope: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String {
        let Self { base } = self;
        let (agent, task, artifact) = (encode(scope.agent.as_str()), encode(task.as_str()), encode(artifact.as_str()));
        let tenant = scope.owner.tenant.as_str();
        let tenant = (!tenant.is_empty()).then(|| format!("tenant={}", encode(tenant)));
        let query: Vec<String> = tenant.into_iter().chain(part.map(|part| format!("part={part}"))).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{base}/agents/{agent}/tasks/{task}/artifacts/{artifact}{mark}{}", query.join("&"))
    }
}

struct EngineDownloads {
    engine: Engine,
    agent: AgentName,
}

impl Downloads for EngineDownloads {
    fn artifact<'a>(
        &'a self,
        owner: &'a Owner,
        wanted: &'a WantedArtifact,
    ) -> BoxFuture<'a, Result<StoredArtifact, ProtocolError>> {
        let WantedArtifact { task, artifact, part } = wanted;
        Box::pin(self.engine.artifact(self.agent.as_str(), owner, task, artifact, *part))
    }

    fn update<'a>(
        &'a self,
        owner: &'a Owner,
        wanted: &'a WantedArtifact,
        seq: u64,
    ) -> BoxFuture<'a, Result<WrittenUpdate, ProtocolError>> {
        let WantedArtifact { task, artifact, part } = wanted;
        Box::pin(self.engine.artifact_update(self.agent.as_str(), owner, task, artifact, seq, *part))
    }

    fn read(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'static, Result<ArtifactPiece, ProtocolError>> {
        let engine = self.engine.clone();
        Box::pin(async move { engine.read_artifact(cursor, bytes_max).await })
    }

    fn fitted_to_frame(&self, owner: &Owner, view: TaskView) -> TaskView {
        self.engine.fitted_to_frame(self.agent.as_str(), owner, view)
    }
}

struct EngineOperations(Engine);

impl Operations for EngineOperations {
    fn readiness(&self) -> Readiness {
        self.0.readiness()
    }

    fn notices(&self) -> Vec<String> {
        self.0.notices()
    }

    fn outbox(&self) -> OutboxAdmin {
        self.0.outbox()
    }

    fn metrics(&self, with_endpoints: bool) -> BoxFuture<'_, String> {
        Box::pin(render_metrics(&self.0, with_endpoints))
    }

    fn record_audit(&self, entry: AuditEntry) {
        self.0.record_audit(entry);
    }

    fn record_refusal(&self, reason: &'static str, entry: &mut dyn FnMut() -> AuditEntry) {
        self.0.record_refusal(reason, entry);
    }
}

/// An endpoint that the application has mounted. The server ends its streams when it stops, as the engine does with its own, and
/// its card says what the server checks.
pub(crate) struct MountedEndpoint {
    endpoint: Arc<dyn Endpoint>,
    card: Arc<AgentCard>,
    supervisor: Supervisor,
}

impl MountedEndpoint {
    pub(crate) fn new(endpoint: Arc<dyn Endpoint>, card: AgentCard, supervisor: Supervisor) -> Self {
        Self { endpoint, card: Arc::new(card), supervisor }
    }
}

impl Endpoint for MountedEndpoint {
    fn call(&self, caller: Caller, request: Request) -> BoxFuture<'_, Result<Reply, ProtocolError>> {
        let reply = self.endpoint.call(caller, request);
        Box::pin(async move {
            match reply.await? {
                Reply::Stream(updates) => {
                    let draining = self.supervisor.draining().clone().cancelled_owned();
                    Ok(Reply::Stream(Box::pin(UntilDraining { updates, draining: Box::pin(draining) })))
                }
                reply => Ok(reply),
            }
        })
    }

    fn card(&self) -> Arc<AgentCard> {
        self.card.clone()
    }
}

/// Updates until the server begins to stop; a client then goes on elsewhere or later.
struct UntilDraining {
    updates: UpdateStream,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Stream for UntilDraining {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // What is there already is still told.
        if let Poll::Ready(next) = self.updates.as_mut().poll_next(cx) {
            return Poll::Ready(next);
        }
        self.draining.as_mut().poll(cx).map(|()| None)
    }
}

/// The agent of runs whose agent is not served. No agent can have this name.
const UNSERVED: &str = "(unserved)";

/// Runs, deliveries, and what the store says; webhook endpoints by name only if asked for.
async fn render_metrics(engine: &Engine, with_endpoints: bool) -> String {
    let ages = engine.queue_ages().await;
    let mut out = String::with_capacity(8 * 1024);
    write_runs(&mut out, engine, &ages);
    write_deliveries(&mut out, engine, &ages, with_endpoints);
    write_store(&mut out, engine);
    out
}

fn write_runs(out: &mut String, engine: &Engine, ages: &QueueAges) {
    let agents = engine.agents();
    let named = agents.iter().map(|agent| (agent.name.as_str(), agent.source.runs()));
    let runs: Vec<(&str, &RunCounters)> = named.chain([(UNSERVED, &engine.counters().unserved_runs)]).collect();
    single(out, "runs_alive", "gauge", "Runs at work or waiting to be started.", engine.runs_alive() as u64);
    single(out, "runs_waiting", "gauge", "Runs that wait to be started.", ages.runs_waiting as u64);
    let oldest = ages.oldest_run.as_secs_f64();
    single(out, "run_queue_oldest_seconds", "gauge", "How long the run that waits longest has waited.", oldest);
    let holds = engine.run_holds();
    single(
        out,
        "run_held_bytes",
        "gauge",
        "Bytes that runs hold now, small ones not counted.",
        holds.message_bytes.held,
    );
    family(out, "run_limit_refusals_total", "counter", "Messages refused because runs hold too much or too many wait.");
    for (limit, count) in [
        ("runs_queued_max", holds.queued.refused_all),
        ("runs_queued_per_owner_max", holds.queued.refused_each),
        ("run_message_bytes_max", holds.message_bytes.refused_all),
        ("run_message_bytes_per_owner_max", holds.message_bytes.refused_each),
    ] {
        sample(out, "run_limit_refusals_total", &[("limit", limit)], count);
    }
    family(
        out,
        "storage_refusals_total",
        "counter",
        "Messages refused, and writes of runs, because too much would be stored.",
    );
    for (over, count) in OverStorage::ALL.into_iter().zip(&engine.counters().storage_refusals) {
        sample(out, "storage_refusals_total", &[("limit", over.setting())], count.load(Ordering::Relaxed));
    }
    type Read = fn(&RunCounters) -> u64;
    let families: [(&str, &str, Read); 4] = [
        ("runs_started_total", "Runs started.", RunCounters::started),
        ("runs_recovered_total", "Runs taken up after an interruption.", RunCounters::recovered),
        ("runs_failed_total", "Runs that left their task failed, timeouts aside.", RunCounters::failed),
        ("runs_timed_out_total", "Runs that took or waited longer than they may.", RunCounters::timed_out),
    ];
    for (name, help, read) in families {
        family(out, name, "counter", help);
        for (agent, counters) in &runs {
            sample(out, name, &[("agent", agent)], read(counters));
        }
    }
    family(out, "runs_ended_total", "counter", "Runs ended, by the way they ended.");
    for (agent, counters) in &runs {
        for how in RunEnd::ALL {
            sample(out, "runs_ended_total", &[("agent", agent), ("reason", how.word())], counters.ended(how));
        }
    }
    family(out, "run_duration_seconds", "histogram", "How long runs were at work.");
    for (agent, counters) in &runs {
        histogram(out, "run_duration_seconds", &[("agent", agent)], counters.seconds());
    }
}

fn write_deliveries(out: &mut String, engine: &Engine, ages: &QueueAges, with_endpoints: bool) {
    let counters = engine.counters();
    for (name, help, counter) in [
        ("deliveries_made_total", "Updates delivered to webhooks.", &counters.deliveries_made),
        ("deliveries_failed_total", "Webhook attempts that failed.", &counters.deliveries_failed),
        ("deliveries_parked_total", "Webhooks given up on.", &counters.deliveries_parked),
        ("deliveries_held_total", "Put back because an endpoint was down or busy.", &counters.deliveries_held),
        ("deliveries_skipped_total", "Updates not sent to receivers far behind.", &counters.deliveries_skipped),
        ("deliveries_redriven_total", "Deliveries an operator made due.", &counters.deliveries_redriven),
        ("deliveries_purged_total", "Dead letters an operator dropped.", &counters.deliveries_purged),
    ] {
        single(out, name, "counter", help, read(counter));
    }
    let (under_way, down) = engine.outbox().gauges();
    single(out, "deliveries_under_way", "gauge", "Deliveries under way now.", under_way as u64);
    single(out, "delivery_endpoints_down", "gauge", "Endpoints whose deliveries wait for a probe.", down as u64);
    // Both are left out if the store did not say.
    family(out, "delivery_queue_depth", "gauge", "Deliveries that wait or are under way, counted up to 10000.");
    if let Some(waiting) = ages.deliveries_waiting {
        let _ = writeln!(out, "switchboard_delivery_queue_depth {waiting}");
    }
    family(out, "delivery_queue_oldest_seconds", "gauge", "How long the delivery that is most overdue has been due.");
    if let Some(oldest) = ages.oldest_delivery {
        let _ = writeln!(out, "switchboard_delivery_queue_oldest_seconds {}", oldest.as_secs_f64());
    }
    if with_endpoints {
        family(out, "delivery_endpoint_up", "gauge", "Whether an endpoint that was called lately takes deliveries.");
        for health in engine.outbox().endpoints() {
            sample(out, "delivery_endpoint_up", &[("endpoint", health.endpoint.as_str())], u64::from(!health.open));
        }
    }
}

fn write_store(out: &mut String, engine: &Engine) {
    let stats = engine.store_stats();
    family(out, "tasks", "gauge", "Tasks that are kept, by state.");
    // Left out while a large file is being counted, right after the start.
    for (state, count) in TaskState::ALL.iter().zip(stats.tasks.iter().flatten().copied()) {
        sample(out, "tasks", &[("state", state.word())], count);
    }
    single(out, "commits_total", "counter", "Commits made durable.", stats.commits);
    single(out, "commit_conflicts_total", "counter", "Commits that came second.", stats.conflicts);
    single(out, "commit_failures_total", "counter", "Commits the store did not take.", stats.failures);
    let help = "Transactions; commits that waited together share one.";
    single(out, "commit_batches_total", "counter", help, stats.batches);
    single(out, "store_rows_written_total", "counter", "Rows written.", stats.rows_written);
    family(out, "store_statements_total", "counter", "Statements sent to PostgreSQL, by what they were for.");
    for (used_for, count) in stats.statements.by_use() {
        sample(out, "store_statements_total", &[("for", used_for)], count);
    }
    single(out, "store_bytes_written_total", "counter", "Bytes of content written.", stats.bytes_written);
    if let Some(bytes) = stats.stored_bytes {
        single(out, "stored_bytes", "gauge", "Bytes stored, as the limits of storage count them.", bytes);
    }
    single(out, "store_queue_depth", "gauge", "Commits waiting for the writer.", stats.queue_depth);
    family(out, "commit_seconds", "histogram", "Time from asking for a commit to its answer.");
    let seconds = stats.commit_micros_sum as f64 / 1e6;
    buckets(out, "commit_seconds", "", &in_seconds(&COMMIT_MICROS_BOUNDS), &stats.commit_seconds, seconds);
    family(out, "commit_batch_size", "histogram", "How many requests shared a transaction.");
    let (bounds, requests) = (COMMIT_BATCH_BOUNDS.map(|bound| bound as f64), stats.batch_requests as f64);
    buckets(out, "commit_batch_size", "", &bounds, &stats.batch_sizes, requests);
    let help = "Processes that share the store, as this one has last counted; limits of one caller are divided by it.";
    single(out, "store_processes", "gauge", help, engine.share().processes());
    let counters = engine.counters();
    let help = "Runs taken from a process that gave no sign of life.";
    single(out, "lease_steals_total", "counter", help, read(&counters.lease_steals));
    let help = "Writes of runs refused because another process has taken the run over.";
    single(out, "fenced_writes_total", "counter", help, read(&counters.fenced_writes));
    let hints = engine.hint_stats();
    family(out, "hint_seconds", "histogram", "Time from a change to the arrival of its hint at another process.");
    buckets(out, "hint_seconds", "", &in_seconds(&COMMIT_MICROS_BOUNDS), &hints.seconds, hints.micros_sum as f64 / 1e6);
    single(out, "hints_dropped_total", "counter", "Hints not sent because too many waited.", hints.dropped);
}
