//! One commit inside the writer's transaction. All reasons to refuse it are checked before the first write, so a
//! refused commit has changed nothing, and the other commits of the batch need no savepoint.

use std::borrow::Cow;

use rusqlite::params;
use switchboard_core::lifecycle::{Event, Head, Phase};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::store::{
    Accept, Accepted, Commit, CommitError, LeaseChange, StoreError, Target, TaskKey,
};

use super::Ledger;
use super::runs::is_interrupted;
use crate::record::{Chains, Encoded, HeadColumns, encode_artifacts, phase_number, signed, state_number, unsigned};
use crate::sqlite::error::Failure;
use crate::sqlite::fold::{ChunkRow, replaces_checkpoint, story_below_checkpoint};
use crate::sqlite::idempotency::{day_of, find_accepted, known_as_of};
use crate::sqlite::leases::Lease;
use crate::sqlite::recent::is_chunk;
use crate::sqlite::rows::{
    AcceptedColumns, ChunkColumns, LogColumns, TaskColumns, UNINDEXED_RUN, UNINDEXED_TASK, VERSION_MAX, log_columns,
    task_columns,
};
use crate::sqlite::step_row::{Listing, Run, StepRow, UnchangedColumns};
use crate::sqlite::totals::CountChange;
use crate::sqlite::usage::bytes_of_commit;

/// How many rows of running tasks the writer remembers. Others are read again for each commit.
const STEPS_MAX: usize = 8192;

/// What a row has for the artifacts of a task at work that has none. The spaces make the row as long as it will be with an artifact: a row that
/// gets longer splits its page, because the rows around it fill that page.
const NONE_YET: &str = "[]                                        ";

/// One commit of a task, decided and encoded.
pub(crate) struct Step<'a> {
    pub(crate) head: &'a Head,
    pub(crate) events: &'a [Event],
    pub(crate) folds: bool,
    pub(crate) at: Timestamp,
    pub(crate) encoded: &'a Encoded,
    pub(crate) artifacts: &'a str,
    pub(crate) run: Run,
    /// Whether the task stays out of the indexes of lists and runs, see `unindexed`.
    pub(crate) is_unindexed: bool,
    /// When the idempotency key of this commit expires.
    pub(crate) accept_expires: Option<Timestamp>,
    /// The bytes of the task after this commit.
    pub(crate) bytes: i64,
}

impl Ledger<'_> {
    pub(crate) fn apply(
        &mut self,
        commit: &Commit,
        encoded: &Encoded,
        artifacts: Option<&str>,
    ) -> Result<Result<TaskKey, CommitError>, Failure> {
        if commit.head.version > VERSION_MAX {
            let reason = format!("task {} has {VERSION_MAX} commits, the most it can have", commit.head.id);
            return Ok(Err(CommitError::Store(StoreError::Unavailable(reason))));
        }
        let existing = match &commit.target {
            Target::New { .. } => None,
            Target::Existing { key, .. } if self.quarantine.has_task(key.0) => {
                let reason = "the task is damaged, and takes no more commits".to_owned();
                return Ok(Err(CommitError::Store(StoreError::Damaged(reason))));
            }
            Target::Existing { key, expected_version } => {
                let row = match self.step_row(key.0) {
                    Ok(Some(row)) => row,
                    Ok(None) => return Ok(Err(CommitError::Conflict)),
                    Err(failure) => {
                        let Some(reason) = failure.damage() else { return Err(failure) };
                        self.quarantine_task(key.0, reason);
                        return Ok(Err(CommitError::Store(StoreError::Damaged(reason.to_owned()))));
                    }
                };
                if commit.fence.is_some_and(|fence| fence != row.fence) {
                    return Ok(Err(CommitError::Fenced));
                }
                if *expected_version != row.version {
                    return Ok(Err(CommitError::Conflict));
                }
                if let LeaseChange::Claim { interrupted, .. } = commit.lease
                    && !self.is_claimable(key.0, &row, interrupted)
                {
                    return Ok(Err(CommitError::Conflict));
                }
                Some((key.0, row))
            }
        };
        if let Some(accept) = &commit.accept
            && let Some(accepted) = self.find_accepted(accept)?
        {
            return Ok(Err(CommitError::Duplicate(accepted)));
        }
        let (scope_no, push_configs, bytes) = match (&commit.target, &existing) {
            (Target::New { scope }, _) => (self.scope_no(scope)?, 0, 0),
            (Target::Existing { .. }, Some((_, row))) => (row.unchanged.scope_no, row.push_configs, row.bytes),
            (Target::Existing { .. }, None) => return Ok(Err(CommitError::Conflict)),
        };
        let owner_no = self.usage.owner_no(self.connection, scope_no)?;
        let more = bytes_of_commit(commit, encoded, push_configs);
        if let Err(over) = commit.storage.check(self.usage.stored(owner_no, bytes), unsigned(more))
            && commit.needs_room(unsigned(more))
        {
            return Ok(Err(CommitError::OverStorage(over)));
        }
        if let Some((task_no, row)) = &existing
            && is_chunk(commit, encoded)
            && row.run.running
        {
            let after = self.append_chunk(*task_no, row, commit, encoded, more)?;
            self.usage.add(owner_no, more);
            self.remember_step(*task_no, after);
            return Ok(Ok(TaskKey(*task_no)));
        }
        let run = self.run_after(commit, existing.as_ref());
        let artifacts = &*artifacts.map_or_else(|| encode_artifacts(&commit.head.artifacts).into(), Cow::Borrowed);
        let (events, head) = (&*commit.events, &commit.head);
        let accept_expires = commit.accept.as_ref().map(|accept| accept.expires);
        let begins_or_goes_on = existing.as_ref().is_none_or(|(_, row)| row.is_unindexed);
        let is_at_work = run.running && run.holder == self.epoch && run.run_at.is_none() && !head.cancel_requested;
        let is_unindexed = begins_or_goes_on && is_at_work;
        let artifacts = if is_unindexed && artifacts == "[]" { NONE_YET } else { artifacts };
        let (folds, at) = (commit.folds, commit.at);
        let bytes = bytes + more;
        let step = Step { head, events, folds, at, encoded, artifacts, run, is_unindexed, accept_expires, bytes };
        let task_no = match &existing {
            None => match self.open(scope_no, &step)? {
                Some(task_no) => task_no,
                None => return Ok(Err(CommitError::Conflict)),
            },
            Some((task_no, row)) => {
                self.extend(*task_no, row, &step)?;
                *task_no
            }
        };
        self.usage.add(owner_no, more);
        if let Some(accept) = &commit.accept {
            self.accept(task_no, signed(commit.head.version), accept)?;
        }
        if !commit.push.is_empty() {
            self.change_push(task_no, owner_no, &commit.push)?;
        }
        if !commit.push.is_empty() || (commit.head.push_configs > 0 && commit.visible() > 0) {
            self.mark_due(task_no, commit.head.seq)?;
        }
        Ok(Ok(TaskKey(task_no)))
    }

    /// Whether no process holds the run, and it is interrupted or not as the claim assumes.
    fn is_claimable(&self, task_no: i64, row: &StepRow, interrupted: bool) -> bool {
        let Run { running, holder, lease_until, run_at } = row.run;
        let is_due = match holder {
            0 => run_at,
            holder if holder == self.epoch => self.leases.get(task_no).map(|lease| lease.until).or(lease_until),
            // The lease of an earlier epoch, whose process is dead.
            _ => Some(self.now),
        };
        running && is_due.is_some_and(|at| at <= self.now) && is_interrupted(holder, run_at.is_some()) == interrupted
    }

    /// Applies a commit's change to the lease (with a due time if its run has to wait for a slot or was taken over),
    /// and drops the lease when the run has ended. A run that begins without a lease is due at once, and so is a
    /// released run that is canceled.
    fn run_after(&self, commit: &Commit, before: Option<&(i64, StepRow)>) -> Run {
        let taken = |lease_ms: u32, waits: bool| {
            let lease_until = Some(self.now.plus_ms(lease_ms.into()));
            Run { running: true, holder: self.epoch, lease_until, run_at: waits.then_some(self.now) }
        };
        match (commit.head.running, commit.lease, before) {
            (false, _, _) => Run::NONE,
            (true, LeaseChange::Take { lease_ms, waits }, _) => taken(lease_ms, waits),
            (true, LeaseChange::Claim { lease_ms, .. }, _) => taken(lease_ms, true),
            (true, LeaseChange::Keep, Some((task_no, row))) if row.run.running => {
                let renewed = self.leases.get(*task_no).map(|lease| lease.until);
                let canceled = commit.head.cancel_requested;
                let run_at = row.run.run_at.map(|due| if canceled { due.min(self.now) } else { due });
                Run { lease_until: renewed.or(row.run.lease_until), run_at, ..row.run }
            }
            (true, LeaseChange::Keep, _) => Run { running: true, holder: 0, lease_until: None, run_at: Some(self.now) },
        }
    }

    pub(crate) fn step_row(&mut self, task_no: i64) -> Result<Option<StepRow>, Failure> {
        match self.steps.get(&task_no) {
            Some(known) => Ok(Some(*known)),
            None => self.with_task(task_no, |columns| StepRow::of(&columns)),
        }
    }

    /// Remembers the row of a running task as it was just written.
    fn remember_step(&mut self, task_no: i64, row: StepRow) {
        if !row.run.running {
            self.steps.remove(&task_no);
            return;
        }
        if self.steps.len() >= STEPS_MAX {
            self.steps.clear();
        }
        self.steps.insert(task_no, row);
    }

    /// Reads the row of a task, if it exists, after filing its chunks and putting it into the indexes. The writer forgets its remembered row, because
    /// the callers of this function change the row by statements of their own. A damaged row is an error: it must not
    /// be written again, because its next state would get a valid checksum.
    pub(crate) fn with_task<T>(
        &mut self,
        task_no: i64,
        look: impl FnOnce(TaskColumns<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        self.steps.remove(&task_no);
        self.file(task_no)?;
        self.index(task_no)?;
        let mut rows = self.statements.select_task.query([task_no])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(look(task_columns(row)?)))
    }

    /// Writes the first commit of a record; none if its id is taken.
    fn open(&mut self, scope_no: i64, step: &Step<'_>) -> Result<Option<i64>, Failure> {
        let task_no = self.last_task_no + 1;
        let (head, listing) = (step.head, step.listing());
        let unchanged = UnchangedColumns { scope_no, floor_seq: 0, floor_version: 0, created_at: step.at.as_ms() };
        let columns = step.columns(task_no, unchanged, Chains::default(), None);
        let row = StepRow::of(&columns);
        let insert = &mut self.statements.insert_task;
        insert.bind(1, task_no)?;
        insert.bind(2, columns.head.id)?;
        insert.bind(3, scope_no)?;
        insert.bind(4, columns.head.context_id)?;
        insert.bind(5, columns.head.phase)?;
        insert.bind(6, columns.head.state)?;
        insert.bind(7, columns.head.status_at)?;
        insert.bind(8, columns.head.version)?;
        insert.bind(9, columns.head.seq)?;
        insert.bind(10, columns.head.turns)?;
        insert.bind(11, columns.head.turn)?;
        insert.bind(12, columns.head.fence)?;
        insert.bind(13, columns.head.attempt)?;
        insert.bind(14, columns.head.cancel_requested)?;
        insert.bind(15, columns.head.push_configs)?;
        insert.bind(16, columns.head.deadline)?;
        insert.bind(17, columns.head.artifacts)?;
        insert.bind(18, columns.story_version)?;
        insert.bind(19, columns.artifact_version)?;
        insert.bind(20, columns.status_version)?;
        insert.bind(21, columns.head.running)?;
        insert.bind(22, columns.holder)?;
        insert.bind(23, columns.lease_until)?;
        insert.bind(24, columns.run_at)?;
        insert.bind(25, columns.created_at)?;
        insert.bind(26, columns.closed_at)?;
        insert.bind(27, columns.checksum())?;
        insert.bind(28, columns.bytes)?;
        if insert.execute()? == 0 {
            return Ok(None);
        }
        self.last_task_no = task_no;
        self.unindexed.set(task_no, step.is_unindexed);
        self.count_changes.push(CountChange { scope_no, from: None, to: listing.listed_under(), records: 1 });
        self.count_rows(1, head.id.as_str().len() + head.context_id.as_str().len() + step.artifacts.len());
        self.append_log(task_no, Chains::default(), Chains::default().story, step)?;
        self.remember_lease(task_no, step);
        self.remember_step(task_no, row);
        Ok(Some(task_no))
    }

    /// Writes the next commit of an existing record.
    pub(crate) fn extend(&mut self, task_no: i64, old: &StepRow, step: &Step<'_>) -> Result<(), Failure> {
        self.file_log(task_no)?;
        let (head, run, listing) = (step.head, step.run, step.listing());
        let columns = step.columns(task_no, old.unchanged, old.chains, old.closed_at);
        let row = StepRow::of(&columns);
        let enters_indexes = old.is_unindexed && !step.is_unindexed;
        let listing_changes = listing != old.listing || enters_indexes;
        let run_changes = enters_indexes
            || head.cancel_requested != old.cancel_requested
            || Run { lease_until: None, ..run } != Run { lease_until: None, ..old.run };
        let update = &mut self.statements.update_task[usize::from(listing_changes)][usize::from(run_changes)];
        update.bind(1, task_no)?;
        update.bind(2, columns.head.version)?;
        update.bind(3, columns.head.seq)?;
        update.bind(4, columns.head.turns)?;
        update.bind(5, columns.head.turn)?;
        update.bind(6, columns.head.fence)?;
        update.bind(7, columns.head.attempt)?;
        update.bind(8, columns.head.push_configs)?;
        update.bind(9, columns.head.deadline)?;
        update.bind(10, columns.head.artifacts)?;
        update.bind(11, columns.story_version)?;
        update.bind(12, columns.artifact_version)?;
        update.bind(13, columns.status_version)?;
        update.bind(14, columns.lease_until)?;
        update.bind(15, columns.updated_at)?;
        update.bind(16, columns.closed_at)?;
        update.bind(17, columns.checksum())?;
        update.bind(25, columns.bytes)?;
        if listing_changes {
            update.bind(18, columns.head.phase)?;
            update.bind(19, columns.head.state)?;
            update.bind(20, columns.head.status_at)?;
        }
        if run_changes {
            update.bind(21, columns.head.running)?;
            update.bind(22, columns.holder)?;
            update.bind(23, columns.run_at)?;
            update.bind(24, columns.head.cancel_requested)?;
        }
        update.execute()?;
        if enters_indexes {
            self.unindexed.set(task_no, false);
        }
        if listing != old.listing {
            let (from, to) = (old.listing.listed_under(), listing.listed_under());
            self.count_changes.push(CountChange { scope_no: old.unchanged.scope_no, from, to, records: 0 });
        }
        self.count_rows(1, step.artifacts.len());
        let prev_story = self.prev_story(task_no, old, step.events)?;
        self.append_log(task_no, old.chains, prev_story, step)?;
        self.remember_lease(task_no, step);
        let below_checkpoint = old.below_checkpoint_after(step.events, prev_story, row.chains);
        self.remember_step(task_no, StepRow { below_checkpoint, ..row });
        Ok(())
    }

    /// The commit of the story that one with these events is chained to.
    pub(crate) fn prev_story(&self, task_no: i64, before: &StepRow, events: &[Event]) -> Result<i64, Failure> {
        match (replaces_checkpoint(events), before.below_checkpoint) {
            (false, _) => Ok(before.chains.story),
            (true, Some(below)) => Ok(below),
            (true, None) => story_below_checkpoint(self.connection, task_no, before.chains.story),
        }
    }

    fn append_log(&mut self, task_no: i64, before: Chains, prev_story: i64, step: &Step<'_>) -> Result<(), Failure> {
        let version = signed(step.head.version);
        let columns = LogColumns {
            prev_story,
            accept_expires: step.accept_expires.map(Timestamp::as_ms),
            ..log_columns(task_no, step.head, step.events, before, step.at)
        };
        let insert = &mut self.statements.insert_log;
        insert.bind(1, columns.log_no)?;
        insert.bind(2, columns.last_seq)?;
        insert.bind(3, columns.visible)?;
        insert.bind(4, columns.prev_story)?;
        insert.bind(5, columns.prev_artifact)?;
        insert.bind(6, columns.at)?;
        insert.bind(7, &*step.encoded.record)?;
        insert.bind(8, columns.accept_expires)?;
        insert.bind(9, columns.checksum(step.encoded.record_hash))?;
        insert.execute()?;
        self.count_rows(1, step.encoded.record.len());
        for chunk in &step.encoded.chunks {
            let columns = ChunkColumns {
                chunk_no: chunk.number,
                task_no,
                version,
                artifact_id: chunk.artifact_id.as_ref().map(|id| id.as_str()),
                part: signed(chunk.part),
                start: signed(chunk.start),
            };
            ChunkRow { columns, bytes: &chunk.bytes }.insert(self.connection, chunk.hash)?;
            self.count_rows(1, chunk.bytes.len());
        }
        Ok(())
    }

    /// Most keys are new, and the table of keys alone shows that.
    fn find_accepted(&mut self, accept: &Accept) -> Result<Option<Accepted>, Failure> {
        let as_of = known_as_of(self.connection, self.now, self.held_until)?;
        for day in day_of(as_of)..=self.last_accepted_day {
            if self.statements.probe_accepted.exists(params![day, accept.key])? {
                return find_accepted(self.connection, &accept.key, as_of, self.last_accepted_day);
            }
        }
        Ok(None)
    }

    fn accept(&mut self, task_no: i64, version: i64, accept: &Accept) -> Result<(), Failure> {
        let day = day_of(accept.expires);
        let columns = AcceptedColumns {
            day,
            key: &accept.key,
            task_no,
            digest: &accept.digest,
            turn: accept.turn.into(),
            after_seq: signed(accept.after_seq),
            expires: accept.expires.as_ms(),
            version,
        };
        // A row with this key that is replaced here has expired, or its task was removed.
        self.statements.insert_accepted.execute(params![
            columns.day,
            columns.key,
            columns.task_no,
            columns.digest,
            columns.turn,
            columns.after_seq,
            columns.expires,
            columns.version,
            columns.checksum(),
        ])?;
        self.last_accepted_day = self.last_accepted_day.max(day);
        self.count_rows(1, accept.key.len() + accept.digest.len());
        Ok(())
    }

    fn remember_lease(&mut self, task_no: i64, step: &Step<'_>) {
        let Run { holder, lease_until, .. } = step.run;
        let until = lease_until.filter(|_| holder == self.epoch);
        self.leases.set(task_no, until.map(|until| Lease { fence: step.head.fence, until }));
    }
}

impl Step<'_> {
    /// The row after this commit, given the row before it.
    fn columns(
        &self,
        task_no: i64,
        unchanged: UnchangedColumns,
        chains: Chains,
        closed_at: Option<i64>,
    ) -> TaskColumns<'_> {
        let Self { head, run, .. } = *self;
        let UnchangedColumns { scope_no, floor_seq, floor_version, created_at } = unchanged;
        let columns = HeadColumns::of(head, self.artifacts);
        let (phase, running) = match (self.is_unindexed, head.phase) {
            (true, Phase::Live) => (UNINDEXED_TASK, UNINDEXED_RUN),
            (true, _) => (columns.phase, UNINDEXED_RUN),
            (false, _) => (columns.phase, run.running.into()),
        };
        let Chains { story, artifact, status } = chains.after(columns.version, self.events, self.folds);
        TaskColumns {
            task_no,
            scope_no,
            head: HeadColumns { phase, running, ..columns },
            story_version: story,
            artifact_version: artifact,
            status_version: status,
            floor_seq,
            floor_version,
            holder: run.holder,
            lease_until: run.lease_until.map(Timestamp::as_ms),
            run_at: run.run_at.map(Timestamp::as_ms),
            created_at,
            updated_at: self.at.as_ms(),
            closed_at: self.closed_at(closed_at),
            bytes: self.bytes,
        }
    }

    fn listing(&self) -> Listing {
        Listing {
            phase: phase_number(self.head.phase),
            state: state_number(self.head.state),
            status_at: self.head.status_at.as_ms(),
        }
    }

    fn closed_at(&self, before: Option<i64>) -> Option<i64> {
        before.or_else(|| self.head.is_closed().then(|| self.at.as_ms()))
    }
}
