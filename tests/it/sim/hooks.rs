//! The receiver of webhooks: it fails in every way a receiver can, and records exactly what it has taken.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{ConfigId, TaskId};
use switchboard_engine::ports::{Webhook, WebhookAnswer, WebhookCall, WebhookError};

use super::audit::Audit;
use super::journal::count;
use super::life::Life;
use super::weather::{Weather, pass};

/// What one (task, config) was told: by number, as it was on the wire.
pub(super) type Told = BTreeMap<(TaskId, ConfigId), BTreeMap<u64, String>>;

#[derive(Default)]
pub(super) struct Receiver(Mutex<Told>);

impl Receiver {
    pub(super) fn told(&self) -> Told {
        self.0.lock().unwrap().clone()
    }

    /// The number of the last update it has taken.
    pub(super) fn last(&self, id: &TaskId, config: &ConfigId) -> Option<u64> {
        let told = self.0.lock().unwrap();
        told.get(&(id.clone(), config.clone())).and_then(|told| told.keys().next_back().copied())
    }

    /// Takes a call in. What it has not seen before must be the very next.
    fn take(&self, call: &WebhookCall, audit: &Audit, weather: &Weather) {
        let journal = &weather.journal;
        let Some((id, config, seq)) = delivery_id(call) else {
            return journal.broken("a webhook came without a delivery id");
        };
        let body = String::from_utf8_lossy(&call.body).into_owned();
        let mut told = self.0.lock().unwrap();
        let told = told.entry((id.clone(), config.clone())).or_default();
        if let Some(before) = told.get(&seq) {
            count(&journal.counts.webhooks_repeated);
            if *before != body {
                journal.broken(&format!("{id}: webhook {config} was told update {seq} in two ways"));
            }
            return;
        }
        let Some(after_seq) = audit.hook(&id, &config) else {
            return journal.broken(&format!("{id}: webhook {config} was called and is not registered"));
        };
        let last = told.keys().next_back().copied().unwrap_or(after_seq);
        if seq != last + 1 {
            journal.broken(&format!("{id}: webhook {config} was told update {seq} after update {last}"));
        }
        if !audit.has_committed(&id, seq) {
            journal.broken(&format!("{id}: webhook {config} was told update {seq}, which is not committed"));
        }
        count(&journal.counts.webhooks_taken);
        told.insert(seq, body);
    }
}

/// The stable name of a delivery, `task:config:number`, taken apart.
fn delivery_id(call: &WebhookCall) -> Option<(TaskId, ConfigId, u64)> {
    let (_, value) = call.headers.iter().find(|(name, _)| *name == "a2a-delivery-id")?;
    let (rest, seq) = value.rsplit_once(':')?;
    let (id, config) = rest.split_once(':')?;
    Some((id.into(), config.into(), seq.parse().ok()?))
}

/// The receiver as one process reaches it.
pub(super) struct NodeWebhook {
    pub(super) receiver: Arc<Receiver>,
    pub(super) life: Arc<Life>,
    pub(super) weather: Arc<Weather>,
    pub(super) audit: Arc<Audit>,
}

impl Webhook for NodeWebhook {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, WebhookError>> {
        Box::pin(async move {
            let weather = &self.weather;
            weather.step(&self.life, "before a webhook");
            self.life.awake().await;
            let fault = weather.one_in(6).then(|| weather.below(5));
            if fault.is_some() {
                count(&weather.journal.counts.webhook_faults);
            }
            if !weather.is_calm() {
                pass(Duration::from_millis(weather.below(40))).await;
            }
            match fault {
                Some(0) => return Err(WebhookError::Failed("connection refused".to_owned())),
                Some(1) => return Ok(500.into()),
                Some(2) => pending().await,
                _ => self.receiver.take(&call, &self.audit, weather),
            }
            weather.step(&self.life, "after a webhook");
            self.life.awake().await;
            match fault {
                Some(3) => Err(WebhookError::Failed("connection reset".to_owned())),
                Some(_) => pending().await,
                None => Ok(200.into()),
            }
        })
    }
}
