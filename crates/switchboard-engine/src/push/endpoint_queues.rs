//! Who may start: deliveries sorted by endpoint, so that a sick or slow one never takes the slots of the others. Pure:
//! decides and counts; the loop in `dispatch` acts.
//!
//! - Half of the slots are shared: an endpoint may have as many deliveries under way as there are of those left. The
//!   other half is for endpoints that have hardly any under way: however many are slow, the next one is served.
//! - A few more wait here, under the same rule, so that an endpoint that is merely busy never stands idle.
//! - Whatever is beyond that, or belongs to an endpoint whose circuit is open, is held: put back into the store, to come
//!   up again when there may be room, a row after the other and not all at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use switchboard_core::model::Timestamp;

use super::endpoint::WebhookEndpoint;
use super::health::{Admission, Failure, Health, Rules};

/// What an endpoint gets whatever the others take.
const SHARE_MIN: usize = 2;
/// Endpoints remembered because they failed. With more, those that nobody calls are forgotten.
const SICK_MAX: usize = 10_000;
/// How long a sick endpoint is remembered without anything to deliver there.
const SICK_KEPT_MS: i64 = 3_600_000;
/// Rows that are held come up again one by one, no quicker than this.
const PACE_MICROS_MIN: i64 = 1_000;
/// A row is held for so long at most; then it asks again.
const HOLD_MS_MAX: i64 = 60_000;

pub(crate) struct EndpointQueues<T> {
    /// Deliveries that may be under way in all; half as many may wait.
    slots: usize,
    rules: Rules,
    down_ms_max: i64,
    queues: BTreeMap<WebhookEndpoint, EndpointQueue<T>>,
    under_way: usize,
    waiting: usize,
    /// The queues in which somebody waits.
    queued: BTreeSet<WebhookEndpoint>,
}

struct EndpointQueue<T> {
    under_way: usize,
    waiting: VecDeque<T>,
    health: Health,
    /// How long a delivery takes there, smoothed.
    took_micros: i64,
    /// Up to when rows are held: the next one comes up after it.
    held_until_micros: i64,
}

impl<T> Default for EndpointQueue<T> {
    fn default() -> Self {
        let health = Health::default();
        Self { under_way: 0, waiting: VecDeque::new(), health, took_micros: 0, held_until_micros: 0 }
    }
}

/// What becomes of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Disposition<T> {
    Start {
        item: T,
        probe: bool,
    },
    /// Back into the store until then.
    Hold {
        item: T,
        due: Timestamp,
    },
    /// The endpoint has been down for so long that nobody waits for it any more.
    GiveUp {
        item: T,
        down_since: Timestamp,
    },
}

/// What a delivery found out about its endpoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallResult {
    /// Whether somebody answered there, whatever the answer.
    pub(super) answered: bool,
    /// How it ended, if not with an answer.
    pub(super) failed: Option<String>,
    /// How long the receiver wants to be left alone.
    pub(super) retry_after_ms: u64,
}

/// How an endpoint does, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointHealth {
    pub endpoint: WebhookEndpoint,
    /// Whether its deliveries wait for a probe to succeed.
    pub open: bool,
    pub failures: u32,
    pub down_since: Option<Timestamp>,
    pub next_probe_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub under_way: usize,
    pub waiting: usize,
}

impl<T> EndpointQueues<T> {
    pub(super) fn new(slots: usize, rules: Rules, down_ms_max: i64) -> Self {
        let (queues, queued) = (BTreeMap::new(), BTreeSet::new());
        Self { slots: slots.max(1), rules, down_ms_max, queues, under_way: 0, waiting: 0, queued }
    }

    /// Whether anything could start at all.
    pub(super) fn has_free_slot(&self) -> bool {
        self.under_way < self.slots
    }

    fn free(&self) -> FreeSlots {
        FreeSlots::of(self.slots, self.under_way)
    }

    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Takes a claimed delivery in; nothing comes back if it waits here.
    pub(super) fn offer(&mut self, endpoint: &WebhookEndpoint, item: T, now: Timestamp) -> Option<Disposition<T>> {
        let (free, room) = (self.free(), self.slots.div_ceil(2).saturating_sub(self.waiting));
        let queue = self.queues.entry(endpoint.clone()).or_default();
        match queue.admit(free, now, &self.rules) {
            Some(probe) => {
                queue.under_way += 1;
                self.under_way += 1;
                Some(Disposition::Start { item, probe })
            }
            None if !queue.health.is_open() && queue.waiting.len() < room => {
                queue.waiting.push_back(item);
                self.waiting += 1;
                self.queued.insert(endpoint.clone());
                None
            }
            None => Some(queue.hold_or_give_up(item, now, &self.rules, self.down_ms_max)),
        }
    }

    /// A delivery has ended.
    pub(super) fn finished(
        &mut self,
        endpoint: &WebhookEndpoint,
        probe: bool,
        call_result: CallResult,
        took: Duration,
        now: Timestamp,
        dice: u64,
    ) {
        let Some(queue) = self.queues.get_mut(endpoint) else { return };
        queue.under_way = queue.under_way.saturating_sub(1);
        self.under_way = self.under_way.saturating_sub(1);
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX / 8);
        queue.took_micros = if queue.took_micros == 0 { took } else { (queue.took_micros * 7 + took) / 8 };
        let CallResult { answered, failed, retry_after_ms } = call_result;
        if answered {
            if queue.health.is_open() {
                // What was held for its sake is no reason to hold what comes now.
                queue.held_until_micros = 0;
            }
            queue.health.answered();
        }
        match failed {
            Some(error) => queue.health.failed(probe, Failure { error, retry_after_ms }, now, &self.rules, dice),
            None if probe && !answered => queue.health.probe_lost(),
            None => {}
        }
    }

    /// Those that waited and need not any more, because there is room, or because their circuit has opened.
    pub(super) fn advance(&mut self, now: Timestamp) -> Vec<(WebhookEndpoint, Disposition<T>)> {
        let mut moved = Vec::new();
        let mut queued = std::mem::take(&mut self.queued);
        queued.retain(|endpoint| {
            let Some(queue) = self.queues.get_mut(endpoint) else { return false };
            while !queue.waiting.is_empty() {
                let free = FreeSlots::of(self.slots, self.under_way);
                let admitted = queue.admit(free, now, &self.rules);
                if admitted.is_none() && !queue.health.is_open() {
                    return true;
                }
                let Some(item) = queue.waiting.pop_front() else { break };
                self.waiting -= 1;
                let place = match admitted {
                    Some(probe) => {
                        queue.under_way += 1;
                        self.under_way += 1;
                        Disposition::Start { item, probe }
                    }
                    None => queue.hold_or_give_up(item, now, &self.rules, self.down_ms_max),
                };
                moved.push((endpoint.clone(), place));
            }
            false
        });
        self.queued = queued;
        moved
    }

    /// Forgets endpoints that there is nothing to say about, and sick ones that nobody calls any more.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        let too_many = self.queues.len() > SICK_MAX;
        self.queues.retain(|_, queue| {
            let idle = queue.under_way == 0 && queue.waiting.is_empty();
            let forgotten = queue.health.probe_at().or(queue.health.down_since());
            let old = forgotten.is_none_or(|at| now.ms_since(at) > SICK_KEPT_MS);
            !(idle && (queue.health.is_healthy() || old || too_many))
        });
    }

    /// The next delivery to an endpoint is let through at once; to all of them, if none is named.
    pub(super) fn probe_now(&mut self, endpoint: Option<&WebhookEndpoint>, now: Timestamp) {
        for (_, queue) in self.queues.iter_mut().filter(|(known, _)| endpoint.is_none_or(|one| one == *known)) {
            queue.health.probe_now(now);
            queue.held_until_micros = 0;
        }
    }

    /// How the endpoints do that something is to be said about: open ones first, at most `limit`.
    pub(super) fn report(&self, limit: usize) -> Vec<EndpointHealth> {
        let (open, others): (Vec<_>, Vec<_>) = self.queues.iter().partition(|(_, queue)| queue.health.is_open());
        let others = others.into_iter().filter(|(_, queue)| !queue.health.is_healthy() || queue.under_way > 0);
        open.into_iter().chain(others).take(limit).map(|(endpoint, queue)| queue.report(endpoint)).collect()
    }

    pub(super) fn open_circuits(&self) -> usize {
        self.queues.values().filter(|queue| queue.health.is_open()).count()
    }
}

/// The slots that are left.
#[derive(Clone, Copy)]
struct FreeSlots {
    shared: usize,
    any: usize,
}

impl FreeSlots {
    fn of(slots: usize, under_way: usize) -> Self {
        Self { shared: (slots / 2).saturating_sub(under_way), any: slots.saturating_sub(under_way) }
    }

    /// Whether an endpoint that has so many under way may have one more.
    fn admits(self, under_way: usize) -> bool {
        self.any > 0 && (under_way < self.shared || under_way < SHARE_MIN)
    }
}

impl<T> EndpointQueue<T> {
    /// Whether one more may start here now, and if so, whether it is the probe.
    fn admit(&mut self, free: FreeSlots, now: Timestamp, rules: &Rules) -> Option<bool> {
        match self.health.admission(now, rules) {
            Admission::Free => free.admits(self.under_way).then_some(false),
            Admission::Probe if free.any > 0 => {
                self.health.probing();
                Some(true)
            }
            Admission::Probe | Admission::NotBefore(_) => None,
        }
    }

    fn hold_or_give_up(&mut self, item: T, now: Timestamp, rules: &Rules, down_ms_max: i64) -> Disposition<T> {
        let down_since = self.health.down_since().filter(|_| self.health.is_open());
        if let Some(down_since) = down_since.filter(|since| now.ms_since(*since) > down_ms_max) {
            return Disposition::GiveUp { item, down_since };
        }
        let now_micros = now.as_ms().saturating_mul(1_000);
        let (earliest, pace) = match self.health.admission(now, rules) {
            Admission::NotBefore(at) => (at.as_ms().saturating_mul(1_000), PACE_MICROS_MIN),
            // As fast as it takes them, as far as can be told.
            Admission::Free | Admission::Probe => {
                let under_way = i64::try_from(self.under_way.max(1)).unwrap_or(i64::MAX);
                (now_micros + self.took_micros, (self.took_micros / under_way).max(PACE_MICROS_MIN / 10))
            }
        };
        self.held_until_micros = self.held_until_micros.max(earliest).saturating_add(pace);
        // Whoever is beyond the longest wait begins at the end of the line again, so the line stays in step.
        if self.held_until_micros > now_micros.max(earliest) + HOLD_MS_MAX * 1_000 {
            self.held_until_micros = earliest;
        }
        let due_ms = self.held_until_micros / 1_000 + 1;
        Disposition::Hold { item, due: Timestamp::from_ms(due_ms) }
    }

    fn report(&self, endpoint: &WebhookEndpoint) -> EndpointHealth {
        EndpointHealth {
            endpoint: endpoint.clone(),
            open: self.health.is_open(),
            failures: self.health.failures(),
            down_since: self.health.down_since(),
            next_probe_at: self.health.probe_at(),
            last_error: self.health.last_error().map(str::to_owned),
            under_way: self.under_way,
            waiting: self.waiting.len(),
        }
    }
}

#[cfg(test)]
#[path = "endpoint_queues_tests.rs"]
mod tests;
