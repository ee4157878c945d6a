//! Prunes the store. Active records are never removed, nor is anything that a delivery still needs.

use switchboard_core::lifecycle::Phase;
use switchboard_core::model::{Measure, Timestamp};

use super::tables::{Record, Tables};
use crate::ports::storage::{COMMIT_BYTES, TASK_BYTES, WEBHOOK_BYTES};
use crate::ports::store::{Retention, TaskKey};

impl Tables {
    /// Removes or compacts records by the retention policy, oldest first, at most `limit` of them.
    pub(super) fn prune(&mut self, retention: Retention, limit: usize) -> usize {
        let mut done = self.forget_accepted(retention.now, limit);
        let mut remove = Vec::new();
        let mut compact = Vec::new();
        let mut above_max = usize::try_from(retention.too_many(self.records.len() as u64)).unwrap_or(usize::MAX);
        if retention.tasks_batch > 0 && above_max > 0 {
            let mut keys: Vec<TaskKey> = self.evictable.iter().map(|(_, key)| *key).collect();
            keys.sort_unstable();
            keys.truncate(above_max.min(limit.saturating_sub(done)));
            done += keys.len();
            for key in keys {
                self.remove(key);
            }
            above_max = 0;
        }
        for &(closed_at, key) in &self.evictable {
            if done + remove.len() + compact.len() >= limit {
                break;
            }
            let Some(record) = self.records.get(&key) else { continue };
            if above_max > 0 || record.is_outlived(closed_at, &retention) {
                above_max = above_max.saturating_sub(1);
                remove.push(key);
            } else if record.is_compactable(closed_at, &retention) {
                compact.push(key);
            }
        }
        done += remove.len() + compact.len();
        for key in remove {
            self.remove(key);
        }
        for key in compact {
            self.compact(key);
        }
        done
    }

    fn compact(&mut self, key: TaskKey) {
        if let Some(record) = self.records.get_mut(&key) {
            record.floor_seq = record.head.seq;
            record.log = Vec::new();
            // The fold has what the log had, apart from what later events replaced. It is counted as one commit.
            let kept = TASK_BYTES
                + COMMIT_BYTES
                + u64::from(record.head.push_configs) * WEBHOOK_BYTES
                + Measure::ABOUT.task(&record.folded.task, true);
            let change = kept.min(record.bytes).cast_signed() - record.bytes.cast_signed();
            self.count_bytes(key, change);
        }
    }
}

impl Record {
    fn is_outlived(&self, closed_at: Timestamp, retention: &Retention) -> bool {
        let kept_ms = match self.head.phase {
            Phase::Live => retention.tasks_ms,
            Phase::Unborn | Phase::Replied => retention.replies_ms,
        };
        retention.now.ms_since(closed_at) >= kept_ms
    }

    /// A dead letter may be redriven, so it keeps the log, too.
    fn is_compactable(&self, closed_at: Timestamp, retention: &Retention) -> bool {
        self.floor_seq < self.head.seq
            && retention.now.ms_since(closed_at) >= retention.events_ms
            && self.webhooks.iter().all(|webhook| webhook.delivered_seq >= self.head.seq)
    }
}
