//! The writer's view of the file: the connection, the prepared statements for commits, and the state that only the
//! writer keeps in memory. A batch runs between [`Ledger::begin`] and [`Ledger::commit`]. If it fails,
//! [`Ledger::rollback`] also restores the state in memory. Each other file of this folder is one kind of the writer's work.

mod calls;
mod commit;
pub(super) mod deliveries;
mod filing;
mod indexing;
pub(super) mod outbox;
pub(super) mod prune;
pub(super) mod runs;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, Statement, params};
use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::id_hash::{IdHash, SeededHash};
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::store::Scope;

use crate::sqlite::audit::{AuditQueue, AuditWriter};
use crate::sqlite::epoch::{NO_EPOCH, begin_epoch};
use crate::sqlite::error::Failure;
use crate::sqlite::idempotency::last_accepted_day;
use crate::sqlite::leases::{Leases, OtherAgentsRuns};
use crate::sqlite::quarantine::Quarantined;
use crate::sqlite::recent::{Recent, UnfiledTasks};
use crate::sqlite::rows::{damaged_owner, of_scope};
use crate::sqlite::secrets::Secrets;
use crate::sqlite::statements::Statements;
use crate::sqlite::step_row::StepRow;
use crate::sqlite::totals::CountChange;
use crate::sqlite::unindexed::Unindexed;
use crate::sqlite::usage::{StoredSums, Usage};
use crate::sqlite::wall_clock::{self, SEEN_EVERY_MS};
use crate::write_stats::WriteStats;

pub(crate) struct Ledger<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) statements: Statements<'c>,
    begin: Statement<'c>,
    commit: Statement<'c>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stats: Arc<WriteStats>,
    pub(crate) quarantine: Arc<Quarantined>,
    /// The number of this opening of the file; leases of earlier epochs are void.
    pub(crate) epoch: i64,
    /// The time at which the batch began.
    pub(crate) now: Timestamp,
    /// The time that was last stored.
    seen: Timestamp,
    /// Ages are ignored until this time.
    pub(crate) held_until: Option<Timestamp>,
    pub(crate) leases: Leases,
    /// Due runs of other agents that need not be read again.
    pub(crate) other_agents_runs: OtherAgentsRuns,
    /// The rows of running tasks as this writer left them, so that the next step need not read them again. A statement
    /// that changes a row in another way removes it here.
    pub(crate) steps: HashMap<i64, StepRow, IdHash>,
    pub(crate) recent: Recent,
    pub(crate) unindexed: Unindexed,
    pub(crate) usage: Usage,
    pub(crate) audit: AuditWriter,
    unfiled: Arc<UnfiledTasks>,
    pub(crate) secrets: Arc<Secrets>,
    scopes: HashMap<Scope, i64, SeededHash>,
    pub(crate) last_task_no: i64,
    pub(crate) last_push_no: i64,
    /// The owner whose webhooks were looked at last, when more were due than a claim takes.
    pub(crate) last_owner_no: i64,
    pub(crate) last_accepted_day: i64,
    /// What to apply to the cache once the batch is durable, in order.
    pub(crate) effects: Vec<Effect>,
    /// How the batch changes the counts of tasks.
    pub(crate) count_changes: Vec<CountChange>,
}

pub(crate) enum Effect {
    /// The request at this index of the batch was committed.
    Committed {
        place: usize,
    },
    Removed(TaskId),
}

/// What a ledger has in common with those that read the file beside it.
pub(crate) struct LedgerShares {
    pub(crate) stats: Arc<WriteStats>,
    pub(crate) quarantine: Arc<Quarantined>,
    pub(crate) unfiled: Arc<UnfiledTasks>,
    pub(crate) audit: Arc<AuditQueue>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) sums: Arc<StoredSums>,
}

impl LedgerShares {
    /// For a file that no server has open, and whose secrets are left as they are.
    pub(crate) fn offline() -> Self {
        Self {
            stats: Arc::default(),
            quarantine: Arc::default(),
            unfiled: Arc::default(),
            audit: Arc::default(),
            secrets: Arc::new(Secrets::untouched()),
            sums: Arc::default(),
        }
    }
}

/// The number of the newest removed task; it is not reused.
pub(crate) const LAST_TASK_NO: &str = "last_task_no";

/// How many scopes are remembered with their numbers. Others are looked up again.
const SCOPES_MAX: usize = 4096;

impl<'c> Ledger<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        clock: Arc<dyn Clock>,
        beside: LedgerShares,
        epoch: i64,
    ) -> rusqlite::Result<Self> {
        let LedgerShares { stats, quarantine, unfiled, audit, secrets, sums } = beside;
        let now = clock.now();
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        Ok(Self {
            connection,
            statements: Statements::prepare(connection)?,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            clock,
            stats,
            quarantine,
            epoch,
            now,
            seen: now,
            held_until: wall_clock::read(connection)?.held_until,
            leases: Leases::default(),
            other_agents_runs: OtherAgentsRuns::default(),
            steps: HashMap::default(),
            recent: Recent::read(connection, unfiled.clone())?,
            unindexed: Unindexed::default(),
            usage: Usage::new(sums),
            audit: AuditWriter::new(connection, audit)?,
            unfiled,
            secrets,
            scopes: HashMap::default(),
            last_task_no: number("SELECT coalesce(max(task_no), 0) FROM task")?
                .max(number("SELECT coalesce(max(value), 0) FROM meta WHERE name = 'last_task_no'")?),
            last_push_no: number("SELECT coalesce(max(push_no), 0) FROM push")?,
            last_owner_no: i64::MIN,
            last_accepted_day: last_accepted_day(connection)?,
            effects: Vec::new(),
            count_changes: Vec::new(),
        })
    }

    pub(crate) fn begin(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        if self.epoch == NO_EPOCH {
            self.epoch = begin_epoch(self.connection, wall_clock::read(self.connection)?, now)?;
        } else if let Some(back_ms) = wall_clock::set_back_ms(self.now, now) {
            let transaction = self.connection.unchecked_transaction()?;
            wall_clock::set_back(&transaction, back_ms, now)?;
            wall_clock::write_seen(&transaction, now)?;
            transaction.commit()?;
            self.leases.set_back(back_ms);
            self.steps.clear();
        }
        if now < self.now {
            self.other_agents_runs = OtherAgentsRuns::default();
        }
        self.now = now;
        self.effects.clear();
        self.count_changes.clear();
        self.begin.raw_execute()?;
        self.shorten_recent()?;
        self.index_old()
    }

    pub(crate) fn commit(&mut self) -> Result<(), Failure> {
        let is_old = (self.now.as_ms() - self.seen.as_ms()).abs() >= SEEN_EVERY_MS;
        if is_old {
            wall_clock::write_seen(self.connection, self.now)?;
        }
        self.note_last_recent()?;
        self.audit.write(self.connection, self.now)?;
        self.commit.raw_execute()?;
        if is_old {
            self.seen = self.now;
        }
        self.leases.keep();
        self.recent.keep();
        self.unindexed.keep();
        self.usage.keep();
        self.audit.keep();
        self.unfiled.has_unindexed.store(!self.unindexed.is_empty(), Ordering::Release);
        Ok(())
    }

    /// Runs one of many steps of a batch in a savepoint. If stored data is damaged, only this step is rolled back, and
    /// the reason is returned, so that the caller can go on with the others.
    pub(crate) fn in_savepoint<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<Result<T, String>, Failure> {
        let (effects, count_changes) = (self.effects.len(), self.count_changes.len());
        let (leases, recent, unindexed) = (self.leases.mark(), self.recent.mark(), self.unindexed.mark());
        let usage = self.usage.mark();
        self.connection.prepare_cached("SAVEPOINT one_of_many")?.execute([])?;
        let done = work(self);
        let damage = done.as_ref().err().and_then(Failure::damage).map(str::to_owned);
        if damage.is_some() {
            self.connection.prepare_cached("ROLLBACK TO one_of_many")?.execute([])?;
            self.effects.truncate(effects);
            self.count_changes.truncate(count_changes);
            self.leases.undo_to(leases);
            self.recent.undo_to(recent);
            self.unindexed.undo_to(unindexed);
            self.usage.undo_to(usage);
            self.steps.clear();
        }
        if done.is_ok() || damage.is_some() {
            self.connection.prepare_cached("RELEASE one_of_many")?.execute([])?;
        }
        match damage {
            Some(reason) => Ok(Err(reason)),
            None => done.map(Ok),
        }
    }

    /// Puts a task into quarantine for which one of many steps failed.
    pub(crate) fn quarantine_task(&self, task_no: i64, reason: &str) {
        self.quarantine.put_task_no(self.connection, task_no, reason);
    }

    /// Files the chunks of running tasks, so that the file is complete for readers with other tools.
    pub(crate) fn tidy_up(&mut self) {
        if let Err(failure) = self.empty_recent() {
            self.rollback();
            tracing::warn!(error = ?failure.0, "the newest chunks could not be filed; they are tried again later");
        }
    }

    /// Stores the time of the last batch, for the next process.
    pub(crate) fn close(&mut self) {
        self.tidy_up();
        if self.seen != self.now
            && let Err(error) = wall_clock::write_seen(self.connection, self.now)
        {
            tracing::warn!(%error, "the time could not be written down");
        }
    }

    pub(crate) fn rollback(&mut self) {
        // SQLite may have rolled back after a failed commit, and then there is nothing to roll back.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.leases.undo();
        self.recent.undo();
        self.unindexed.undo_to(0);
        self.usage.undo_to(0);
        self.audit.undo();
        self.other_agents_runs = OtherAgentsRuns::default();
        self.steps.clear();
        self.scopes.clear();
        self.effects.clear();
        self.count_changes.clear();
    }

    /// The number of a scope; a new scope is inserted.
    pub(crate) fn scope_no(&mut self, scope: &Scope) -> Result<i64, Failure> {
        if let Some(known) = self.scopes.get(scope) {
            return Ok(*known);
        }
        let names = [scope.owner.tenant.as_str(), scope.owner.principal.as_str(), scope.agent.as_str()];
        let scope_no = match find_scope_no(self.connection, names)? {
            Some(known) => known,
            None => {
                let mut next = self.connection.prepare_cached("SELECT coalesce(max(scope_no), 0) + 1 FROM scope")?;
                let scope_no: i64 = next.query_row([], |row| row.get(0))?;
                let mut insert = self.connection.prepare_cached(
                    "INSERT INTO scope (scope_no, tenant, principal, agent, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
                )?;
                let [tenant, principal, agent] = names;
                insert.execute(params![scope_no, tenant, principal, agent, of_scope(scope_no, names)])?;
                scope_no
            }
        };
        if self.scopes.len() >= SCOPES_MAX {
            self.scopes.clear();
        }
        self.scopes.insert(scope.clone(), scope_no);
        Ok(scope_no)
    }

    pub(crate) fn count_rows(&self, rows: usize, bytes: usize) {
        WriteStats::add(&self.stats.rows_written, rows as u64);
        WriteStats::add(&self.stats.bytes_written, bytes as u64);
    }
}

/// The number of a scope, if it has one.
pub(crate) fn find_scope_no(connection: &Connection, names: [&str; 3]) -> Result<Option<i64>, Failure> {
    let mut select = connection
        .prepare_cached("SELECT scope_no, checksum FROM scope WHERE tenant = ?1 AND principal = ?2 AND agent = ?3")?;
    let found = select.query_row(names, |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))).optional()?;
    match found {
        Some((scope_no, checksum)) if of_scope(scope_no, names) != checksum => Err(damaged_owner(scope_no)),
        found => Ok(found.map(|(scope_no, _)| scope_no)),
    }
}
