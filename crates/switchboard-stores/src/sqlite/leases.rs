//! Leases on runs. The file says which epoch holds a run; how long it still holds it is only in memory, because when
//! this process ends all its leases are void anyway. So renewing a hundred thousand leases writes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::params;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::store::{Scope, StoredHead, TaskKey};

use super::commit::{Run, Step, StepRow};
use super::error::Failure;
use super::ledger::{Effect, Ledger};
use super::rows::{AFTER_HEAD, HEAD_COLUMNS, head_from, signed};
use crate::record::{encode, encode_artifacts};

/// The leases of this epoch, and how they were before the batch.
#[derive(Default)]
pub(super) struct Leases {
    held: HashMap<i64, Lease>,
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

    pub(super) fn undo(&mut self) {
        for (task_no, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            match before {
                Some(lease) => self.held.insert(task_no, lease),
                None => self.held.remove(&task_no),
            };
        }
    }

    fn expired(&self, now: Timestamp, limit: usize) -> Vec<i64> {
        let expired = self.held.iter().filter(|(_, lease)| lease.until <= now);
        expired.map(|(task_no, _)| *task_no).take(limit).collect()
    }
}

impl Ledger<'_> {
    /// Takes over runs that nobody holds: those of dead processes first, then what was released and is due, then what
    /// this process itself has let expire.
    pub(super) fn claim_runs(&mut self, limit: usize, lease_ms: u32) -> Result<Vec<StoredHead>, Failure> {
        let mut claimable = self.task_numbers(
            "SELECT task_no FROM task WHERE running = 1 AND holder > 0 AND holder < ?1 ORDER BY holder LIMIT ?2",
            self.epoch,
            limit,
        )?;
        claimable.extend(self.task_numbers(
            "SELECT task_no FROM task WHERE running = 1 AND holder = 0 AND run_at <= ?1 ORDER BY run_at LIMIT ?2",
            self.now.as_ms(),
            limit.saturating_sub(claimable.len()),
        )?);
        claimable.extend(self.leases.expired(self.now, limit.saturating_sub(claimable.len())));
        claimable.into_iter().map(|task_no| self.claim_run(task_no, lease_ms)).collect()
    }

    fn task_numbers(&self, sql: &str, bound: i64, limit: usize) -> Result<Vec<i64>, Failure> {
        let mut select = self.connection.prepare_cached(sql)?;
        let numbers = select.query_map(params![bound, signed(limit as u64)], |row| row.get(0))?;
        Ok(numbers.collect::<rusqlite::Result<_>>()?)
    }

    fn claim_run(&mut self, task_no: i64, lease_ms: u32) -> Result<StoredHead, Failure> {
        let (scope, row, old) = self.claimable(task_no)?;
        let mut head = row.head;
        let event = Event::Claimed { fence: head.fence + 1, attempt: head.attempt + 1, at: self.now };
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
            run: Run { running: true, holder: self.epoch, lease_until: Some(until), run_at: None },
        };
        self.extend(task_no, &old, &step)?;
        let stored = StoredHead { key: TaskKey(task_no), scope, head };
        self.effects.push(Effect::Claimed { stored: Box::new(stored.clone()), events });
        Ok(stored)
    }

    fn claimable(&mut self, task_no: i64) -> Result<(Scope, super::rows::TaskRow, StepRow), Failure> {
        let old = self.step_row(task_no)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let sql = format!(
            "SELECT {HEAD_COLUMNS}, scope.tenant, scope.principal, scope.agent
               FROM task JOIN scope USING (scope_no) WHERE task_no = ?1"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        let mut rows = select.query([task_no])?;
        let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let text = |column: usize| row.get::<_, String>(AFTER_HEAD + column);
        let agent = AgentName::from(text(2)?);
        let owner = switchboard_core::call::Owner { tenant: text(0)?.into(), principal: text(1)?.into() };
        let found = head_from(row, &agent)?;
        Ok((Scope { owner, agent }, found, old))
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

    pub(super) fn release_leases(&mut self, held: &[(TaskKey, u64)], due: Timestamp) -> Result<(), Failure> {
        for &(key, fence) in held {
            if self.leases.get(key.0).is_none_or(|lease| lease.fence != fence) {
                continue;
            }
            let mut update = self
                .connection
                .prepare_cached("UPDATE task SET holder = 0, lease_until = NULL, run_at = ?2 WHERE task_no = ?1")?;
            update.execute(params![key.0, due.as_ms()])?;
            self.leases.set(key.0, None);
            self.count_rows(1, 0);
        }
        Ok(())
    }
}
