//! Leases on runs. A record has one while its run is under way or ought to be; whoever claims it gets the next fence.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::Timestamp;

use super::tables::{Hold, Lease, Tables};
use crate::ports::store::{ClaimRuns, ClaimedRun, LoggedCommit, Release, StoredHead, TaskKey};

impl Tables {
    /// A commit takes the lease if it says so, leaves it alone if not, and drops it when the run has ended. A run that
    /// begins without a lease is due at once, and so is one that waits and is canceled.
    pub(super) fn lease_after_commit(&mut self, key: TaskKey, lease_ms: Option<u32>, waits: bool, now: Timestamp) {
        let Some(record) = self.records.get(&key) else { return };
        let lease = match (record.head.running, lease_ms) {
            (false, _) => None,
            (true, Some(ms)) => Some(Lease { hold: Hold::Held, begun: !waits, claimable_at: now.plus_ms(ms.into()) }),
            (true, None) => match record.lease {
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
        if let Some(old) = record.lease {
            self.runs.remove(&(old.claimable_at, key));
        }
        if let Some(new) = lease {
            self.runs.insert((new.claimable_at, key));
        }
        record.lease = lease;
    }

    pub(super) fn claim_runs(&mut self, claim: &ClaimRuns, now: Timestamp) -> Vec<ClaimedRun> {
        let until = now.plus_ms(claim.lease_ms.into());
        let claimable = self.runs.iter().take_while(|(at, _)| *at <= now);
        let claimable: Vec<TaskKey> = claimable.map(|(_, key)| *key).collect();
        let mut claimed = Vec::new();
        for key in claimable {
            if claimed.len() >= claim.limit {
                break;
            }
            let Some(record) = self.records.get_mut(&key) else { continue };
            let Some(Lease { hold, begun, .. }) = record.lease else { continue };
            let mut lease = Lease { hold: Hold::Held, begun, claimable_at: until };
            if hold != Hold::Held || !(claim.at_work)(key, record.head.fence) {
                let was_released = hold == Hold::Released || !begun;
                lease.begun = false;
                let attempt = record.head.attempt + u32::from(!was_released);
                let events: Arc<[Event]> =
                    Arc::new([Event::Claimed { fence: record.head.fence + 1, attempt, at: now }]);
                Arc::make_mut(&mut record.head).apply_commit(&events);
                let (version, first_seq) = (record.head.version, record.head.seq + 1);
                record.log_internal(LoggedCommit { version, first_seq, events });
                let stored = StoredHead { key, scope: (*record.scope).clone(), head: record.head.clone() };
                claimed.push(ClaimedRun { stored, was_released });
                self.stats.rows_written += 2;
            }
            self.set_lease(key, Some(lease));
        }
        claimed
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
        let asked = self.records.iter().filter(|(_, record)| record.head.running && record.head.cancel_requested);
        asked.map(|(key, _)| *key).collect()
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

    /// The clock was set back: leases and pauses last as long as they would have.
    pub(super) fn set_back_runs(&mut self, by_ms: i64) {
        let waiting: Vec<TaskKey> = self.runs.iter().map(|(_, key)| *key).collect();
        for key in waiting {
            let lease = self.records.get(&key).and_then(|record| record.lease);
            if let Some(lease) = lease.filter(|lease| lease.hold != Hold::Void) {
                self.set_lease(key, Some(Lease { claimable_at: lease.claimable_at.plus_ms(-by_ms), ..lease }));
            }
        }
    }

    /// Every lease that is held becomes claimable, as if its holder had died and been seen to die.
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
