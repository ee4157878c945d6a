//! The delivery loop.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use switchboard_core::dialect::{Dialect, PushBody, encode_update, push_body, push_media_type};
use switchboard_core::lifecycle::updates;
use switchboard_core::model::Update;
use tokio::sync::Semaphore;

use super::backoff::backoff_ms;
use super::whole_task::whole_task;
use crate::house::{Counters, House};
use crate::id_hash::IdHash;
use crate::ports::store::{Delivery, DeliveryOutcome, StoreError};
use crate::ports::{WebhookCall, WebhookError};
use crate::supervisor::Kind;

/// Deliveries taken in one go.
const CLAIM_BATCH: usize = 64;
/// Commits read for one delivery before its cursor is moved.
const PAGE_COMMITS: usize = 32;
/// How long the loop sleeps although nobody woke it.
const IDLE: Duration = Duration::from_secs(2);

pub(crate) async fn deliver_forever(house: Arc<House>) {
    let slots = Arc::new(Semaphore::new(house.limits.deliveries_max));
    loop {
        let free = slots.available_permits().min(CLAIM_BATCH);
        // A claim outlasts every post of one page, so nobody else delivers meanwhile.
        let claim_ms = house.limits.delivery_timeout_ms.saturating_mul(4);
        let claimed = if free == 0 { Ok(Vec::new()) } else { house.store.claim_deliveries(free, claim_ms).await };
        let claimed = claimed.unwrap_or_else(|error| {
            tracing::error!(?error, "deliveries could not be read");
            Vec::new()
        });
        let idle = claimed.is_empty();
        for delivery in claimed {
            let Ok(permit) = slots.clone().acquire_owned().await else { return };
            // Different for each delivery, and the same each time: a simulation must be able to repeat it.
            let dice = IdHash::default().hash_one((delivery.key, delivery.failures));
            let courier = house.clone();
            house.supervisor.spawn(Kind::Delivery, async move {
                deliver(&courier, delivery, dice).await;
                drop(permit);
                courier.deliveries_due.notify_one();
            });
        }
        if idle {
            let wait = match house.store.next_delivery_at().await {
                Ok(Some(due)) => Duration::from_millis(due.ms_since(house.now()).unsigned_abs()).min(IDLE),
                Ok(None) | Err(_) => IDLE,
            };
            tokio::select! {
                biased;
                () = house.deliveries_due.notified() => {}
                () = tokio::time::sleep(wait.max(Duration::from_millis(5))) => {}
            }
        }
    }
}

/// Posts what the receiver has not taken yet, one update after another, and records how far that came.
async fn deliver(house: &House, delivery: Delivery, dice: u64) {
    let outcome = post_page(house, &delivery, dice).await;
    if let Err(error) = house.store.settle_delivery(delivery.key, outcome).await {
        // The claim runs out and the page is posted again: at least once, as promised.
        tracing::error!(task = %delivery.task_id, config = %delivery.config.id, ?error, "a delivery could not be recorded");
    }
}

async fn post_page(house: &House, delivery: &Delivery, dice: u64) -> DeliveryOutcome {
    match push_body(delivery.dialect) {
        PushBody::Update => post_updates(house, delivery, dice).await,
        PushBody::Task => post_task(house, delivery, dice).await,
    }
}

/// Posts the task as it stands: changes that come together are one call.
async fn post_task(house: &House, delivery: &Delivery, dice: u64) -> DeliveryOutcome {
    let delivered_seq = delivery.delivered_seq;
    let (seq, body) = match whole_task(house, delivery).await {
        Ok(Some(whole)) => whole,
        // It is gone, and with it the reason to say anything.
        Ok(None) => return DeliveryOutcome::Delivered { seq: delivered_seq },
        Err(error) => return unread(house, delivered_seq, &error, dice),
    };
    match post(house, delivery, seq, body).await {
        Ok(()) => {
            Counters::add(&house.counters.deliveries_made);
            DeliveryOutcome::Delivered { seq }
        }
        Err(WebhookError::Failed(error)) => failed(house, delivery, delivered_seq, error, dice),
        Err(WebhookError::Refused(error)) => parked(house, delivery, delivered_seq, error),
    }
}

async fn post_updates(house: &House, delivery: &Delivery, dice: u64) -> DeliveryOutcome {
    let mut delivered_seq = delivery.delivered_seq;
    let page = match house.store.log(delivery.task_key, delivered_seq, PAGE_COMMITS).await {
        Ok(page) => page,
        Err(error) => return unread(house, delivered_seq, &error, dice),
    };
    let (task_id, context_id) = (&delivery.task_id, &delivery.context_id);
    for commit in page.commits {
        for (seq, update) in updates(task_id, context_id, commit.first_seq, &commit.events) {
            if seq <= delivered_seq {
                continue;
            }
            match post(house, delivery, seq, encode(delivery.dialect, &update)).await {
                Ok(()) => {}
                Err(WebhookError::Failed(error)) => return failed(house, delivery, delivered_seq, error, dice),
                // The address will not become allowed by waiting.
                Err(WebhookError::Refused(error)) => return parked(house, delivery, delivered_seq, error),
            }
            Counters::add(&house.counters.deliveries_made);
            delivered_seq = seq;
        }
    }
    DeliveryOutcome::Delivered { seq: delivered_seq }
}

fn unread(house: &House, delivered_seq: u64, error: &StoreError, dice: u64) -> DeliveryOutcome {
    let due = house.now().plus_ms(backoff_ms(1, 1_000, 60_000, dice));
    DeliveryOutcome::Retry { delivered_seq, due, error: format!("the log could not be read: {error:?}") }
}

fn failed(house: &House, delivery: &Delivery, delivered_seq: u64, error: String, dice: u64) -> DeliveryOutcome {
    let limits = &house.limits;
    Counters::add(&house.counters.deliveries_failed);
    // Whatever was delivered on the way starts the count anew.
    let failures = if delivered_seq > delivery.delivered_seq { 1 } else { delivery.failures + 1 };
    let (task, config) = (&delivery.task_id, &delivery.config.id);
    if failures >= limits.delivery_failures_max {
        return parked(house, delivery, delivered_seq, error);
    }
    tracing::info!(%task, %config, failures, error, "a webhook failed and will be tried again");
    let wait_ms = backoff_ms(failures, limits.delivery_backoff_ms_min, limits.delivery_backoff_ms_max, dice);
    DeliveryOutcome::Retry { delivered_seq, due: house.now().plus_ms(wait_ms), error }
}

fn parked(house: &House, delivery: &Delivery, delivered_seq: u64, error: String) -> DeliveryOutcome {
    Counters::add(&house.counters.deliveries_parked);
    let (task, config, failures) = (&delivery.task_id, &delivery.config.id, delivery.failures + 1);
    tracing::warn!(%task, %config, failures, error, "a webhook is given up on");
    DeliveryOutcome::Parked { delivered_seq, error }
}

async fn post(house: &House, delivery: &Delivery, seq: u64, body: Bytes) -> Result<(), WebhookError> {
    let call = WebhookCall { url: delivery.config.url.clone(), headers: headers(delivery, seq), body };
    let patience = Duration::from_millis(u64::from(house.limits.delivery_timeout_ms));
    match tokio::time::timeout(patience, house.webhook.post(call)).await {
        Ok(Ok(status)) if (200..300).contains(&status) => Ok(()),
        Ok(Ok(status)) => Err(WebhookError::Failed(format!("the receiver answered {status}"))),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(WebhookError::Failed("the receiver did not answer in time".to_owned())),
    }
}

fn headers(delivery: &Delivery, seq: u64) -> Vec<(&'static str, String)> {
    let Delivery { config, task_id, failures, .. } = delivery;
    let mut headers = vec![
        ("content-type", push_media_type(delivery.dialect).to_owned()),
        // The same in every attempt: a receiver that has seen it has seen the update.
        ("a2a-delivery-id", format!("{task_id}:{}:{seq}", config.id)),
        ("a2a-delivery-attempt", (failures + 1).to_string()),
    ];
    if let Some(authentication) = &config.authentication {
        let credentials = authentication.credentials.as_deref().unwrap_or_default();
        headers.push(("authorization", format!("{} {credentials}", authentication.scheme).trim_end().to_owned()));
    }
    if let Some(token) = &config.token {
        // The spec names no header; these are the two that other SDKs use.
        headers.push(("x-a2a-notification-token", token.clone()));
        headers.push(("a2a-notification-token", token.clone()));
    }
    headers
}

fn encode(dialect: Dialect, update: &Update) -> Bytes {
    let mut body = Vec::with_capacity(512);
    encode_update(dialect, update, &mut body);
    body.into()
}
