//! The delivery loop. It claims due deliveries in batches, starts those that may start, and records all outcomes since
//! the last round in one write. It sleeps while nothing is due and nothing ends.
//!
//! Whatever makes a delivery due wakes the loop of the process that does it: a commit, a retry, an operator. So while nothing waits
//! anywhere, a process looks only for what another one left behind that ended just then, and it does that a few times in a lease.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::deliver::{deliver, parked};
use crate::id_hash::IdHash;
use crate::ports::store::{Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome};
use crate::state::webhooks::{CallResult, ClaimedDelivery, Disposition, EndpointQueues, WebhookEndpoint};
use crate::state::{Counters, EngineState};
use crate::supervisor::Kind;

/// How many deliveries are claimed at once.
const CLAIM_BATCH: usize = 256;
/// The longest time that the loop sleeps without being woken while deliveries wait or are under way, here or in another process.
const IDLE: Duration = Duration::from_secs(2);
/// The same while there are none: so many times in a lease, and at least so often.
const LOOKS_PER_LEASE: u32 = 3;
const NOTHING_WAITS_MAX: Duration = Duration::from_secs(10);
/// The pause after a delivery should have been due and could not be claimed: the clock of the store is behind ours, or another process
/// is just claiming it. It doubles up to `IDLE`.
const NOT_DUE_YET_MIN: Duration = Duration::from_millis(5);
/// How long it sleeps when the store fails.
const AFTER_FAILURE: Duration = Duration::from_millis(500);
/// How often endpoints without recent failures or deliveries are removed from memory.
const TIDY: Duration = Duration::from_secs(1);

pub(crate) async fn deliver_forever(engine: Arc<EngineState>) {
    let (done, finished) = mpsc::channel(engine.limits.deliveries_max.max(1));
    let dispatcher = Dispatcher {
        engine,
        in_hand: HashMap::default(),
        settled: Vec::new(),
        done,
        finished,
        soonest: None,
        timer_fired: true,
        nothing_waits: false,
        not_due_yet: NOT_DUE_YET_MIN,
        tidied: Instant::now(),
    };
    dispatcher.run().await;
}

struct Dispatcher {
    engine: Arc<EngineState>,
    /// Deliveries that this process has claimed: under way, or waiting for a slot.
    in_hand: HashMap<DeliveryKey, Held, IdHash>,
    /// Deliveries that have ended or were put back, and are not recorded yet.
    settled: Vec<(DeliveryClaim, DeliveryOutcome)>,
    done: mpsc::Sender<Finished>,
    finished: mpsc::Receiver<Finished>,
    /// When the next delivery is due, as far as is known.
    soonest: Option<Timestamp>,
    timer_fired: bool,
    /// Whether the last look found no delivery that waits or is under way, and this process has claimed and recorded none since.
    nothing_waits: bool,
    not_due_yet: Duration,
    tidied: Instant,
}

/// The claim under which the outcome of a delivery is recorded.
struct Held {
    claim: DeliveryClaim,
    delivered_seq: u64,
    failures: u32,
}

impl Held {
    fn of(delivery: &Delivery) -> Self {
        Self { claim: delivery.claim(), delivered_seq: delivery.delivered_seq, failures: delivery.failures }
    }

    /// The claim ran out while the delivery was under way (a frozen process), and this process has taken it again: the
    /// delivery goes on under the new claim. If another process has moved the cursor in between, the outcome is
    /// recorded under the old claim.
    fn renew(&mut self, claimed: &Delivery) {
        if (self.delivered_seq, self.failures) == (claimed.delivered_seq, claimed.failures) {
            self.claim = claimed.claim();
        }
    }
}

/// A delivery that has ended, also by a panic.
struct Finished {
    key: DeliveryKey,
    endpoint: WebhookEndpoint,
    owner: Owner,
    probe: bool,
    began: Instant,
    /// None if the delivery panicked; its claim then runs out.
    outcome: Option<DeliveryOutcome>,
    call_result: CallResult,
}

/// Reports the end of a delivery when it is dropped, so that a panic does not lose its slot.
struct ReportOnDrop {
    done: mpsc::Sender<Finished>,
    finished: Option<Finished>,
}

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        if let Some(finished) = self.finished.take() {
            // The channel has capacity for as many deliveries as may be under way.
            let _ = self.done.try_send(finished);
        }
    }
}

impl Dispatcher {
    async fn run(mut self) {
        loop {
            while let Ok(finished) = self.finished.try_recv() {
                self.handle_finished(finished);
            }
            let moved = self.endpoint_queues().advance(self.engine.steady_now());
            for (endpoint, place) in moved {
                self.act(endpoint, place);
            }
            let is_good = self.settle_and_claim().await;
            self.tidy();
            if !is_good {
                tokio::time::sleep(AFTER_FAILURE).await;
            } else if self.settled.is_empty() {
                self.wait().await;
            }
        }
    }

    fn endpoint_queues(&self) -> MutexGuard<'_, EndpointQueues<ClaimedDelivery>> {
        self.engine.endpoint_queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what has ended and claims what is due, both at the same time. Returns whether the store succeeded.
    async fn settle_and_claim(&mut self) -> bool {
        let settled = std::mem::take(&mut self.settled);
        let looks = std::mem::take(&mut self.timer_fired);
        // An update that another process committed under our claim is due once the delivery before it is recorded.
        self.nothing_waits &= settled.is_empty();
        let now = self.engine.now();
        let was_due = looks && self.soonest.is_some_and(|due| due <= now);
        let dues = settled.iter().filter_map(|(_, outcome)| wait_ms_of(outcome)).map(|wait_ms| now.plus_ms(wait_ms));
        self.soonest = self.soonest.into_iter().chain(dues).min();
        let limits = &self.engine.limits;
        let limit = if self.endpoint_queues().has_free_slot() { CLAIM_BATCH } else { 0 };
        let settling =
            async { if settled.is_empty() { Ok(()) } else { self.engine.store.settle_deliveries(settled).await } };
        let claiming = async {
            if limit == 0 {
                return Ok(Vec::new());
            }
            self.engine.store.claim_deliveries(limit, ClaimedDelivery::lasts_ms(limits)).await
        };
        let (settling, claiming) = tokio::join!(settling, claiming);
        if let Err(error) = &settling {
            // The claims run out, and the updates are posted again. Delivery is at least once.
            tracing::error!(?error, "ended deliveries could not be recorded");
        }
        let claimed = match claiming {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::error!(?error, "due deliveries could not be read");
                self.timer_fired = true;
                return false;
            }
        };
        let more = limit > 0 && claimed.len() == limit;
        self.nothing_waits &= claimed.is_empty();
        self.not_due_yet =
            if was_due && claimed.is_empty() { (self.not_due_yet * 2).min(IDLE) } else { NOT_DUE_YET_MIN };
        for delivery in claimed {
            self.offer(delivery);
        }
        if more {
            self.engine.deliveries_due.notify_one();
            self.timer_fired = looks;
        } else if looks {
            self.look_ahead().await;
        }
        settling.is_ok()
    }

    /// Asks when the next delivery is due.
    async fn look_ahead(&mut self) {
        let next = self.engine.store.next_delivery_at().await;
        self.nothing_waits = matches!(next, Ok(None)) && self.in_hand.is_empty() && self.settled.is_empty();
        self.soonest = next.unwrap_or_default();
    }

    fn offer(&mut self, delivery: Delivery) {
        match self.in_hand.entry(delivery.key) {
            Entry::Occupied(mut held) => return held.get_mut().renew(&delivery),
            Entry::Vacant(place) => drop(place.insert(Held::of(&delivery))),
        }
        let endpoint = WebhookEndpoint::of(&delivery.config.url);
        let claimed = ClaimedDelivery { delivery, at: Instant::now() };
        let owner = claimed.delivery.scope.owner.clone();
        let place = self.endpoint_queues().offer(&endpoint, &owner, claimed, self.engine.steady_now());
        if let Some(place) = place {
            self.act(endpoint, place);
        }
    }

    fn act(&mut self, endpoint: WebhookEndpoint, place: Disposition<ClaimedDelivery>) {
        match place {
            Disposition::Start { item, probe } => self.start(endpoint, item, probe),
            Disposition::Hold { item, due } => {
                Counters::add(&self.engine.counters.deliveries_held);
                self.put_back(&item.delivery, due.ms_since(self.engine.steady_now()));
            }
            Disposition::GiveUp { item, .. } if self.engine.clock_is_held() => {
                Counters::add(&self.engine.counters.deliveries_held);
                self.put_back(&item.delivery, i64::from(self.engine.limits.endpoint_probe_ms_max));
            }
            Disposition::GiveUp { item, down_since } => {
                let delivery = item.delivery;
                let since = down_since.to_rfc3339();
                let error = format!("{endpoint} has not answered since {}", String::from_utf8_lossy(&since));
                let outcome = parked(&self.engine, &delivery, delivery.delivered_seq, error);
                self.settle(delivery.key, outcome);
            }
        }
    }

    fn start(&mut self, endpoint: WebhookEndpoint, claimed: ClaimedDelivery, probe: bool) {
        let key = claimed.delivery.key;
        let (owner, began, call_result) = (claimed.delivery.scope.owner.clone(), Instant::now(), CallResult::default());
        let finished = Finished { key, endpoint, owner, probe, began, outcome: None, call_result };
        let mut report = ReportOnDrop { done: self.done.clone(), finished: Some(finished) };
        let dice = dice((key, claimed.delivery.failures));
        let engine = self.engine.clone();
        self.engine.supervisor.spawn(Kind::Delivery, async move {
            let (outcome, call_result) = if claimed.is_stale(&engine.limits) {
                let delivered_seq = claimed.delivery.delivered_seq;
                (DeliveryOutcome::Postponed { delivered_seq, wait_ms: 0 }, CallResult::default())
            } else {
                deliver(&engine, &claimed, probe, dice).await
            };
            if let Some(finished) = &mut report.finished {
                finished.outcome = Some(outcome);
                finished.call_result = call_result;
            }
        });
    }

    fn handle_finished(&mut self, finished: Finished) {
        let Finished { key, endpoint, owner, probe, began, outcome, call_result } = finished;
        let dice = dice((key, began.elapsed().subsec_nanos()));
        let (took, now) = (began.elapsed(), self.engine.steady_now());
        self.endpoint_queues().finished(&endpoint, &owner, probe, call_result, took, now, dice);
        match outcome {
            Some(outcome) => self.settle(key, outcome),
            None => drop(self.in_hand.remove(&key)),
        }
    }

    fn put_back(&mut self, delivery: &Delivery, wait_ms: i64) {
        self.settle(delivery.key, DeliveryOutcome::Postponed { delivered_seq: delivery.delivered_seq, wait_ms });
    }

    fn settle(&mut self, key: DeliveryKey, outcome: DeliveryOutcome) {
        if let Some(held) = self.in_hand.remove(&key) {
            self.settled.push((held.claim, outcome));
        }
    }

    fn tidy(&mut self) {
        if self.tidied.elapsed() >= TIDY {
            self.tidied = Instant::now();
            self.endpoint_queues().tidy(self.engine.steady_now());
            self.engine.webhook.tidy();
        }
    }

    /// Waits until a delivery has ended, a commit has made one due, or the next one becomes due.
    async fn wait(&mut self) {
        let wait = match self.soonest {
            Some(due) => {
                let ms = u64::try_from(due.ms_since(self.engine.now())).unwrap_or_default();
                Duration::from_millis(ms).max(self.not_due_yet).min(IDLE)
            }
            None if self.nothing_waits => {
                let lease = Duration::from_millis(self.engine.limits.lease_ms.into());
                (lease / LOOKS_PER_LEASE).clamp(IDLE, NOTHING_WAITS_MAX)
            }
            None => IDLE,
        };
        let has_free_slot = self.endpoint_queues().has_free_slot();
        tokio::select! {
            biased;
            finished = self.finished.recv() => {
                if let Some(finished) = finished {
                    self.handle_finished(finished);
                }
            }
            () = self.engine.deliveries_due.notified(), if has_free_slot => {}
            () = tokio::time::sleep(if has_free_slot { wait } else { IDLE }) => self.timer_fired = true,
        }
    }
}

/// A number that differs between deliveries but is the same each time, so that a simulation can repeat it.
fn dice(what: impl Hash) -> u64 {
    IdHash::default().hash_one(what)
}

fn wait_ms_of(outcome: &DeliveryOutcome) -> Option<i64> {
    match outcome {
        DeliveryOutcome::Retry { wait_ms, .. } | DeliveryOutcome::Postponed { wait_ms, .. } => Some(*wait_ms),
        DeliveryOutcome::Delivered { .. } | DeliveryOutcome::Parked { .. } => None,
    }
}
