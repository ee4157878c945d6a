//! The leases of this process, and what it knows about runs of other agents.
//!
//! The file records which epoch holds a run. The end of each lease is only in memory, because all leases are void when the
//! process ends. So renewing a hundred thousand leases writes nothing.

use std::collections::HashMap;

use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::id_hash::IdHash;

/// The leases of this epoch, and their values before the batch.
#[derive(Default)]
pub(super) struct Leases {
    held: HashMap<i64, Lease, IdHash>,
    undo: Vec<(i64, Option<Lease>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) fence: u64,
    pub(super) until: Timestamp,
}

impl Leases {
    pub(super) fn get(&self, task_no: i64) -> Option<Lease> {
        self.held.get(&task_no).copied()
    }

    pub(super) fn set(&mut self, task_no: i64, lease: Option<Lease>) {
        let before = match lease {
            Some(lease) => self.held.insert(task_no, lease),
            None => self.held.remove(&task_no),
        };
        if before != lease {
            self.undo.push((task_no, before));
        }
    }

    pub(super) fn keep(&mut self) {
        self.undo.clear();
    }

    /// The position in the batch, for [`Leases::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.undo.len()
    }

    pub(super) fn undo(&mut self) {
        self.undo_to(0);
    }

    /// Undoes what the batch has done since this mark.
    pub(super) fn undo_to(&mut self, mark: usize) {
        for (task_no, before) in self.undo.split_off(mark.min(self.undo.len())).into_iter().rev() {
            match before {
                Some(lease) => self.held.insert(task_no, lease),
                None => self.held.remove(&task_no),
            };
        }
    }

    /// Called when the clock was set back: shifts the leases, so that each keeps its length. This is not part of a
    /// batch.
    pub(super) fn set_back(&mut self, back_ms: i64) {
        for lease in self.held.values_mut() {
            lease.until = lease.until.plus_ms(-back_ms);
        }
    }

    /// The runs whose leases have run out, in that order.
    pub(super) fn expired(&self, now: Timestamp) -> Vec<i64> {
        let expired = self.held.iter().filter(|(_, lease)| lease.until <= now);
        let mut expired: Vec<_> = expired.map(|(task_no, lease)| (lease.until, *task_no)).collect();
        expired.sort_unstable();
        expired.into_iter().map(|(_, task_no)| task_no).collect()
    }
}

/// Due runs of agents that were not asked for, which need not be read again: a server that is started without one of
/// its agents may find a hundred thousand runs that wait for that agent.
#[derive(Default)]
pub(super) struct OtherAgentsRuns {
    pub(super) agents: Vec<AgentName>,
    /// Set when none of the runs that dead processes held belongs to these agents; no such run can appear later.
    pub(super) of_the_dead: bool,
    /// No run that became due before this time belongs to these agents. Runs that are released later become due later,
    /// unless the clock is set back; then all of this is forgotten.
    pub(super) released_before: Option<Timestamp>,
}
