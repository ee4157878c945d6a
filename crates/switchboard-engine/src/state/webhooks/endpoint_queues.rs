//! Decides which deliveries may start. They are queued by endpoint (scheme, host and port of the webhook's URL), so that
//! a failing or slow endpoint never takes the slots of the others. This module only decides and counts; the loop in
//! `push/dispatch.rs` acts.
//!
//! - Half of the slots are shared: an endpoint may have as many deliveries under way as shared slots are left. The
//!   other half is for endpoints with few deliveries under way, so that another endpoint is served however many are
//!   slow.
//! - The more deliveries an owner has under way, the more slots it leaves to the others, however many endpoints it has
//!   (`owner_shares`).
//! - Some more deliveries wait here, so that a busy endpoint always has a next one. Slots that become free go to the owners in
//!   turn.
//! - All others, and those to an endpoint whose circuit is open, are held: they are put back into the store and become
//!   due again when a slot may be free, one after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;

use super::health::{Admission, Failure, Health, Rules};
use super::owner_shares::OwnerShares;

/// How many slots an endpoint can get while the others use the shared half.
const SHARE_MIN: usize = 2;
/// Endpoints remembered because they failed. With more, those without deliveries are forgotten.
const SICK_MAX: usize = 10_000;
/// How long a failed endpoint without deliveries is remembered.
const SICK_KEPT_MS: i64 = 3_600_000;
/// Held deliveries become due again one by one, at least this far apart.
const PACE_MICROS_MIN: i64 = 1_000;
/// A delivery is held at most this long; then it is offered again.
const HOLD_MS_MAX: i64 = 60_000;

pub(crate) struct EndpointQueues<T> {
    /// Deliveries that may be under way in all; half as many may wait.
    slots: usize,
    rules: Rules,
    down_ms_max: i64,
    queues: BTreeMap<WebhookEndpoint, EndpointQueue<T>>,
    owners: OwnerShares,
    under_way: usize,
    waiting: usize,
    /// The endpoints for which a delivery waits, by its owner.
    queued: BTreeMap<Owner, BTreeSet<WebhookEndpoint>>,
}

struct EndpointQueue<T> {
    under_way: usize,
    waiting: BTreeMap<Owner, VecDeque<T>>,
    health: Health,
    /// The smoothed duration of a delivery to this endpoint.
    took_micros: i64,
    /// The time until which deliveries are held; the next held one becomes due after it.
    held_until_micros: i64,
}

impl<T> Default for EndpointQueue<T> {
    fn default() -> Self {
        let health = Health::default();
        Self { under_way: 0, waiting: BTreeMap::new(), health, took_micros: 0, held_until_micros: 0 }
    }
}

/// What to do with a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Disposition<T> {
    Start {
        item: T,
        probe: bool,
    },
    /// Put it back into the store until this time.
    Hold {
        item: T,
        due: Timestamp,
    },
    /// Make it a dead letter, because the endpoint has been down for too long.
    GiveUp {
        item: T,
        down_since: Timestamp,
    },
}

/// What a delivery showed about its endpoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// Whether the endpoint answered, with whatever status.
    pub(crate) answered: bool,
    /// The error, if the endpoint did not answer or answered that it has a problem.
    pub(crate) failed: Option<String>,
    /// How long the receiver wants no further calls.
    pub(crate) retry_after_ms: u64,
}

/// The health of an endpoint, for operators.
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
        let (slots, queues, queued) = (slots.max(1), BTreeMap::new(), BTreeMap::new());
        let owners = OwnerShares::new(slots);
        Self { slots, rules, down_ms_max, queues, owners, under_way: 0, waiting: 0, queued }
    }

    /// Whether any slot is free.
    pub(crate) fn has_free_slot(&self) -> bool {
        self.under_way < self.slots
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Adds a claimed delivery. Returns none if it waits here.
    pub(crate) fn offer(
        &mut self,
        endpoint: &WebhookEndpoint,
        owner: &Owner,
        item: T,
        now: Timestamp,
    ) -> Option<Disposition<T>> {
        let free = FreeSlots::of(self.slots, self.under_way, &self.owners, owner);
        let capacity = self.slots.div_ceil(2).saturating_sub(self.waiting);
        let queue = self.queues.entry(endpoint.clone()).or_default();
        match queue.admit(free, now, &self.rules) {
            Some(probe) => {
                queue.under_way += 1;
                self.under_way += 1;
                self.owners.starts(owner);
                Some(Disposition::Start { item, probe })
            }
            None if queue.health.is_open() => Some(queue.hold_or_give_up(item, now, &self.rules, self.down_ms_max)),
            None if queue.waiting_count() < capacity && self.owners.may_wait(owner, capacity) => {
                queue.waiting.entry(owner.clone()).or_default().push_back(item);
                self.waiting += 1;
                self.owners.waits(owner);
                self.queued.entry(owner.clone()).or_default().insert(endpoint.clone());
                None
            }
            None if free.any == 0 => Some(Disposition::Hold { item, due: self.owners.hold(owner, now) }),
            None => Some(queue.hold_or_give_up(item, now, &self.rules, self.down_ms_max)),
        }
    }

    /// Records that a delivery has ended.
    #[expect(clippy::too_many_arguments, reason = "each is another fact about the one event")]
    pub(crate) fn finished(
        &mut self,
        endpoint: &WebhookEndpoint,
        owner: &Owner,
        probe: bool,
        call_result: CallResult,
        took: Duration,
        now: Timestamp,
        dice: u64,
    ) {
        self.owners.finishes(owner, took);
        let Some(queue) = self.queues.get_mut(endpoint) else { return };
        queue.under_way = queue.under_way.saturating_sub(1);
        self.under_way = self.under_way.saturating_sub(1);
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX / 8);
        queue.took_micros = if queue.took_micros == 0 { took } else { (queue.took_micros * 7 + took) / 8 };
        let CallResult { answered, failed, retry_after_ms } = call_result;
        if answered {
            if queue.health.is_open() {
                // Deliveries that were held while the circuit was open do not delay those that come now.
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

    /// Takes out the deliveries that need not wait any more, because a slot is free or because their circuit has
    /// opened. Owners take turns, one delivery each.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Vec<(WebhookEndpoint, Disposition<T>)> {
        let mut moved = Vec::new();
        // An endpoint that cannot be served now is not looked at again: no slot becomes free meanwhile.
        let mut turns: VecDeque<(Owner, VecDeque<WebhookEndpoint>)> = self
            .owners
            .in_turn()
            .into_iter()
            .map(|owner| {
                let endpoints = self.queued.get(&owner).into_iter().flatten().cloned().collect();
                (owner, endpoints)
            })
            .collect();
        while let Some((owner, mut endpoints)) = turns.pop_front() {
            if let Some(next) = self.next_of(&owner, &mut endpoints, now) {
                moved.push(next);
                turns.push_back((owner, endpoints));
            }
        }
        moved
    }

    /// The next delivery of an owner that need not wait any more. Endpoints that cannot be served are taken from the list.
    fn next_of(
        &mut self,
        owner: &Owner,
        endpoints: &mut VecDeque<WebhookEndpoint>,
        now: Timestamp,
    ) -> Option<(WebhookEndpoint, Disposition<T>)> {
        while let Some(endpoint) = endpoints.pop_front() {
            let Some(queue) = self.queues.get_mut(&endpoint) else { continue };
            let free = FreeSlots::of(self.slots, self.under_way, &self.owners, owner);
            let admitted = queue.admit(free, now, &self.rules);
            if admitted.is_none() && !queue.health.is_open() {
                continue;
            }
            let Some((item, is_last)) = queue.take(owner) else { continue };
            self.waiting -= 1;
            let place = match admitted {
                Some(probe) => {
                    queue.under_way += 1;
                    self.under_way += 1;
                    self.owners.starts(owner);
                    Disposition::Start { item, probe }
                }
                None => queue.hold_or_give_up(item, now, &self.rules, self.down_ms_max),
            };
            self.owners.stops_waiting(owner);
            if is_last {
                self.forget_queued(owner, &endpoint);
            } else {
                endpoints.push_back(endpoint.clone());
            }
            return Some((endpoint, place));
        }
        None
    }

    fn forget_queued(&mut self, owner: &Owner, endpoint: &WebhookEndpoint) {
        if let Some(endpoints) = self.queued.get_mut(owner) {
            endpoints.remove(endpoint);
            if endpoints.is_empty() {
                self.queued.remove(owner);
            }
        }
    }

    /// Forgets healthy endpoints, and failed ones that have had no deliveries for long.
    pub(crate) fn tidy(&mut self, now: Timestamp) {
        let too_many = self.queues.len() > SICK_MAX;
        self.queues.retain(|_, queue| {
            let idle = queue.under_way == 0 && queue.waiting.is_empty();
            let forgotten = queue.health.probe_at().or(queue.health.down_since());
            let old = forgotten.is_none_or(|at| now.ms_since(at) > SICK_KEPT_MS);
            !(idle && (queue.health.is_healthy() || old || too_many))
        });
    }

    /// Lets the next delivery to an endpoint through at once; to every endpoint, if none is named.
    pub(crate) fn probe_now(&mut self, endpoint: Option<&WebhookEndpoint>, now: Timestamp) {
        for (_, queue) in self.queues.iter_mut().filter(|(known, _)| endpoint.is_none_or(|one| one == *known)) {
            queue.health.probe_now(now);
            queue.held_until_micros = 0;
        }
    }

    /// The health of endpoints that have failed or have deliveries under way: open circuits first, at most `limit`.
    pub(crate) fn report(&self, limit: usize) -> Vec<EndpointHealth> {
        let (open, others): (Vec<_>, Vec<_>) = self.queues.iter().partition(|(_, queue)| queue.health.is_open());
        let others = others.into_iter().filter(|(_, queue)| !queue.health.is_healthy() || queue.under_way > 0);
        open.into_iter().chain(others).take(limit).map(|(endpoint, queue)| queue.report(endpoint)).collect()
    }

    pub(crate) fn open_circuits(&self) -> usize {
        self.queues.values().filter(|queue| queue.health.is_open()).count()
    }
}

/// The slots that are free for an owner.
#[derive(Clone, Copy)]
struct FreeSlots {
    shared: usize,
    any: usize,
}

impl FreeSlots {
    fn of(slots: usize, under_way: usize, owners: &OwnerShares, owner: &Owner) -> Self {
        let left = slots.saturating_sub(under_way);
        let any = if owners.may_start(owner, left) { left } else { 0 };
        Self { shared: (slots / 2).saturating_sub(under_way), any }
    }

    /// Whether an endpoint with this many deliveries under way may have one more.
    fn admits(self, under_way: usize) -> bool {
        self.any > 0 && (under_way < self.shared || under_way < SHARE_MIN)
    }
}

impl<T> EndpointQueue<T> {
    fn waiting_count(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// The first delivery of an owner that waits here, and whether it was the last.
    fn take(&mut self, owner: &Owner) -> Option<(T, bool)> {
        let waiting = self.waiting.get_mut(owner)?;
        let item = waiting.pop_front()?;
        let is_last = waiting.is_empty();
        if is_last {
            self.waiting.remove(owner);
        }
        Some((item, is_last))
    }

    /// Whether one more delivery may start now, and if so, whether it is the probe.
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
            // Held deliveries become due at the rate at which the endpoint completes them, as far as that is known.
            Admission::Free | Admission::Probe => {
                let under_way = i64::try_from(self.under_way.max(1)).unwrap_or(i64::MAX);
                (now_micros + self.took_micros, (self.took_micros / under_way).max(PACE_MICROS_MIN / 10))
            }
        };
        self.held_until_micros = self.held_until_micros.max(earliest).saturating_add(pace);
        // Beyond the longest wait the schedule starts again at the earliest time.
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
            waiting: self.waiting_count(),
        }
    }
}

/// `https://hooks.example:443`. The path of a URL is often a secret and is not part of the endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebhookEndpoint(Arc<str>);

impl WebhookEndpoint {
    /// The endpoint of a URL. URLs of webhooks were checked when they were registered. For any other text, this is what
    /// precedes the first slash.
    #[must_use]
    pub fn of(url: &str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let (scheme, authority) = (scheme.to_ascii_lowercase(), authority.to_ascii_lowercase());
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && !port.contains(']'));
        let port = match (has_port, scheme.as_str()) {
            (true, _) => "",
            (false, "http") => ":80",
            (false, _) => ":443",
        };
        Self(format!("{scheme}://{}{port}", authority.trim_end_matches(':')).into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WebhookEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "endpoint_queues_tests.rs"]
mod tests;
