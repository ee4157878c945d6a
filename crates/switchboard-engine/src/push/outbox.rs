//! The outbox as an operator sees it: what waits and what was given up on, of everybody; try it again, or drop it. Who
//! is an operator is decided at the door.

use std::sync::{Arc, PoisonError};

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::updates;
use switchboard_core::model::{PushBody, Update};

use super::endpoint::WebhookEndpoint;
use super::endpoint_queues::EndpointHealth;
use super::payload::delivery_id;
use crate::engine_state::{Counters, EngineState};
use crate::ports::outbox::{OutboxEntry, OutboxQuery, OutboxState};
use crate::ports::store::{DeliveryKey, StoreError};

/// Dead letters changed by one call, at most; a caller with more goes on from where it stopped.
const BULK_MAX: usize = 500;
/// Endpoints told about at once.
const ENDPOINTS_SHOWN_MAX: usize = 100;

/// See [`Engine::outbox`](crate::Engine::outbox).
#[derive(Clone)]
pub struct OutboxAdmin {
    engine: Arc<EngineState>,
}

/// Which deliveries a list shows.
#[derive(Clone, Debug, Default)]
pub struct OutboxFilter {
    pub state: Option<OutboxState>,
    pub endpoint: Option<WebhookEndpoint>,
}

/// One page. It may be short, even empty, while more follows: a bounded number of deliveries is looked at for it.
#[derive(Clone, Debug)]
pub struct OutboxList {
    pub entries: Vec<OutboxEntry>,
    pub next: Option<DeliveryKey>,
}

/// One delivery and the update it is stuck at.
#[derive(Clone, Debug)]
pub struct OutboxDetail {
    pub entry: OutboxEntry,
    pub next: Option<NextUpdate>,
}

/// What would be posted next; its contents belong to the task's owner and are not told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextUpdate {
    pub seq: u64,
    pub delivery_id: String,
    /// `task`, `statusUpdate`, `artifactUpdate` or `message`.
    pub kind: &'static str,
}

impl NextUpdate {
    fn new(entry: &OutboxEntry, seq: u64, kind: &'static str) -> Self {
        Self { seq, delivery_id: delivery_id(entry.task_id.as_str(), entry.config_id.as_str(), seq), kind }
    }
}

/// What a change of many dead letters came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    pub changed: usize,
    /// Where to go on, if there may be more.
    pub next: Option<DeliveryKey>,
}

impl OutboxAdmin {
    pub(crate) fn new(engine: Arc<EngineState>) -> Self {
        Self { engine }
    }

    /// # Errors
    /// When the store does not answer, like the others here.
    pub async fn list(
        &self,
        filter: &OutboxFilter,
        after: Option<DeliveryKey>,
        limit: usize,
    ) -> Result<OutboxList, ProtocolError> {
        let query = OutboxQuery { state: filter.state, after, limit };
        let page = self.engine.store.outbox().page(query).await.map_err(|error| self.failed(&error))?;
        let mut entries = page.entries;
        if let Some(endpoint) = &filter.endpoint {
            entries.retain(|entry| WebhookEndpoint::of(&entry.url) == *endpoint);
        }
        Ok(OutboxList { entries, next: page.next })
    }

    /// One delivery, unless it has nothing left to deliver.
    pub async fn show(&self, key: DeliveryKey) -> Result<Option<OutboxDetail>, ProtocolError> {
        let found = self.engine.store.outbox().find(key).await.map_err(|error| self.failed(&error))?;
        let Some(entry) = found else { return Ok(None) };
        if entry.dialect.rules().push_body == PushBody::Task {
            let next = NextUpdate::new(&entry, entry.task_seq, "task");
            return Ok(Some(OutboxDetail { entry, next: Some(next) }));
        }
        let next = match self.engine.store.log(entry.task_key, entry.delivered_seq, 1).await {
            Ok(page) => page.commits.into_iter().next().and_then(|commit| {
                // The context is not shown, so any will do.
                let context_id = "".into();
                let mut numbered = updates(&entry.task_id, &context_id, commit.first_seq, &commit.events);
                numbered.find(|(seq, _)| *seq > entry.delivered_seq)
            }),
            Err(StoreError::Pruned) => None,
            Err(error) => return Err(self.failed(&error)),
        };
        let next = next.map(|(seq, update)| {
            let kind = match update {
                Update::Task(_) => "task",
                Update::Message(_) => "message",
                Update::Status(_) => "statusUpdate",
                Update::Artifact(_) => "artifactUpdate",
            };
            NextUpdate::new(&entry, seq, kind)
        });
        Ok(Some(OutboxDetail { entry, next }))
    }

    /// Makes one delivery due now, be it given up on or waiting for its next attempt, and lets it through even to an
    /// endpoint that is down. False if there is none like that.
    pub async fn redrive(&self, key: DeliveryKey) -> Result<bool, ProtocolError> {
        let found = self.engine.store.outbox().find(key).await.map_err(|error| self.failed(&error))?;
        let Some(entry) = found else { return Ok(false) };
        let redriven = self.redrive_keys(vec![key]).await?;
        self.probe_now(Some(&WebhookEndpoint::of(&entry.url)));
        Ok(redriven == 1)
    }

    /// As [`OutboxAdmin::redrive`], for the dead letters of one endpoint or of all.
    pub async fn redrive_dead(
        &self,
        endpoint: Option<WebhookEndpoint>,
        after: Option<DeliveryKey>,
    ) -> Result<Changed, ProtocolError> {
        let (keys, next) = self.dead(endpoint.clone(), after).await?;
        let changed = self.redrive_keys(keys).await?;
        self.probe_now(endpoint.as_ref());
        Ok(Changed { changed, next })
    }

    /// Drops what a dead payload still had to deliver. The webhook stays, for what its task says later. False if there
    /// is no dead payload like that.
    pub async fn purge(&self, key: DeliveryKey) -> Result<bool, ProtocolError> {
        Ok(self.purge_keys(vec![key]).await? == 1)
    }

    /// As [`OutboxAdmin::purge`], for the dead letters of one endpoint or of all.
    pub async fn purge_dead(
        &self,
        endpoint: Option<WebhookEndpoint>,
        after: Option<DeliveryKey>,
    ) -> Result<Changed, ProtocolError> {
        let (keys, next) = self.dead(endpoint, after).await?;
        Ok(Changed { changed: self.purge_keys(keys).await?, next })
    }

    /// How endpoints do that are called now or have failed lately; those that are down first.
    #[must_use]
    pub fn endpoints(&self) -> Vec<EndpointHealth> {
        self.engine.endpoint_queues.lock().unwrap_or_else(PoisonError::into_inner).report(ENDPOINTS_SHOWN_MAX)
    }

    /// Deliveries under way, and endpoints that are down.
    #[must_use]
    pub fn gauges(&self) -> (usize, usize) {
        let endpoint_queues = self.engine.endpoint_queues.lock().unwrap_or_else(PoisonError::into_inner);
        (endpoint_queues.under_way(), endpoint_queues.open_circuits())
    }

    async fn dead(
        &self,
        endpoint: Option<WebhookEndpoint>,
        after: Option<DeliveryKey>,
    ) -> Result<(Vec<DeliveryKey>, Option<DeliveryKey>), ProtocolError> {
        let filter = OutboxFilter { state: Some(OutboxState::Dead), endpoint };
        let page = self.list(&filter, after, BULK_MAX).await?;
        Ok((page.entries.into_iter().map(|entry| entry.key).collect(), page.next))
    }

    async fn redrive_keys(&self, keys: Vec<DeliveryKey>) -> Result<usize, ProtocolError> {
        let redriven = self.engine.store.outbox().redrive(keys).await.map_err(|error| self.failed(&error))?;
        Counters::add_many(&self.engine.counters.deliveries_redriven, redriven);
        Ok(redriven)
    }

    async fn purge_keys(&self, keys: Vec<DeliveryKey>) -> Result<usize, ProtocolError> {
        let purged = self.engine.store.outbox().purge(keys).await.map_err(|error| self.failed(&error))?;
        Counters::add_many(&self.engine.counters.deliveries_purged, purged);
        Ok(purged)
    }

    fn probe_now(&self, endpoint: Option<&WebhookEndpoint>) {
        let now = self.engine.steady_now();
        self.engine.endpoint_queues.lock().unwrap_or_else(PoisonError::into_inner).probe_now(endpoint, now);
        self.engine.deliveries_due.notify_one();
    }

    fn failed(&self, error: &StoreError) -> ProtocolError {
        self.engine.store_failed(error)
    }
}
