//! How many bytes are stored of each owner's tasks, and in all. Each task's row has its own number, which changes with the row, so that
//! a commit writes nothing more for it. The sums are only in memory: the database counts them when the store is opened and
//! from time to time after that, and in between each process adds what it stores itself.
//!
//! So what another process has stored since the last count is not known here, and a limit of an owner or of all tasks can be exceeded by
//! as much. The limit of one task is exact: it is held against the row, in the database.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use switchboard_engine::id_hash::IdHash;

use super::commit::Room;
use crate::record::unsigned;

/// How many tasks are remembered with the number of their owner. With more, all are forgotten and asked for again.
const OWNERS_OF_TASKS_MAX: usize = 65_536;

#[derive(Default)]
pub(super) struct Usage {
    state: Mutex<UsageState>,
}

#[derive(Default)]
struct UsageState {
    /// What was counted, if it was.
    counted: Option<Sums>,
    /// What this process has changed since the last count began.
    since: Sums,
    owner_of: HashMap<i64, i64, IdHash>,
}

/// Bytes by the number of the owner, and of all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    all: i64,
    owners: HashMap<i64, i64, IdHash>,
}

impl Sums {
    pub(super) fn add(&mut self, owner_no: i64, bytes: i64) {
        self.all += bytes;
        *self.owners.entry(owner_no).or_default() += bytes;
    }

    fn of(&self, owner_no: i64) -> i64 {
        self.owners.get(&owner_no).copied().unwrap_or_default()
    }
}

/// What this process had changed when a count began.
pub(super) struct UsageCountBegun(Sums);

impl Usage {
    fn state(&self) -> MutexGuard<'_, UsageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_begins(&self) -> UsageCountBegun {
        UsageCountBegun(self.state().since.clone())
    }

    /// Sets what was counted. What this process changed while it was counted may be in it or not, and is added until the next count.
    pub(super) fn counted(&self, UsageCountBegun(before): UsageCountBegun, counted: Sums) {
        let mut state = self.state();
        state.counted = Some(counted);
        for (owner_no, bytes) in before.owners {
            state.since.add(owner_no, -bytes);
        }
        state.since.owners.retain(|_, bytes| *bytes != 0);
    }

    /// Counts bytes that an owner has more, or fewer.
    pub(super) fn add(&self, owner_no: i64, bytes: i64) {
        self.state().since.add(owner_no, bytes);
    }

    /// All bytes that are stored, if they were counted.
    pub(super) fn all(&self) -> Option<u64> {
        let state = self.state();
        state.counted.as_ref().map(|counted| unsigned(counted.all + state.since.all))
    }

    /// What is stored of an owner, and in all. Before the first count that is what this process has stored.
    pub(super) fn room(&self, owner_no: i64) -> Room {
        let state = self.state();
        let (owner, all) = state.counted.as_ref().map_or((0, 0), |counted| (counted.of(owner_no), counted.all));
        let (owner_bytes, bytes) = ((owner + state.since.of(owner_no)).max(0), (all + state.since.all).max(0));
        Room { owner_no, owner_bytes, bytes }
    }

    pub(super) fn owner_of(&self, task_no: i64) -> Option<i64> {
        self.state().owner_of.get(&task_no).copied()
    }

    pub(super) fn remember_owner(&self, task_no: i64, owner_no: i64) {
        let mut state = self.state();
        if state.owner_of.len() >= OWNERS_OF_TASKS_MAX {
            state.owner_of.clear();
        }
        state.owner_of.insert(task_no, owner_no);
    }
}
