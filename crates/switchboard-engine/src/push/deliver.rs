//! One delivery: reads what the receiver has not accepted yet and posts it. The receiver's dialect decides whether that
//! is one update after another or the whole task. After a failure the next attempt waits, twice as long each time up to
//! a bound, and randomised, so that receivers that failed together are not all tried at the same time.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::lifecycle::{Event, updates};
use switchboard_core::model::{PushBody, TraceContext};

use super::payload::{Payload, delivery_id, encode, headers, newest_state, scheme_without_credentials, whole_task};
use crate::ports::store::{Delivery, DeliveryOutcome, StoreError, TaskKey};
use crate::ports::trace::{SpanKind, attribute};
use crate::ports::{WebhookAnswer, WebhookCall, WebhookError};
use crate::spans::OpenSpan;
use crate::state::webhooks::{CallResult, ClaimedDelivery, backoff_ms};
use crate::state::{Counters, EngineState};

/// How many commits are read for one delivery before its cursor advances.
const PAGE_COMMITS: usize = 32;

/// Posts what is due. A probe posts only one update, because other deliveries wait for its result.
pub(super) async fn deliver(
    engine: &EngineState,
    claimed: &ClaimedDelivery,
    probe: bool,
    dice: u64,
) -> (DeliveryOutcome, CallResult) {
    let mut posting = Posting {
        engine,
        claimed,
        delivered_seq: claimed.delivery.delivered_seq,
        posts_left: if probe { 1 } else { usize::MAX },
        trace: None,
        call_result: CallResult::default(),
    };
    let outcome = match posting.go().await {
        Ok(()) => DeliveryOutcome::Delivered { seq: posting.delivered_seq },
        Err(Stop::Store(error)) => unreadable(engine, &claimed.delivery, posting.delivered_seq, &error, dice),
        Err(Stop::Post(WebhookError::Failed(error))) => failed(&posting, error, dice),
        // Waiting will not make the address allowed.
        Err(Stop::Post(WebhookError::Refused(error))) => {
            parked(engine, &claimed.delivery, posting.delivered_seq, error)
        }
    };
    (outcome, posting.call_result)
}

struct Posting<'a> {
    engine: &'a EngineState,
    claimed: &'a ClaimedDelivery,
    delivered_seq: u64,
    posts_left: usize,
    /// The trace that the posts belong to.
    trace: Option<Arc<TraceContext>>,
    call_result: CallResult,
}

enum Stop {
    Store(StoreError),
    Post(WebhookError),
}

impl Posting<'_> {
    async fn go(&mut self) -> Result<(), Stop> {
        match self.claimed.delivery.dialect.rules().push_body {
            PushBody::Update => self.post_updates().await,
            PushBody::Task => self.post_task().await,
        }
    }

    /// Posts the whole task in its present state, so several changes may be one call.
    async fn post_task(&mut self) -> Result<(), Stop> {
        let whole = whole_task(self.engine, &self.claimed.delivery).await.map_err(Stop::Store)?;
        self.trace = self.engine.webhook_trace(self.claimed.delivery.task_key).await;
        match whole {
            Some((seq, body)) if seq > self.delivered_seq => self.post(Payload { seq, skipped: 0, body }).await,
            // The task was removed, or the receiver already has its newest state.
            Some(_) | None => Ok(()),
        }
    }

    async fn post_updates(&mut self) -> Result<(), Stop> {
        let delivery = &self.claimed.delivery;
        if self.delivered_seq > 0 {
            self.trace = self.engine.webhook_trace(delivery.task_key).await;
        }
        if let Some(payload) = newest_state(self.engine, delivery).await.map_err(Stop::Store)? {
            self.post(payload).await?;
        }
        let page = self.engine.store.log(delivery.task_key, self.delivered_seq, PAGE_COMMITS);
        for commit in page.await.map_err(Stop::Store)?.commits {
            let events = &commit.events;
            if commit.first_seq == 1 {
                self.trace = self.engine.note_opening(delivery.task_key, events);
            }
            for (seq, update) in updates(&delivery.task_id, &delivery.context_id, commit.first_seq, events) {
                if seq <= self.delivered_seq {
                    continue;
                }
                if self.posts_left == 0 || !self.claimed.is_fresh(&self.engine.limits) {
                    return Ok(());
                }
                self.post(Payload { seq, skipped: 0, body: encode(delivery.dialect, &update) }).await?;
            }
        }
        Ok(())
    }

    async fn post(&mut self, payload: Payload) -> Result<(), Stop> {
        let ClaimedDelivery { delivery, .. } = self.claimed;
        // The recorded failures belong to the first update; later updates have not been tried.
        let first = self.delivered_seq == delivery.delivered_seq;
        let attempt = if first { delivery.failures + 1 } else { 1 };
        self.posts_left -= 1;
        let Payload { seq, skipped, .. } = payload;
        let delivery_id = delivery_id(delivery.task_id.as_str(), delivery.config.id.as_str(), seq);
        let mut span = self.span(&delivery_id, attempt);
        let trace = span.as_ref().map(|span| span.context()).or(self.trace.as_ref());
        let call = WebhookCall {
            url: delivery.config.url.clone(),
            headers: headers(delivery, &delivery_id, &payload, attempt, trace.map(|trace| &**trace)),
            delivery_id,
            body: payload.body,
            task_id: delivery.task_id.clone(),
            scheme_without_credentials: scheme_without_credentials(delivery),
        };
        let patience = Duration::from_millis(u64::from(self.engine.limits.delivery_timeout_ms));
        let answered = tokio::time::timeout(patience, self.engine.webhook.post(call)).await;
        if let (Some(span), Ok(Ok(answer))) = (&mut span, &answered) {
            span.says(attribute::STATUS, u32::from(answer.status));
        }
        let error = match answered {
            Ok(Ok(WebhookAnswer { status: status @ 200..=299, .. })) => {
                tracing::trace!(status, "a webhook took an update");
                self.call_result = CallResult { answered: true, ..CallResult::default() };
                Counters::add(&self.engine.counters.deliveries_made);
                Counters::add_many(
                    &self.engine.counters.deliveries_skipped,
                    usize::try_from(skipped).unwrap_or(usize::MAX),
                );
                self.delivered_seq = seq;
                return Ok(());
            }
            Ok(Ok(WebhookAnswer { status, retry_after_ms })) => {
                if may_carry_retry_after(status) {
                    // A receiver may ask for a longer pause than ours, up to the configured maximum.
                    let most_ms = self.engine.limits.delivery_backoff_ms_max.into();
                    self.call_result.retry_after_ms = retry_after_ms.unwrap_or(0).min(most_ms);
                }
                let error = format!("the receiver answered {status}");
                if is_receiver_failure(status) {
                    self.call_result.failed = Some(error.clone());
                } else {
                    self.call_result.answered = true;
                }
                WebhookError::Failed(error)
            }
            Ok(Err(WebhookError::Refused(error))) => WebhookError::Refused(error),
            Ok(Err(WebhookError::Failed(error))) => {
                self.call_result.failed = Some(error.clone());
                WebhookError::Failed(error)
            }
            Err(_) => {
                let error = "the receiver did not answer in time".to_owned();
                self.call_result.failed = Some(error.clone());
                WebhookError::Failed(error)
            }
        };
        if let (Some(span), WebhookError::Failed(error) | WebhookError::Refused(error)) = (&mut span, &error) {
            span.fails(error.clone());
        }
        Err(Stop::Post(error))
    }

    /// The span of one post, if the trace is recorded.
    fn span(&self, delivery_id: &str, attempt: u32) -> Option<Box<OpenSpan>> {
        let mut span = self.engine.span(self.trace.as_deref(), SpanKind::Producer, "webhook")?;
        let Delivery { scope, task_id, .. } = &self.claimed.delivery;
        span.says(attribute::AGENT, scope.agent.as_str().to_owned());
        span.says(attribute::TASK, task_id.as_str().to_owned());
        span.says(attribute::DELIVERY, delivery_id.to_owned());
        span.says(attribute::ATTEMPT, attempt);
        Some(span)
    }
}

/// Whether a status means that the whole receiver has a problem. Other statuses concern this one webhook: a missing
/// path or a refused token says nothing about other webhooks of the endpoint.
fn is_receiver_failure(status: u16) -> bool {
    status >= 500 || matches!(status, 408 | 429)
}

/// Whether `Retry-After` asks for a pause with this status. With others it means something else, or nothing.
fn may_carry_retry_after(status: u16) -> bool {
    matches!(status, 429 | 503)
}

fn unreadable(
    engine: &EngineState,
    delivery: &Delivery,
    delivered_seq: u64,
    error: &StoreError,
    dice: u64,
) -> DeliveryOutcome {
    if *error == StoreError::Pruned {
        let error = "the updates that were not delivered are no longer kept".to_owned();
        return parked(engine, delivery, delivered_seq, error);
    }
    if let StoreError::Damaged(_) = error {
        // Waiting does not repair the task. As a dead letter the delivery is listed, and an operator can redrive it
        // when the task is repaired.
        return parked(engine, delivery, delivered_seq, "what is stored of the task is damaged".to_owned());
    }
    tracing::error!(task = %delivery.task_id, config = %delivery.config.id, ?error, "a delivery could not be read");
    DeliveryOutcome::Postponed { delivered_seq, wait_ms: backoff_ms(4, 500, 60_000, dice) }
}

fn failed(posting: &Posting<'_>, error: String, dice: u64) -> DeliveryOutcome {
    let Posting { engine, delivered_seq, .. } = *posting;
    let (delivery, limits) = (&posting.claimed.delivery, &engine.limits);
    Counters::add(&engine.counters.deliveries_failed);
    // A delivered update resets the count of failures.
    let failures = if delivered_seq > delivery.delivered_seq { 1 } else { delivery.failures + 1 };
    let (task, config) = (&delivery.task_id, &delivery.config.id);
    // After a jump of the wall clock there may have been no pauses between the attempts, so the delivery is not given
    // up.
    if failures >= limits.delivery_failures_max && !engine.clock_is_held() {
        return parked(engine, delivery, delivered_seq, error);
    }
    tracing::info!(%task, %config, failures, error, "a webhook failed and will be tried again");
    let wait_ms = backoff_ms(failures, limits.delivery_backoff_ms_min, limits.delivery_backoff_ms_max, dice);
    let wait_ms = wait_ms.max(i64::try_from(posting.call_result.retry_after_ms).unwrap_or(i64::MAX));
    DeliveryOutcome::Retry { delivered_seq, wait_ms, error }
}

pub(super) fn parked(engine: &EngineState, delivery: &Delivery, delivered_seq: u64, error: String) -> DeliveryOutcome {
    Counters::add(&engine.counters.deliveries_parked);
    let (task, config, failures) = (&delivery.task_id, &delivery.config.id, delivery.failures + 1);
    tracing::warn!(%task, %config, failures, error, "a webhook is given up on");
    DeliveryOutcome::Parked { delivered_seq, error }
}

impl EngineState {
    /// Remembers the trace of a task whose first commit was read.
    fn note_opening(&self, key: TaskKey, events: &[Event]) -> Option<Arc<TraceContext>> {
        let opened = events.iter().find_map(|event| match event {
            Event::Opened { inbound, .. } => Some(inbound.trace.clone()),
            _ => None,
        });
        let trace = opened.flatten();
        self.webhook_traces.put(key, trace.clone());
        trace
    }

    /// The trace that the webhooks of a task belong to. If its log cannot be read, they belong to none.
    async fn webhook_trace(&self, key: TaskKey) -> Option<Arc<TraceContext>> {
        if let Some(known) = self.webhook_traces.get(key) {
            return known;
        }
        let page = self.store.log(key, 0, 1).await.ok()?;
        let first = page.commits.first()?;
        self.note_opening(key, &first.events)
    }
}
