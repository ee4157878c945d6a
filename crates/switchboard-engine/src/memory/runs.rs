//! Leases on runs. A record has a lease entry while its run is at work or waits to be resumed.

use switchboard_core::model::{AgentName, Timestamp};

use super::tables::{Hold, Lease, Record, Tables};
use crate::ports::store::{CommitError, DueRun, LeaseChange, Release, StoredHead, TaskKey};

impl Lease {
    /// Whether its run had begun under this lease, so that a takeover counts as an interruption.
    fn is_interrupted(self) -> bool {
        self.hold != Hold::Released && self.begun
    }
}

impl Record {
    fn due_run(&self, key: TaskKey) -> Option<DueRun> {
        let interrupted = self.lease?.is_interrupted();
        let stored = StoredHead { key, scope: (*self.scope).clone(), head: self.head.clone() };
        Some(DueRun { stored, interrupted })
    }
}

impl Tables {
    /// Checks whether the change that a commit makes to the lease is allowed.
    pub(super) fn check_lease(record: &Record, change: LeaseChange, now: Timestamp) -> Result<(), CommitError> {
        let LeaseChange::Claim { interrupted, .. } = change else { return Ok(()) };
        match record.lease {
            Some(lease) if lease.claimable_at <= now && lease.is_interrupted() == interrupted => Ok(()),
            Some(_) | None => Err(CommitError::Conflict),
        }
    }

    /// Applies a commit's change to the lease, and drops the lease when the run has ended. A run that begins without a
    /// lease is due at once, and so is a released run that is canceled.
    pub(super) fn lease_after_commit(&mut self, key: TaskKey, change: LeaseChange, now: Timestamp) {
        let Some(record) = self.records.get(&key) else { return };
        let held = |ms: u32, begun| Lease { hold: Hold::Held, begun, claimable_at: now.plus_ms(ms.into()) };
        let lease = match (record.head.running, change) {
            (false, _) => None,
            (true, LeaseChange::Take { lease_ms, waits }) => Some(held(lease_ms, !waits)),
            (true, LeaseChange::Claim { lease_ms, .. }) => Some(held(lease_ms, false)),
            (true, LeaseChange::Keep) => match record.lease {
                Some(lease) if lease.hold == Hold::Released && record.head.cancel_requested => {
                    Some(Lease { claimable_at: lease.claimable_at.min(now), ..lease })
                }
                Some(lease) => Some(lease),
                None => Some(Lease { hold: Hold::Released, begun: false, claimable_at: now }),
            },
        };
        if lease.is_some() || record.lease.is_some() {
            self.set_lease(key, lease);
        }
    }

    fn set_lease(&mut self, key: TaskKey, lease: Option<Lease>) {
        let Some(record) = self.records.get_mut(&key) else { return };
        if record.lease == lease {
            return;
        }
        if let Some(old) = record.lease {
            self.runs.remove(&(old.claimable_at, key));
        }
        if let Some(new) = lease {
            self.runs.insert((new.claimable_at, key));
        }
        record.lease = lease;
    }

    pub(super) fn due_runs(&self, agents: &[AgentName], limit: usize, now: Timestamp) -> Vec<DueRun> {
        let due = self.due(now).filter(|(_, record)| agents.contains(&record.scope.agent));
        due.take(limit).filter_map(|(key, record)| record.due_run(key)).collect()
    }

    pub(super) fn due_runs_of_others(
        &self,
        agents: &[AgentName],
        after: Option<TaskKey>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<DueRun> {
        let due = self.due(now).filter(|(key, _)| after.is_none_or(|after| *key > after));
        let others = due.filter(|(_, record)| !agents.contains(&record.scope.agent));
        let mut others: Vec<DueRun> = others.filter_map(|(key, record)| record.due_run(key)).collect();
        others.sort_by_key(|run| run.stored.key);
        others.truncate(limit);
        others
    }

    /// Runs that no process holds, in the order in which they became due.
    fn due(&self, now: Timestamp) -> impl Iterator<Item = (TaskKey, &Record)> {
        let due = self.runs.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, key)| Some((*key, &**self.records.get(key)?)))
    }

    pub(super) fn renew_leases(&mut self, held: &[(TaskKey, u64)], lease_ms: u32, now: Timestamp) -> Vec<TaskKey> {
        let mut lost = Vec::new();
        for &(key, fence) in held {
            match self.held(key, fence) {
                Some(lease) => {
                    self.set_lease(key, Some(Lease { claimable_at: now.plus_ms(lease_ms.into()), ..lease }));
                }
                None => lost.push(key),
            }
        }
        lost
    }

    pub(super) fn begin_runs(&mut self, begun: &[(TaskKey, u64)]) -> Vec<TaskKey> {
        let mut lost = Vec::new();
        for &(key, fence) in begun {
            match self.held(key, fence) {
                Some(lease) => {
                    self.set_lease(key, Some(Lease { begun: true, ..lease }));
                    self.stats.rows_written += 1;
                }
                None => lost.push(key),
            }
        }
        lost
    }

    pub(super) fn canceled_runs(&self) -> Vec<TaskKey> {
        let records = self.runs.iter().filter_map(|(_, key)| Some((*key, self.records.get(key)?)));
        records.filter(|(_, record)| record.head.cancel_requested).map(|(key, _)| key).collect()
    }

    pub(super) fn release_leases(&mut self, released: &[Release], now: Timestamp) {
        for &Release { key, fence, pause_ms } in released {
            if self.held(key, fence).is_some() {
                let canceled = self.records.get(&key).is_some_and(|record| record.head.cancel_requested);
                let claimable_at = if canceled { now } else { now.plus_ms(pause_ms) };
                self.set_lease(key, Some(Lease { hold: Hold::Released, begun: false, claimable_at }));
            }
        }
    }

    /// The lease on a run, if it is held under this fence.
    fn held(&self, key: TaskKey, fence: u64) -> Option<Lease> {
        let record = self.records.get(&key).filter(|record| record.head.fence == fence)?;
        record.lease.filter(|lease| lease.hold == Hold::Held)
    }

    /// Called when the clock was set back: shifts leases and pauses, so that each keeps its length.
    pub(super) fn set_back_runs(&mut self, by_ms: i64) {
        let waiting: Vec<TaskKey> = self.runs.iter().map(|(_, key)| *key).collect();
        for key in waiting {
            let lease = self.records.get(&key).and_then(|record| record.lease);
            if let Some(lease) = lease.filter(|lease| lease.hold != Hold::Void) {
                self.set_lease(key, Some(Lease { claimable_at: lease.claimable_at.plus_ms(-by_ms), ..lease }));
            }
        }
    }

    /// Makes every held lease claimable, as if its holder were known to be dead.
    pub(super) fn void_leases(&mut self) {
        let held = self.records.iter().filter(|(_, record)| record.lease.is_some_and(|lease| lease.hold == Hold::Held));
        let held: Vec<(TaskKey, bool)> =
            held.map(|(key, record)| (*key, record.lease.is_some_and(|lease| lease.begun))).collect();
        let claimable_at = Timestamp::from_ms(i64::MIN);
        for (key, begun) in held {
            self.set_lease(key, Some(Lease { hold: Hold::Void, begun, claimable_at }));
        }
    }
}
