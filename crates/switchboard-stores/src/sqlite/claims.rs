//! Taking over runs, and keeping or giving back those that this process has.

use std::sync::Arc;

use rusqlite::params;
use switchboard_core::lifecycle::Event;
use switchboard_engine::ports::store::{ClaimRuns, ClaimedRun, Release, Scope, StoredHead, TaskKey};

use super::checksums::TaskColumns;
use super::commit::{Run, Step, StepRow};
use super::deliveries::{SCOPE_COLUMNS, scope_from};
use super::error::Failure;
use super::leases::Lease;
use super::ledger::{Effect, Ledger};
use super::rows::{AFTER_TASK, TASK_COLUMNS, signed, task_columns, task_row};
use crate::record::{encode, encode_artifacts};

impl Ledger<'_> {
    /// Takes over runs that nobody holds: those of dead processes first, then what was released and is due, then what
    /// this process itself has let expire, unless it is still at work on it.
    pub(super) fn claim_runs(&mut self, claim: &ClaimRuns) -> Result<Vec<ClaimedRun>, Failure> {
        let mut claimed = Vec::new();
        let of_the_dead = self.task_numbers(
            "SELECT task_no FROM task WHERE running = 1 AND holder > 0 AND holder < ?1 ORDER BY holder LIMIT ?2",
            self.epoch,
            claim.limit,
        )?;
        for task_no in of_the_dead {
            self.claim_readable(task_no, false, claim, &mut claimed)?;
        }
        let released = self.task_numbers(
            "SELECT task_no FROM task WHERE running = 1 AND holder = 0 AND run_at <= ?1 ORDER BY run_at LIMIT ?2",
            self.now.as_ms(),
            claim.limit.saturating_sub(claimed.len()),
        )?;
        for task_no in released {
            self.claim_readable(task_no, true, claim, &mut claimed)?;
        }
        let until = self.now.plus_ms(claim.lease_ms.into());
        for (task_no, fence) in self.leases.expired(self.now) {
            if (claim.at_work)(TaskKey(task_no), fence) {
                self.leases.set(task_no, Some(Lease { fence, until }));
            } else {
                self.claim_readable(task_no, false, claim, &mut claimed)?;
            }
        }
        Ok(claimed)
    }

    fn task_numbers(&self, sql: &str, bound: i64, limit: usize) -> Result<Vec<i64>, Failure> {
        let mut select = self.connection.prepare_cached(sql)?;
        // What is passed over must not take the places of the others.
        let examined = limit + self.quarantine.tasks();
        let numbers = select.query_map(params![bound, signed(examined as u64)], |row| row.get(0))?;
        Ok(numbers.collect::<rusqlite::Result<_>>()?)
    }

    /// Claims one run if there is room for it, and if its task can be read: a damaged one goes into quarantine, and its
    /// lease stays as it is.
    fn claim_readable(
        &mut self,
        task_no: i64,
        was_released: bool,
        claim: &ClaimRuns,
        claimed: &mut Vec<ClaimedRun>,
    ) -> Result<(), Failure> {
        if claimed.len() >= claim.limit || self.quarantine.has_task(task_no) {
            return Ok(());
        }
        match self.apart(|ledger| ledger.claim_run(task_no, was_released, claim.lease_ms))? {
            Ok(run) => claimed.push(run),
            Err(reason) => self.quarantine_task(task_no, &reason),
        }
        Ok(())
    }

    fn claim_run(&mut self, task_no: i64, was_released: bool, lease_ms: u32) -> Result<ClaimedRun, Failure> {
        let (scope, row, old) = self.claimable(task_no)?;
        // A run that is held and has a time to be due at has not begun.
        let was_released = was_released || old.run.run_at.is_some();
        let mut head = row.head;
        let attempt = head.attempt + u32::from(!was_released);
        let event = Event::Claimed { fence: head.fence + 1, attempt, at: self.now };
        let events: Arc<[Event]> = Arc::new([event]);
        head.apply_commit(&events);
        let encoded = encode(&events, &head, &|_| 0);
        let until = self.now.plus_ms(lease_ms.into());
        let step = Step {
            head: &head,
            events: &events,
            folds: false,
            at: self.now,
            encoded: &encoded,
            artifacts: &encode_artifacts(&head.artifacts),
            run: Run { running: true, holder: self.epoch, lease_until: Some(until), run_at: Some(self.now) },
            accept_expires: None,
        };
        self.extend(task_no, &old, &step)?;
        let stored = StoredHead { key: TaskKey(task_no), scope, head: head.into() };
        self.effects.push(Effect::Claimed { stored: Box::new(stored.clone()), events });
        Ok(ClaimedRun { stored, was_released })
    }

    fn claimable(&mut self, task_no: i64) -> Result<(Scope, super::rows::TaskRow, StepRow), Failure> {
        let old = self.step_row(task_no)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let sql =
            format!("SELECT {TASK_COLUMNS}, {SCOPE_COLUMNS} FROM task JOIN scope USING (scope_no) WHERE task_no = ?1");
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([task_no])?;
        let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let scope = scope_from(row, AFTER_TASK)?;
        let found = task_row(&task_columns(row)?, &scope.agent)?;
        Ok((scope, found, old))
    }

    /// Extends what is still held under the same fence, expired or not, and says what is lost.
    pub(super) fn renew_leases(&mut self, held: &[(TaskKey, u64)], lease_ms: u32) -> Vec<TaskKey> {
        let until = self.now.plus_ms(lease_ms.into());
        let mut lost = Vec::new();
        for &(key, fence) in held {
            match self.leases.get(key.0) {
                Some(lease) if lease.fence == fence => self.leases.set(key.0, Some(Lease { fence, until })),
                Some(_) | None => lost.push(key),
            }
        }
        lost
    }

    /// Notes that runs begin which were claimed, or waited for their place; says which of them are lost.
    pub(super) fn begin_runs(&mut self, begun: &[(TaskKey, u64)]) -> Result<Vec<TaskKey>, Failure> {
        let mut lost = Vec::new();
        for &(key, fence) in begun {
            if self.leases.get(key.0).is_none_or(|lease| lease.fence != fence) {
                lost.push(key);
                continue;
            }
            match self.apart(|ledger| ledger.begin_run(key.0))? {
                Ok(()) => {}
                Err(reason) => {
                    self.quarantine_task(key.0, &reason);
                    lost.push(key);
                    continue;
                }
            }
            self.count_rows(1, 0);
        }
        Ok(lost)
    }

    pub(super) fn release_leases(&mut self, released: &[Release]) -> Result<(), Failure> {
        for &Release { key, fence, pause_ms } in released {
            if self.leases.get(key.0).is_none_or(|lease| lease.fence != fence) {
                continue;
            }
            if let Err(reason) = self.apart(|ledger| ledger.release_run(key.0, pause_ms))? {
                self.quarantine_task(key.0, &reason);
            }
            self.leases.set(key.0, None);
            self.count_rows(1, 0);
        }
        Ok(())
    }

    /// The run is no longer one that waits to begin.
    fn begin_run(&mut self, task_no: i64) -> Result<(), Failure> {
        let begun = self.with_task(task_no, |columns| TaskColumns { run_at: None, ..columns }.checksum())?;
        let Some(checksum) = begun else { return Ok(()) };
        let mut update =
            self.connection.prepare_cached("UPDATE task SET run_at = NULL, checksum = ?2 WHERE task_no = ?1")?;
        update.execute([task_no, checksum])?;
        Ok(())
    }

    /// Nobody holds the run any more; it is due after a pause, or at once if it is to be canceled.
    fn release_run(&mut self, task_no: i64, pause_ms: i64) -> Result<(), Failure> {
        let (now, later) = (self.now.as_ms(), self.now.plus_ms(pause_ms).as_ms());
        let released = self.with_task(task_no, |columns| {
            let run_at = if columns.cancel_requested == 0 { later } else { now };
            (run_at, TaskColumns { holder: 0, lease_until: None, run_at: Some(run_at), ..columns }.checksum())
        });
        let Some((run_at, checksum)) = released? else { return Ok(()) };
        let mut update = self.connection.prepare_cached(
            "UPDATE task SET holder = 0, lease_until = NULL, run_at = ?2, checksum = ?3 WHERE task_no = ?1",
        )?;
        update.execute([task_no, run_at, checksum])?;
        Ok(())
    }
}
