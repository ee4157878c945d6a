//! The outbox for operators: the waiting deliveries and dead letters of all owners, to redrive or drop. The server
//! checks that the caller is an operator.

use std::sync::{Arc, PoisonError};

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::updates;
use switchboard_core::model::{PushBody, Update};

use super::payload::delivery_id;
use crate::ports::outbox::{OutboxEntry, OutboxQuery, OutboxState};
use crate::ports::store::{DeliveryKey, StoreError};
use crate::state::webhooks::{EndpointHealth, WebhookEndpoint};
use crate::state::{Counters, EngineState};

/// How many dead letters one call changes at most; a caller continues with the returned token.
const BULK_MAX: usize = 500;
/// How many endpoints are listed at most.
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

/// One page. It may be short or even empty although more follow, because a bounded number of deliveries is examined for
/// it.
#[derive(Clone, Debug)]
pub struct OutboxList {
    pub entries: Vec<OutboxEntry>,
    pub next: Option<DeliveryKey>,
}

/// One delivery and the next update that it has to deliver.
#[derive(Clone, Debug)]
pub struct OutboxDetail {
    pub entry: OutboxEntry,
    pub next: Option<NextUpdate>,
}

/// What would be posted next. The contents belong to the task's owner and are not shown.
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

/// The result of changing many dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    pub changed: usize,
    /// The token to continue with, if there may be more.
    pub next: Option<DeliveryKey>,
}

impl OutboxAdmin {
    pub(crate) fn new(engine: Arc<EngineState>) -> Self {
        Self { engine }
    }

    /// # Errors
    /// When the store does not answer; this holds for all methods here.
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
                // The context is not shown, so any value does.
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

    /// Makes one delivery due now, whether it is a dead letter or waits for its next attempt, and lets it through even
    /// to an endpoint that is down. False if there is no such delivery.
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

    /// Drops what a dead letter still had to deliver. The webhook stays for later updates of its task. False if there
    /// is no such dead letter.
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

    /// The health of endpoints that are called now or have failed lately; those that are down first.
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
