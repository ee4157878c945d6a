//! The deliveries of all owners, for operators.

use std::ops::Bound;

use switchboard_core::model::Timestamp;

use super::tables::{Record, Tables, Webhook};
use crate::ports::outbox::{OutboxEntry, OutboxPage, OutboxQuery, OutboxState};
use crate::ports::store::{DeliveryKey, TaskKey};

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
        let Some(Record { head, webhooks, .. }) = self.records.get_mut(&task_key) else { return false };
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
