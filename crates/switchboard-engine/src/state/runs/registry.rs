//! The runs at work in this process: cancel finds them here, and the sweeper renews their leases.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::id_hash::SeededHash;
use crate::ports::store::TaskKey;
use crate::state::record::Record;

#[derive(Clone, Default)]
pub(crate) struct RunRegistry {
    runs: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    /// In order of keys, so that a simulation takes the same steps every time.
    by_key: BTreeMap<TaskKey, Entry>,
    /// For hints, which name a task by its id. Seeded: in some dialects clients choose ids.
    by_id: HashMap<TaskId, TaskKey, SeededHash>,
}

impl Entries {
    fn insert(&mut self, key: TaskKey, entry: Entry) {
        self.by_id.insert(entry.record.id.clone(), key);
        self.by_key.insert(key, entry);
    }

    fn remove(&mut self, key: TaskKey) {
        if let Some(entry) = self.by_key.remove(&key) {
            self.by_id.remove(&entry.record.id);
        }
    }
}

struct Entry {
    fence: u64,
    record: Arc<Record>,
    cancel: CancellationToken,
    /// Cancelled to drop the run at once, because its lease is lost.
    lost: CancellationToken,
    begun: Arc<AtomicBool>,
    since: Instant,
}

impl Entry {
    /// Whether the run still needs its lease. A run that has ended its turn by its own commit, and only cleans up, has
    /// no lease; it must not be treated as lost.
    fn holds_lease(&self) -> bool {
        self.record.with_head(|head| head.running && head.fence == self.fence)
    }
}

/// A run that has the lease on its task.
pub(crate) struct HeldRun {
    pub(crate) key: TaskKey,
    pub(crate) fence: u64,
    pub(crate) record: Arc<Record>,
    begun: Arc<AtomicBool>,
}

impl HeldRun {
    /// Whether its agent has been started by now; if not, the run waits for its slot.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }
}

impl RunRegistry {
    /// Registers a run until the guard is dropped. If the task is already at work under a later fence, the run is not
    /// registered.
    pub(crate) fn register(&self, record: Arc<Record>, key: TaskKey, fence: u64, cancel: CancellationToken) -> Guard {
        let (lost, begun) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut runs = self.lock();
        if runs.by_key.get(&key).is_none_or(|entry| entry.fence <= fence) {
            let entry =
                Entry { fence, record, cancel, lost: lost.clone(), begun: begun.clone(), since: Instant::now() };
            runs.insert(key, entry);
        }
        drop(runs);
        Guard { registry: self.clone(), key, fence, lost, begun }
    }

    /// Tells the run of a task to stop; false if it is not in this process.
    pub(crate) fn cancel(&self, key: TaskKey) -> bool {
        let runs = self.lock();
        let entry = runs.by_key.get(&key);
        if let Some(entry) = entry {
            entry.cancel.cancel();
        }
        entry.is_some()
    }

    /// Whether a run of this task is in this process.
    pub(crate) fn has(&self, id: &TaskId) -> bool {
        self.lock().by_id.contains_key(id)
    }

    /// Tells those of these runs that are in this process to stop.
    pub(crate) fn cancel_all(&self, keys: &[TaskKey]) {
        let runs = self.lock();
        for entry in keys.iter().filter_map(|key| runs.by_key.get(key)) {
            entry.cancel.cancel();
        }
    }

    /// The leases this process holds.
    pub(crate) fn held(&self) -> Vec<(TaskKey, u64)> {
        let runs = self.lock();
        runs.by_key.iter().filter(|(_, entry)| entry.holds_lease()).map(|(key, entry)| (*key, entry.fence)).collect()
    }

    /// The same, with the state of each run.
    pub(crate) fn held_runs(&self) -> Vec<HeldRun> {
        let runs = self.lock();
        let held = runs.by_key.iter().filter(|(_, entry)| entry.holds_lease()).map(|(key, entry)| HeldRun {
            key: *key,
            fence: entry.fence,
            record: entry.record.clone(),
            begun: entry.begun.clone(),
        });
        held.collect()
    }

    /// Whether this process is at work on a task under this fence.
    pub(crate) fn is_at_work(&self, key: TaskKey, fence: u64) -> bool {
        self.lock().by_key.get(&key).is_some_and(|entry| entry.fence >= fence)
    }

    /// Drops those of the `held` runs whose lease is gone; their writes would be fenced off anyway. A later run of the
    /// same task that was registered meanwhile holds a lease of its own, and one that has ended its turn meanwhile needs
    /// none.
    pub(crate) fn drop_lost(&self, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        if lost.is_empty() {
            return;
        }
        let runs = self.lock();
        for (key, fence) in held.iter().filter(|(key, _)| lost.contains(key)) {
            let entry = runs.by_key.get(key).filter(|entry| entry.fence == *fence && entry.holds_lease());
            if let Some(entry) = entry {
                entry.lost.cancel();
            }
        }
    }

    /// How many runs wait to be started, and how long the oldest of them has waited.
    pub(crate) fn waiting(&self) -> (usize, Duration) {
        let runs = self.lock();
        let waiting = runs.by_key.values().filter(|entry| !entry.begun.load(Ordering::Relaxed));
        let (count, oldest) = waiting.fold((0, None), |(count, oldest): (usize, Option<Instant>), entry| {
            (count + 1, Some(oldest.map_or(entry.since, |oldest| oldest.min(entry.since))))
        });
        (count, oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed()))
    }

    /// How many runs are at work.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a run registered until it is dropped.
pub(crate) struct Guard {
    registry: RunRegistry,
    key: TaskKey,
    fence: u64,
    lost: CancellationToken,
    begun: Arc<AtomicBool>,
}

impl Guard {
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Notes that the agent is at work from here on.
    pub(crate) fn begins(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut runs = self.registry.lock();
        // A later run of the same task may have been registered meanwhile.
        if runs.by_key.get(&self.key).is_some_and(|entry| entry.fence == self.fence) {
            runs.remove(self.key);
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
