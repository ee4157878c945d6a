//! The store as one process sees it: late, refused, not answered, or cut off by the process's own death before or after
//! the deed. The ways of a process to its store differ: here is that of a process in the weather.

use std::sync::Arc;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{AgentName, ArtifactId, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::download::{ArtifactCursor, ArtifactPiece, StoredArtifact};
use switchboard_engine::ports::store::{
    Accepted, AcceptedTask, Commit, CommitError, Delivery, DeliveryClaim, DeliveryOutcome, DueRun, ListPage, ListQuery,
    LogPage, Release, Retention, Scope, StoreError, StoreStats, StoredHead, StoredTask, TaskKey,
};
use switchboard_engine::ports::{Deliveries, Outbox, Runs, Store, TaskLog, Upkeep};

use super::audit::{Audit, Offer};
use super::journal::count;
use super::life::Life;
use super::weather::{Fate, Weather, pass};

/// What lies between a process and the store: it decides what becomes of every call, and hears of every write.
pub(super) trait Way: Send + Sync {
    /// What is noted of a commit before it is handed on.
    type Offer: Send;

    /// One call: out of the process, to the store, and back, where each of the three can fail.
    fn errand<T: Send, E: From<StoreError> + Send>(
        &self,
        what: &'static str,
        conflict: Option<E>,
        deed: impl Future<Output = Result<T, E>> + Send,
    ) -> impl Future<Output = Result<T, E>> + Send;

    fn offer(&self, commit: &Commit) -> Self::Offer;

    /// The store has decided about a commit. The process need not learn of it.
    fn committed(&self, offer: Self::Offer, answer: &Result<TaskKey, CommitError>);

    /// The store has renewed these leases, but for those that were lost.
    fn renewed(&self, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        let _ = (held, lost);
    }

    fn released(&self, released: &[Release]) {
        let _ = released;
    }
}

/// The store as one process sees it.
pub(super) struct NodeStore<W> {
    /// Shared by all nodes.
    pub(super) below: Arc<dyn Store>,
    pub(super) way: W,
}

impl<W: Way> NodeStore<W> {
    fn read<'a, T: Send + 'a>(
        &'a self,
        what: &'static str,
        deed: impl Future<Output = Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(self.way.errand(what, None, deed))
    }
}

/// The way of a process in the weather.
pub(super) struct WeatherWay {
    pub(super) life: Arc<Life>,
    pub(super) weather: Arc<Weather>,
    pub(super) audit: Arc<Audit>,
}

impl Way for WeatherWay {
    type Offer = Offer;

    async fn errand<T: Send, E: From<StoreError> + Send>(
        &self,
        what: &'static str,
        conflict: Option<E>,
        deed: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let passage = self.weather.passage();
        self.weather.step(&self.life, what);
        self.life.awake().await;
        pass(passage.there).await;
        let answer = match (passage.fate, conflict) {
            (Fate::Lost, _) => Err(unavailable().into()),
            (Fate::Conflict, Some(conflict)) => Err(conflict),
            (Fate::Fine | Fate::Unanswered | Fate::Conflict, _) => deed.await,
        };
        if passage.fate != Fate::Fine {
            self.weather.journal.say(|| format!("{} {what}: {:?}", self.life.name, passage.fate));
        }
        self.weather.step(&self.life, what);
        pass(passage.back).await;
        self.life.awake().await;
        if passage.fate == Fate::Unanswered { Err(unavailable().into()) } else { answer }
    }

    fn offer(&self, commit: &Commit) -> Offer {
        Offer::of(commit)
    }

    fn committed(&self, offer: Offer, answer: &Result<TaskKey, CommitError>) {
        match answer {
            Ok(key) => self.audit.took(&self.life, *key, offer),
            Err(CommitError::Fenced) => count(&self.weather.journal.counts.writes_fenced_off),
            Err(_) => {}
        }
    }
}

pub(super) fn unavailable() -> StoreError {
    StoreError::Unavailable("the simulation says so".to_owned())
}

// A deed is a block of its own, so that it is done when its time has come and not when it is asked for.
impl<W: Way> TaskLog for NodeStore<W> {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<TaskKey, CommitError>> {
        let deed = async move {
            let offer = self.way.offer(&commit);
            let answer = self.below.commit(commit).await;
            self.way.committed(offer, &answer);
            answer
        };
        Box::pin(self.way.errand("in a commit", Some(CommitError::Conflict), deed))
    }

    fn head<'a>(&'a self, scope: &'a Scope, id: &'a TaskId) -> BoxFuture<'a, Result<Option<StoredHead>, StoreError>> {
        self.read("reading a head", async { self.below.head(scope, id).await })
    }

    fn task<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<StoredTask>, StoreError>> {
        self.read("reading a task", async move { self.below.task(scope, id, bytes_max).await })
    }

    fn task_as_accepted<'a>(
        &'a self,
        scope: &'a Scope,
        accepted: &'a Accepted,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<AcceptedTask>, StoreError>> {
        self.read(
            "reading an earlier task",
            async move { self.below.task_as_accepted(scope, accepted, bytes_max).await },
        )
    }

    fn artifact<'a>(
        &'a self,
        scope: &'a Scope,
        id: &'a TaskId,
        artifact: &'a ArtifactId,
        part: Option<u64>,
    ) -> BoxFuture<'a, Result<Option<StoredArtifact>, StoreError>> {
        self.read("looking at an artifact", async move { self.below.artifact(scope, id, artifact, part).await })
    }

    fn read_artifact(
        &self,
        cursor: ArtifactCursor,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<ArtifactPiece, StoreError>> {
        self.read("reading an artifact", async move { self.below.read_artifact(cursor, bytes_max).await })
    }

    fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> BoxFuture<'_, Result<LogPage, StoreError>> {
        self.read("reading a log", async move { self.below.log(key, after_seq, limit).await })
    }

    fn list<'a>(&'a self, scope: &'a Scope, query: &'a ListQuery) -> BoxFuture<'a, Result<ListPage, StoreError>> {
        self.read("listing", async { self.below.list(scope, query).await })
    }

    fn find_accepted(&self, key: [u8; 32]) -> BoxFuture<'_, Result<Option<Accepted>, StoreError>> {
        self.read("looking for a key", async move { self.below.find_accepted(key).await })
    }
}

impl<W: Way> Runs for NodeStore<W> {
    fn due_runs<'a>(&'a self, agents: &'a [AgentName], limit: usize) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.read("looking for due runs", async move { self.below.due_runs(agents, limit).await })
    }

    fn due_runs_of_others<'a>(
        &'a self,
        agents: &'a [AgentName],
        after: Option<TaskKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DueRun>, StoreError>> {
        self.read(
            "looking for runs of others",
            async move { self.below.due_runs_of_others(agents, after, limit).await },
        )
    }

    fn begin_runs(&self, begun: Vec<(TaskKey, u64)>) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.read("beginning a run", async move { self.below.begin_runs(begun).await })
    }

    fn renew_leases(
        &self,
        held: Vec<(TaskKey, u64)>,
        lease_ms: u32,
    ) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.read("renewing leases", async move {
            let lost = self.below.renew_leases(held.clone(), lease_ms).await?;
            self.way.renewed(&held, &lost);
            Ok(lost)
        })
    }

    fn canceled_runs(&self) -> BoxFuture<'_, Result<Vec<TaskKey>, StoreError>> {
        self.read("looking for cancels", async { self.below.canceled_runs().await })
    }

    fn release_leases(&self, released: Vec<Release>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.read("releasing leases", async move {
            self.below.release_leases(released.clone()).await?;
            self.way.released(&released);
            Ok(())
        })
    }
}

impl<W: Way> Deliveries for NodeStore<W> {
    fn push_configs(&self, key: TaskKey) -> BoxFuture<'_, Result<Vec<PushConfig>, StoreError>> {
        self.read("reading webhooks", async move { self.below.push_configs(key).await })
    }

    fn claim_deliveries(&self, limit: usize, claim_ms: u32) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        self.read("claiming deliveries", async move { self.below.claim_deliveries(limit, claim_ms).await })
    }

    fn settle_deliveries(
        &self,
        settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.read("settling deliveries", async move { self.below.settle_deliveries(settled).await })
    }

    fn outbox(&self) -> &dyn Outbox {
        self.below.outbox()
    }

    fn next_delivery_at(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        self.read("looking for deliveries", async { self.below.next_delivery_at().await })
    }
}

impl<W: Way> Upkeep for NodeStore<W> {
    fn prune(&self, retention: Retention, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.read("pruning", async move { self.below.prune(retention, limit).await })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.read("probing", async { self.below.probe().await })
    }

    fn stats(&self) -> StoreStats {
        self.below.stats()
    }
}
