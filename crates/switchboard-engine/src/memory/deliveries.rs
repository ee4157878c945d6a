//! Push configs, and a delivery cursor for each webhook. A cursor is due from the commit that gives it something to
//! deliver until the receiver has accepted everything, or the delivery becomes a dead letter. [`Outbox`] shows the
//! deliveries of all owners to operators.

use std::ops::Bound;

use switchboard_core::model::{ConfigId, Dialect, PushConfig, Timestamp};

use super::tables::{Record, Tables, Webhook};
use crate::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use crate::ports::store::{Delivery, DeliveryClaim, DeliveryKey, DeliveryOutcome, PushChange, TaskKey};

impl Tables {
    pub(super) fn change_push(&mut self, key: TaskKey, changes: Vec<PushChange>, now: Timestamp) {
        for change in changes {
            match change {
                PushChange::Put { config, dialect, after_seq } => {
                    // A replaced config gets a new cursor under a new key, so that a delivery under way cannot move it.
                    self.delete_webhook(key, &config.id);
                    self.put_webhook(key, config, dialect, after_seq, now);
                }
                PushChange::Delete { id } => self.delete_webhook(key, &id),
            }
            self.stats.rows_written += 1;
        }
        self.mark_due(key, now);
    }

    fn put_webhook(&mut self, key: TaskKey, config: PushConfig, dialect: Dialect, after_seq: u64, now: Timestamp) {
        self.last_delivery += 1;
        let delivery = DeliveryKey(self.last_delivery);
        let Some(record) = self.records.get_mut(&key) else { return };
        record.webhooks.push(Webhook {
            key: delivery,
            scope: record.scope.clone(),
            config,
            dialect,
            delivered_seq: after_seq,
            failures: 0,
            claimable_at: None,
            claimed_until: None,
            parked: false,
            last_error: None,
            last_attempt_at: None,
            created_at: now,
        });
        self.webhooks.insert(delivery, key);
    }

    fn delete_webhook(&mut self, key: TaskKey, id: &ConfigId) {
        let Some(record) = self.records.get_mut(&key) else { return };
        if let Some(at) = record.webhooks.iter().position(|webhook| webhook.config.id == *id) {
            let webhook = record.webhooks.remove(at);
            self.drop_webhook(&webhook);
        }
    }

    fn mark_due(&mut self, key: TaskKey, now: Timestamp) {
        let Some(record) = self.records.get_mut(&key) else { return };
        let seq = record.head.seq;
        for webhook in &mut record.webhooks {
            if webhook.claimable_at.is_none() && !webhook.parked && webhook.delivered_seq < seq {
                webhook.claimable_at = Some(now);
                self.due.insert(&webhook.scope.owner, now, webhook.key);
                self.stats.rows_written += 1;
            }
        }
    }

    pub(super) fn drop_webhook(&mut self, webhook: &Webhook) {
        self.webhooks.remove(&webhook.key);
        if let Some(at) = webhook.claimable_at {
            self.due.remove(&webhook.scope.owner, at, webhook.key);
        }
    }

    pub(super) fn push_configs(&self, key: TaskKey) -> Vec<PushConfig> {
        let record = self.records.get(&key);
        record.map_or_else(Vec::new, |record| record.webhooks.iter().map(|webhook| webhook.config.clone()).collect())
    }

    pub(super) fn claim_deliveries(&mut self, limit: usize, claim_ms: u32, now: Timestamp) -> Vec<Delivery> {
        let due = self.due.claimable(limit, now);
        let mut claimed = Vec::with_capacity(due.len());
        for (at, delivery) in due {
            let Some(task_key) = self.webhooks.get(&delivery).copied() else { continue };
            let Some(record) = self.records.get_mut(&task_key) else { continue };
            let Some(webhook) = record.webhooks.iter_mut().find(|webhook| webhook.key == delivery) else { continue };
            let until = now.plus_ms(claim_ms.into());
            webhook.claimable_at = Some(until);
            webhook.claimed_until = Some(until);
            claimed.push(Delivery {
                key: delivery,
                scope: (*record.scope).clone(),
                task_key,
                task_id: record.head.id.clone(),
                context_id: record.head.context_id.clone(),
                config: webhook.config.clone(),
                dialect: webhook.dialect,
                delivered_seq: webhook.delivered_seq,
                task_seq: record.head.seq,
                failures: webhook.failures,
                claimed_until: until,
            });
            self.due.remove(&record.scope.owner, at, delivery);
            self.due.insert(&record.scope.owner, until, delivery);
        }
        claimed
    }

    pub(super) fn settle_delivery(&mut self, claim: DeliveryClaim, outcome: DeliveryOutcome, now: Timestamp) {
        let delivery = claim.key;
        let Some(key) = self.webhooks.get(&delivery).copied() else { return };
        let Some(record) = self.records.get_mut(&key) else { return };
        let seq = record.head.seq;
        let Some(webhook) = record.webhooks.iter_mut().find(|webhook| webhook.key == delivery) else { return };
        if webhook.claimed_until != Some(claim.until) {
            // Another process has claimed the delivery since. Record only what the receiver has accepted; the new claim
            // decides the rest.
            webhook.delivered_seq = webhook.delivered_seq.max(outcome.delivered_seq());
            self.stats.rows_written += 1;
            return;
        }
        let was_due = webhook.claimable_at.take();
        webhook.claimed_until = None;
        if !matches!(outcome, DeliveryOutcome::Postponed { .. }) {
            webhook.last_attempt_at = Some(now);
        }
        match outcome {
            DeliveryOutcome::Delivered { seq: delivered } => {
                webhook.delivered_seq = webhook.delivered_seq.max(delivered);
                webhook.failures = 0;
                webhook.last_error = None;
                webhook.claimable_at = (webhook.delivered_seq < seq).then_some(now);
            }
            DeliveryOutcome::Retry { delivered_seq, wait_ms, error } => {
                // The receiver accepted an update, so the next update has no failed attempts yet.
                webhook.failures = if delivered_seq > webhook.delivered_seq { 1 } else { webhook.failures + 1 };
                webhook.delivered_seq = webhook.delivered_seq.max(delivered_seq);
                webhook.last_error = Some(error);
                webhook.claimable_at = Some(now.plus_ms(wait_ms));
            }
            DeliveryOutcome::Postponed { delivered_seq, wait_ms } => {
                if delivered_seq > webhook.delivered_seq {
                    webhook.failures = 0;
                }
                webhook.delivered_seq = webhook.delivered_seq.max(delivered_seq);
                webhook.claimable_at = Some(now.plus_ms(wait_ms));
            }
            DeliveryOutcome::Parked { delivered_seq, error } => {
                webhook.failures += 1;
                webhook.delivered_seq = webhook.delivered_seq.max(delivered_seq);
                webhook.last_error = Some(error);
                webhook.parked = true;
            }
        }
        let is_due = webhook.claimable_at;
        self.moved(key, delivery, was_due, is_due);
    }

    /// Updates the ordered sets after a cursor has changed.
    pub(super) fn moved(
        &mut self,
        key: TaskKey,
        delivery: DeliveryKey,
        was_due: Option<Timestamp>,
        is_due: Option<Timestamp>,
    ) {
        if let Some(record) = self.records.get(&key) {
            let owner = &record.scope.owner;
            if let Some(at) = was_due {
                self.due.remove(owner, at, delivery);
            }
            if let Some(at) = is_due {
                self.due.insert(owner, at, delivery);
            }
        }
        self.stats.rows_written += 1;
        self.index_evictable(key);
    }

    pub(super) fn deliveries_due(&self) -> usize {
        self.due.len()
    }

    pub(super) fn next_delivery_at(&self) -> Option<Timestamp> {
        self.due.first_at()
    }

    /// Called when the clock was set back: shifts waiting times and claims, so that each keeps its length. The time
    /// that identifies a claim is not shifted, because the process that holds the claim identifies it by that time.
    pub(super) fn set_back_deliveries(&mut self, by_ms: i64) {
        for (_, delivery) in self.due.take_all() {
            let record = self.webhooks.get(&delivery).and_then(|key| self.records.get_mut(key));
            let webhook = record.and_then(|record| record.webhooks.iter_mut().find(|webhook| webhook.key == delivery));
            if let Some(webhook) = webhook
                && let Some(at) = webhook.claimable_at.as_mut()
            {
                *at = at.plus_ms(-by_ms);
                self.due.insert(&webhook.scope.owner, *at, delivery);
            }
        }
    }

    /// Makes deliveries under way due again, as if the process that posted them had died.
    pub(super) fn void_delivery_claims(&mut self, now: Timestamp) {
        for record in self.records.values_mut() {
            for webhook in record.webhooks.iter_mut().filter(|webhook| webhook.claimed_until.is_some()) {
                webhook.claimed_until = None;
                if let Some(at) = webhook.claimable_at.replace(now) {
                    self.due.remove(&webhook.scope.owner, at, webhook.key);
                    self.due.insert(&webhook.scope.owner, now, webhook.key);
                }
            }
        }
    }
}

/// How many webhooks are examined for one page.
const EXAMINED_MAX: usize = 10_000;

impl Tables {
    pub(super) fn list_outbox(&self, query: OutboxQuery) -> OutboxPage {
        let mut page = OutboxPage { entries: Vec::new(), next: None };
        let from = query.after.map_or(Bound::Unbounded, Bound::Excluded);
        for (examined, (key, task_key)) in self.webhooks.range((from, Bound::Unbounded)).enumerate() {
            if page.entries.len() >= query.limit || examined >= EXAMINED_MAX {
                page.next = self.webhooks.range(..*key).next_back().map(|(before, _)| *before);
                break;
            }
            let entry = self.entry(*key, *task_key);
            page.entries.extend(entry.filter(|entry| query.state.is_none_or(|state| state == entry.state)));
        }
        page
    }

    pub(super) fn find_outbox(&self, key: DeliveryKey) -> Option<OutboxEntry> {
        self.entry(key, *self.webhooks.get(&key)?)
    }

    fn entry(&self, key: DeliveryKey, task_key: TaskKey) -> Option<OutboxEntry> {
        let record = self.records.get(&task_key)?;
        let webhook = record.webhooks.iter().find(|webhook| webhook.key == key)?;
        let state = match webhook {
            Webhook { parked: true, .. } => OutboxState::Dead,
            Webhook { claimable_at: None, .. } => return None,
            Webhook { claimed_until: Some(_), .. } => OutboxState::UnderWay,
            Webhook { .. } => OutboxState::Waiting,
        };
        Some(OutboxEntry {
            key,
            scope: (*record.scope).clone(),
            task_key,
            task_id: record.head.id.clone(),
            config_id: webhook.config.id.clone(),
            url: webhook.config.url.clone(),
            dialect: webhook.dialect,
            state,
            delivered_seq: webhook.delivered_seq,
            task_seq: record.head.seq,
            failures: webhook.failures,
            due: webhook.claimable_at,
            last_error: webhook.last_error.clone(),
            last_attempt_at: webhook.last_attempt_at,
            created_at: webhook.created_at,
        })
    }

    pub(super) fn redrive(&mut self, key: DeliveryKey, now: Timestamp) -> bool {
        self.change(key, |webhook, _| {
            let waits = webhook.claimable_at.is_some() && webhook.claimed_until.is_none();
            if !webhook.parked && !waits {
                return false;
            }
            webhook.parked = false;
            webhook.failures = 0;
            webhook.claimable_at = Some(now);
            true
        })
    }

    pub(super) fn purge(&mut self, key: DeliveryKey) -> bool {
        self.change(key, |webhook, seq| {
            if !webhook.parked {
                return false;
            }
            webhook.parked = false;
            webhook.failures = 0;
            webhook.last_error = None;
            webhook.delivered_seq = seq;
            true
        })
    }

    fn change(&mut self, key: DeliveryKey, change: impl FnOnce(&mut Webhook, u64) -> bool) -> bool {
        let Some(task_key) = self.webhooks.get(&key).copied() else { return false };
        let Some(record) = self.records.get_mut(&task_key) else { return false };
        let Record { head, webhooks, .. } = &mut **record;
        let Some(webhook) = webhooks.iter_mut().find(|webhook| webhook.key == key) else { return false };
        let was_due = webhook.claimable_at;
        if !change(webhook, head.seq) {
            return false;
        }
        let is_due = webhook.claimable_at;
        self.moved(task_key, key, was_due, is_due);
        true
    }
}
