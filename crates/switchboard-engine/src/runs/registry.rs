//! The runs at work in this process: how cancel finds them, and what the sweeper renews.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::model::TaskId;
use tokio_util::sync::CancellationToken;

use crate::ports::store::TaskKey;

/// In order of ids, so that a simulation takes the same steps every time.
#[derive(Clone, Default)]
pub(crate) struct RunRegistry {
    runs: Arc<Mutex<BTreeMap<TaskId, Entry>>>,
}

struct Entry {
    key: TaskKey,
    fence: u64,
    cancel: CancellationToken,
    /// Drops the run where it stands: its lease is lost.
    lost: CancellationToken,
}

impl RunRegistry {
    /// Enters a run until the guard is dropped.
    pub(crate) fn enter(&self, id: TaskId, key: TaskKey, fence: u64, cancel: CancellationToken) -> Guard {
        let lost = CancellationToken::new();
        self.lock().insert(id.clone(), Entry { key, fence, cancel, lost: lost.clone() });
        Guard { registry: self.clone(), id, fence, lost }
    }

    /// Tells the run of a task to stop; false if it is not in this process.
    pub(crate) fn cancel(&self, id: &TaskId) -> bool {
        let runs = self.lock();
        let entry = runs.get(id);
        if let Some(entry) = entry {
            entry.cancel.cancel();
        }
        entry.is_some()
    }

    /// Tells those of these runs that are in this process to stop.
    pub(crate) fn cancel_all(&self, keys: &[TaskKey]) {
        if keys.is_empty() {
            return;
        }
        for entry in self.lock().values().filter(|entry| keys.contains(&entry.key)) {
            entry.cancel.cancel();
        }
    }

    /// The leases this process holds.
    pub(crate) fn held(&self) -> Vec<(TaskKey, u64)> {
        self.lock().values().map(|entry| (entry.key, entry.fence)).collect()
    }

    /// Whether this process is at work on a task already.
    pub(crate) fn holds(&self, key: TaskKey, fence: u64) -> bool {
        self.lock().values().any(|entry| entry.key == key && entry.fence >= fence)
    }

    /// Drops those of the `held` runs whose lease is gone; their writes would be fenced off anyway. A later run of the
    /// same task that has entered meanwhile holds a lease of its own.
    pub(crate) fn drop_lost(&self, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        if lost.is_empty() {
            return;
        }
        let is_lost = |entry: &&Entry| lost.contains(&entry.key) && held.contains(&(entry.key, entry.fence));
        for entry in self.lock().values().filter(is_lost) {
            entry.lost.cancel();
        }
    }

    /// How many runs are at work.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a run in the register.
pub(crate) struct Guard {
    registry: RunRegistry,
    id: TaskId,
    fence: u64,
    lost: CancellationToken,
}

impl Guard {
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut runs = self.registry.lock();
        // A later run of the same task may have entered meanwhile.
        if runs.get(&self.id).is_some_and(|entry| entry.fence == self.fence) {
            runs.remove(&self.id);
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
