//! The host: the engine behind the agents of a server, with its store and its supervisor. It starts and stops them, and gives the
//! edge what it may ask beside calls ([`Downloads`], [`Operations`]). A server that only mounts endpoints has no engine and keeps
//! no tasks.

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Caller, Endpoint, Frame, Owner, Reply, Request, UpdateStream};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, AgentName, ArtifactId, TaskId, TaskView};
use switchboard_engine::limits::Limits;
use switchboard_engine::memory::MemoryStore;
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact, WrittenUpdate};
use switchboard_engine::ports::store::Scope;
use switchboard_engine::ports::{Clock, Links, Store};
use switchboard_engine::push::OutboxAdmin;
use switchboard_engine::supervisor::Supervisor;
use switchboard_engine::{Engine, Readiness};
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::server::downloads::{Downloads, WantedArtifact};
use crate::server::edge::percent::encode;
use crate::server::engine_metrics;
use crate::server::operator::Operations;
use crate::server::serve_error::ServeError;

/// Where tasks are kept.
pub(crate) enum StoreChoice {
    /// So many tasks at most.
    Memory(usize),
    #[cfg(feature = "sqlite")]
    Sqlite(PathBuf, switchboard_stores::sqlite::SqliteOptions),
    Given(Arc<dyn Store>),
}

impl StoreChoice {
    /// Where the data is, for people.
    pub(crate) fn place(&self) -> String {
        match self {
            Self::Memory(_) => "in memory, gone when it stops".to_owned(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path, _) => path.display().to_string(),
            Self::Given(_) => "in a store of its own".to_owned(),
        }
    }

    pub(crate) fn open(self, clock: &Arc<dyn Clock>, limits: &Limits) -> Result<Arc<dyn Store>, ServeError> {
        Ok(match self {
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
            Self::Given(store) => store,
        })
    }
}

/// What runs behind a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Host {
    engine: Option<Engine>,
    supervisor: Supervisor,
    is_started: Arc<AtomicBool>,
}

impl Host {
    /// Without an engine, a host supervises connections and keeps no tasks.
    pub(crate) fn new(engine: Option<Engine>) -> Self {
        let supervisor = engine.as_ref().map_or_else(Supervisor::new, |engine| engine.supervisor().clone());
        Self { engine, supervisor, is_started: Arc::default() }
    }

    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    pub(crate) fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Starts the engine, the first time it is called.
    pub(crate) fn start(&self) {
        if let Some(engine) = self.engine.as_ref().filter(|_| !self.is_started.swap(true, Ordering::AcqRel)) {
            engine.start();
        }
    }

    /// Ends streams cleanly and stops starting things.
    pub(crate) fn begin_drain(&self) {
        match &self.engine {
            Some(engine) => engine.begin_drain(),
            None => self.supervisor.begin_drain(),
        }
    }

    /// Stops for good: waits for runs until `grace` is over, and drops what is left.
    pub(crate) async fn shutdown(&self, grace: Duration) {
        match &self.engine {
            Some(engine) => engine.shutdown(grace).await,
            None => {
                self.supervisor.begin_drain();
                self.supervisor.stop().await;
            }
        }
    }

    pub(crate) fn runs_alive(&self) -> usize {
        self.engine.as_ref().map_or(0, Engine::runs_alive)
    }

    pub(crate) fn operations(&self) -> Option<Arc<dyn Operations>> {
        self.engine.clone().map(|engine| Arc::new(EngineOperations(engine)) as Arc<dyn Operations>)
    }

    /// The bytes of the artifacts of one of the engine's agents.
    pub(crate) fn downloads(&self, agent: &str) -> Option<Arc<dyn Downloads>> {
        let engine = self.engine.clone().filter(|engine| engine.endpoint(agent).is_some())?;
        Some(Arc::new(EngineDownloads { engine, agent: agent.into() }))
    }

    /// Makes links to artifacts begin with `base`, the public URL without a slash at its end.
    pub(crate) fn serve_artifacts_at(&self, base: &str) {
        if let Some(engine) = &self.engine {
            engine.serve_artifacts_at(Arc::new(ServedAt { base: base.to_owned() }));
        }
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
        Box::pin(engine_metrics::render(&self.0, with_endpoints))
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
