//! Commits that wait to be written, and how they are put together into batches.

use std::collections::{HashSet, VecDeque};

use tokio::sync::{Mutex, mpsc, watch};

use super::commit::Pending;

/// Commits that wait at most; a caller with one more waits until there is room.
pub(super) const QUEUE_MAX: usize = 4_096;
/// Commits, and bytes of them, in one batch.
const BATCH_MAX: usize = 256;
const BATCH_BYTES_MAX: u64 = 8 << 20;

/// Commits that wait to be written. The writers take turns at it.
pub(super) struct Queue {
    state: Mutex<QueueState>,
}

struct QueueState {
    waiting: mpsc::Receiver<Pending>,
    /// Commits that cannot be in the same batch as an earlier one.
    deferred: VecDeque<Pending>,
}

impl Queue {
    pub(super) fn new(waiting: mpsc::Receiver<Pending>) -> Self {
        Self { state: Mutex::new(QueueState { waiting, deferred: VecDeque::new() }) }
    }

    /// The next batch, in the order of [`Pending::order`]; none when the store is closing and nothing waits.
    pub(super) async fn batch(&self, closing: &mut watch::Receiver<bool>) -> Option<Vec<Pending>> {
        let mut state = self.state.lock().await;
        let mut batch = Batch::default();
        for _ in 0..state.deferred.len() {
            let Some(pending) = state.deferred.pop_front() else { break };
            state.deferred.extend(batch.take(pending));
        }
        if batch.is_empty() {
            // What waits is written before the store closes.
            let first = tokio::select! {
                biased;
                first = state.waiting.recv() => first?,
                _ = closing.wait_for(|is_closing| *is_closing) => state.waiting.try_recv().ok()?,
            };
            state.deferred.extend(batch.take(first));
        }
        while batch.has_room() && state.deferred.len() < BATCH_MAX {
            let Ok(pending) = state.waiting.try_recv() else { break };
            state.deferred.extend(batch.take(pending));
        }
        Some(batch.sorted())
    }
}

/// A batch that is being put together. It has at most one commit for each task, id and idempotency key.
#[derive(Default)]
struct Batch {
    commits: Vec<Pending>,
    bytes: u64,
    tasks: HashSet<i64>,
    ids: HashSet<String>,
    keys: HashSet<[u8; 32]>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    fn has_room(&self) -> bool {
        self.commits.len() < BATCH_MAX && self.bytes < BATCH_BYTES_MAX
    }

    /// Takes a commit, or gives it back.
    fn take(&mut self, pending: Pending) -> Option<Pending> {
        let is_apart = self.has_room()
            && !self.tasks.contains(&pending.task_no())
            && (!pending.is_new() || !self.ids.contains(pending.id()))
            && pending.accept_key().is_none_or(|key| !self.keys.contains(key));
        if !is_apart {
            return Some(pending);
        }
        self.tasks.insert(pending.task_no());
        if pending.is_new() {
            self.ids.insert(pending.id().to_owned());
        }
        self.keys.extend(pending.accept_key());
        self.bytes += pending.bytes;
        self.commits.push(pending);
        None
    }

    fn sorted(mut self) -> Vec<Pending> {
        self.commits.sort_unstable_by(Pending::order);
        self.commits
    }
}
