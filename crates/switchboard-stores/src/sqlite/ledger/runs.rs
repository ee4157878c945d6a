//! Lists runs that no process holds, and renews or releases the leases of this process. A run is taken over by a
//! commit, see `commit`.

use rusqlite::{Connection, params};
use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::store::{DueRun, Release, StoredHead, TaskKey};

use super::Ledger;
use crate::record::signed;
use crate::sqlite::error::Failure;
use crate::sqlite::leases::{Lease, OtherAgentsRuns};
use crate::sqlite::quarantine::Quarantined;
use crate::sqlite::read::at_once;
use crate::sqlite::rows::{AFTER_TASK, SCOPE_COLUMNS, TASK_COLUMNS, TaskColumns, scope_from, task_columns, task_row};

impl Ledger<'_> {
    /// Runs of these agents that no process holds: first those of dead processes, then released runs that are due, then
    /// runs whose lease of this process has expired. A run whose task is damaged goes into quarantine.
    pub(crate) fn due_runs(&mut self, agents: &[AgentName], limit: usize) -> Result<Vec<DueRun>, Failure> {
        if self.other_agents_runs.agents != agents {
            self.other_agents_runs = OtherAgentsRuns { agents: agents.to_vec(), ..OtherAgentsRuns::default() };
        }
        let mut due = Vec::new();
        if limit == 0 {
            return Ok(due);
        }
        if !self.other_agents_runs.of_the_dead {
            let found = self.numbers("holder < ?1 AND holder > ?2", [self.epoch, 0], agents, limit)?;
            self.other_agents_runs.of_the_dead = found.is_empty();
            self.list(found, agents, limit, &mut due)?;
        }
        if due.len() < limit {
            let from = self.other_agents_runs.released_before.map_or(i64::MIN, Timestamp::as_ms);
            let bounds = [self.now.as_ms(), from];
            let found = self.numbers("holder = 0 AND run_at <= ?1 AND run_at >= ?2", bounds, agents, limit)?;
            if found.is_empty() {
                self.other_agents_runs.released_before = Some(self.now);
            }
            self.list(found, agents, limit, &mut due)?;
        }
        let expired = self.leases.expired(self.now);
        self.list(expired, agents, limit, &mut due)?;
        Ok(due)
    }

    /// Adds runs to a list as long as there are fewer than `limit`.
    fn list(
        &mut self,
        found: Vec<i64>,
        agents: &[AgentName],
        limit: usize,
        due: &mut Vec<DueRun>,
    ) -> Result<(), Failure> {
        for task_no in found {
            if due.len() >= limit {
                break;
            }
            if !self.file_unless_damaged(task_no)? {
                continue;
            }
            let run = read_due_run(self.connection, &self.quarantine, task_no)?;
            due.extend(run.filter(|run| agents.contains(&run.stored.scope.agent)));
        }
        Ok(())
    }

    /// The numbers of runs of these agents, in the order in which they became due.
    fn numbers(
        &self,
        condition: &str,
        bounds: [i64; 2],
        agents: &[AgentName],
        limit: usize,
    ) -> Result<Vec<i64>, Failure> {
        let sql = format!(
            "SELECT task.task_no FROM task INDEXED BY task_by_run CROSS JOIN scope USING (scope_no)
              WHERE running = 1 AND {condition} AND agent IN (SELECT value FROM json_each(?3))
              ORDER BY holder, run_at LIMIT ?4"
        );
        let mut select = self.connection.prepare_cached(&sql)?;
        // Rows in quarantine are skipped, and must not use up the limit.
        let examined = limit.saturating_add(self.quarantine.tasks());
        let bound = params![bounds[0], bounds[1], names_in_json(agents), signed(examined as u64)];
        let numbers = select.query_map(bound, |row| row.get(0))?;
        Ok(numbers.collect::<rusqlite::Result<_>>()?)
    }

    /// Extends leases that are still held under the same fence, expired or not, and returns the lost ones.
    pub(crate) fn renew_leases(&mut self, held: &[(TaskKey, u64)], lease_ms: u32) -> Vec<TaskKey> {
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

    /// Records that runs begin which were claimed, or waited for a slot; returns the lost ones.
    pub(crate) fn begin_runs(&mut self, begun: &[(TaskKey, u64)]) -> Result<Vec<TaskKey>, Failure> {
        let mut lost = Vec::new();
        for &(key, fence) in begun {
            if self.leases.get(key.0).is_none_or(|lease| lease.fence != fence) {
                lost.push(key);
                continue;
            }
            match self.in_savepoint(|ledger| ledger.begin_run(key.0))? {
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

    pub(crate) fn release_leases(&mut self, released: &[Release]) -> Result<(), Failure> {
        for &Release { key, fence, pause_ms } in released {
            if self.leases.get(key.0).is_none_or(|lease| lease.fence != fence) {
                continue;
            }
            if let Err(reason) = self.in_savepoint(|ledger| ledger.release_run(key.0, pause_ms))? {
                self.quarantine_task(key.0, &reason);
            }
            self.leases.set(key.0, None);
            self.count_rows(1, 0);
        }
        Ok(())
    }

    /// Records that the run no longer waits to begin.
    fn begin_run(&mut self, task_no: i64) -> Result<(), Failure> {
        let begun = self.with_task(task_no, |columns| TaskColumns { run_at: None, ..columns }.checksum())?;
        let Some(checksum) = begun else { return Ok(()) };
        let mut update =
            self.connection.prepare_cached("UPDATE task SET run_at = NULL, checksum = ?2 WHERE task_no = ?1")?;
        update.execute([task_no, checksum])?;
        Ok(())
    }

    /// Releases the run. It is due after a pause, or at once if its cancellation was requested.
    fn release_run(&mut self, task_no: i64, pause_ms: i64) -> Result<(), Failure> {
        let (now, later) = (self.now.as_ms(), self.now.plus_ms(pause_ms).as_ms());
        let released = self.with_task(task_no, |columns| {
            let run_at = if columns.head.cancel_requested == 0 { later } else { now };
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

/// What a reader needs to find due runs: the epoch, the time, and the runs whose leases have run out in this epoch.
pub(crate) struct DueQuery {
    pub(crate) epoch: i64,
    pub(crate) now: Timestamp,
    pub(crate) expired: Vec<i64>,
}

/// Due runs of other agents than these, in the order of their numbers. It reads all of them, so a reader thread does
/// this and not the writer.
pub(crate) fn due_runs_of_others(
    connection: &Connection,
    quarantine: &Quarantined,
    query: &DueQuery,
    agents: &[AgentName],
    after: Option<TaskKey>,
    limit: usize,
) -> Result<Vec<DueRun>, Failure> {
    at_once(connection, || {
        let after = after.map_or(i64::MIN, |key| key.0);
        let mut select = connection.prepare_cached(
            "SELECT task.task_no FROM task INDEXED BY task_by_run CROSS JOIN scope USING (scope_no)
              WHERE running = 1 AND holder < ?1 AND (holder > 0 OR run_at <= ?2) AND task.task_no > ?3
                AND agent NOT IN (SELECT value FROM json_each(?4))
              ORDER BY task.task_no LIMIT ?5",
        )?;
        let examined = limit.saturating_add(quarantine.tasks());
        let bound = params![query.epoch, query.now.as_ms(), after, names_in_json(agents), signed(examined as u64)];
        let numbers = select.query_map(bound, |row| row.get(0))?;
        let mut numbers: Vec<i64> = numbers.collect::<rusqlite::Result<_>>()?;
        numbers.extend(query.expired.iter().filter(|task_no| **task_no > after));
        numbers.sort_unstable();
        let mut due: Vec<DueRun> = Vec::new();
        for task_no in numbers {
            if due.len() >= limit {
                break;
            }
            let run = read_due_run(connection, quarantine, task_no)?;
            due.extend(run.filter(|run| !agents.contains(&run.stored.scope.agent)));
        }
        Ok(due)
    })
}

/// A run that no process holds; none if its task is damaged, which is then put into quarantine.
fn read_due_run(connection: &Connection, quarantine: &Quarantined, task_no: i64) -> Result<Option<DueRun>, Failure> {
    if quarantine.has_task(task_no) {
        return Ok(None);
    }
    match due_run(connection, task_no) {
        Ok(run) => Ok(Some(run)),
        Err(failure) => match failure.damage() {
            Some(reason) => {
                quarantine.put_task_no(connection, task_no, reason);
                Ok(None)
            }
            None => Err(failure),
        },
    }
}

fn due_run(connection: &Connection, task_no: i64) -> Result<DueRun, Failure> {
    let sql =
        format!("SELECT {TASK_COLUMNS}, {SCOPE_COLUMNS} FROM task JOIN scope USING (scope_no) WHERE task_no = ?1");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([task_no])?;
    let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    let scope = scope_from(row, AFTER_TASK)?;
    let columns = task_columns(row)?;
    let interrupted = is_interrupted(columns.holder, columns.run_at.is_some());
    let head = task_row(&columns, &scope.agent)?.head.into();
    Ok(DueRun { stored: StoredHead { key: TaskKey(task_no), scope, head }, interrupted })
}

/// Whether a run whose holder is gone had begun. A held run with a due time has not begun.
pub(crate) fn is_interrupted(holder: i64, has_run_at: bool) -> bool {
    holder != 0 && !has_run_at
}

fn names_in_json(agents: &[AgentName]) -> String {
    let names: Vec<&str> = agents.iter().map(AgentName::as_str).collect();
    serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned())
}
