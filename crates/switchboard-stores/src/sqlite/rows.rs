//! The rows of a file: their columns, how they become the model's types, and what the checksum of each covers, which is every
//! column including the row's number, so that two rows with swapped contents are found as well as a flipped bit. A reader checks
//! each row that it reads, and `verify` checks all rows. The writer derives a new row only from what it wrote itself, or has
//! read and checked, so damaged data never gets a valid checksum.
//!
//! There is one exception, to keep commits cheap: the two times of a webhook change for many rows at once, so they have
//! a separate checksum, which does not cover the row's number.

use rusqlite::Row;
use rusqlite::types::FromSqlError;
use switchboard_core::call::Owner;
use switchboard_core::lifecycle::{Event, Head, Phase};
use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::audit::ChainPosition;
use switchboard_engine::ports::store::{Scope, StoreError};

use super::error::Failure;
use crate::checksum::{Checksum, ContentHash};
use crate::record::{Chains, HeadColumns, phase_number, signed};

// A number is never reused for another table, because stored checksums depend on it.
const META: u64 = 1;
const SCOPE: u64 = 2;
const TASK: u64 = 3;
const LOG: u64 = 4;
const CHUNK: u64 = 5;
const PUSH: u64 = 6;
const PUSH_TIMES: u64 = 7;
const ACCEPTED: u64 = 8;
const AUDIT_CHAIN: u64 = 9;
const CALL: u64 = 10;

/// The log's key is `task_no << VERSION_BITS | version`.
pub(super) const VERSION_BITS: u32 = 24;

/// The most commits one task can have.
pub(super) const VERSION_MAX: u64 = (1 << VERSION_BITS) - 1;

/// In the column `phase`: a task, as 1 is, that the indexes of lists do not have.
pub(super) const UNINDEXED_TASK: i64 = 3;
/// In the column `running`: a run at work, as 1 is, that the index of runs does not have.
pub(super) const UNINDEXED_RUN: i64 = 2;

/// The number of the phase, whether the task is indexed or not.
pub(super) fn phase_of(head: &HeadColumns<'_>) -> i64 {
    if head.phase == UNINDEXED_TASK { phase_number(Phase::Live) } else { head.phase }
}

/// The error for a row that does not match its checksum.
pub(super) fn mismatch(what: impl std::fmt::Display) -> Failure {
    Failure(StoreError::Corrupt(format!("{what} does not match its checksum")))
}

/// The error for an owner that does not match its checksum. It affects only callers that ask for this owner's tasks.
pub(super) fn damaged_owner(scope_no: i64) -> Failure {
    Failure(StoreError::Damaged(format!("owner number {scope_no} does not match its checksum")))
}

/// The error for a column that holds another type than expected.
pub(super) fn mistyped(error: FromSqlError) -> Failure {
    Failure(StoreError::Corrupt(error.to_string()))
}

pub(super) fn of_meta(name: &str, value: i64) -> i64 {
    Checksum::of_table(META).text(name).number(value).finish()
}

pub(super) fn of_scope(scope_no: i64, [tenant, principal, agent]: [&str; 3]) -> i64 {
    Checksum::of_table(SCOPE).number(scope_no).text(tenant).text(principal).text(agent).finish()
}

/// Every column of a row of `task` but its checksum, as SQLite holds them.
#[derive(Clone, Copy)]
pub(super) struct TaskColumns<'r> {
    pub(super) task_no: i64,
    pub(super) scope_no: i64,
    /// Two of its numbers may differ from those of the model, see `unindexed`.
    pub(super) head: HeadColumns<'r>,
    pub(super) story_version: i64,
    pub(super) artifact_version: i64,
    pub(super) status_version: i64,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
    pub(super) holder: i64,
    pub(super) lease_until: Option<i64>,
    pub(super) run_at: Option<i64>,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    pub(super) closed_at: Option<i64>,
    pub(super) bytes: i64,
}

impl TaskColumns<'_> {
    pub(super) fn checksum(&self) -> i64 {
        self.but_bytes().number(self.bytes).finish()
    }

    /// The checksum of a row from before schema 7.
    pub(super) fn checksum_without_bytes(&self) -> i64 {
        self.but_bytes().finish()
    }

    fn but_bytes(&self) -> Checksum {
        // All fields are named here, so that the compiler reports an added column.
        let Self {
            task_no,
            scope_no,
            head,
            story_version,
            artifact_version,
            status_version,
            floor_seq,
            floor_version,
            holder,
            lease_until,
            run_at,
            created_at,
            updated_at,
            closed_at,
            bytes: _,
        } = *self;
        let names = Checksum::of_table(TASK).number(task_no).text(head.id).number(scope_no).text(head.context_id);
        head.add_progress(names)
            .number(head.cancel_requested)
            .number(head.push_configs)
            .optional_number(head.deadline)
            .text(head.artifacts)
            .number(story_version)
            .number(artifact_version)
            .number(status_version)
            .number(floor_seq)
            .number(floor_version)
            .number(head.running)
            .number(holder)
            .optional_number(lease_until)
            .optional_number(run_at)
            .number(created_at)
            .number(updated_at)
            .optional_number(closed_at)
    }
}

/// A row of `log` without its record, of which the hash is enough.
#[derive(Clone, Copy)]
pub(super) struct LogColumns {
    pub(super) log_no: i64,
    pub(super) last_seq: i64,
    pub(super) visible: i64,
    pub(super) prev_story: i64,
    pub(super) prev_artifact: i64,
    pub(super) at: i64,
    pub(super) accept_expires: Option<i64>,
}

impl LogColumns {
    pub(super) fn checksum(&self, record: ContentHash) -> i64 {
        let Self { log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires } = *self;
        Checksum::of_table(LOG)
            .number(log_no)
            .number(last_seq)
            .number(visible)
            .number(prev_story)
            .number(prev_artifact)
            .number(at)
            .optional_number(accept_expires)
            .content(record)
            .finish()
    }
}

/// A row of `chunk` without its bytes, of which the hash is enough.
#[derive(Clone, Copy)]
pub(super) struct ChunkColumns<'r> {
    pub(super) chunk_no: i64,
    pub(super) task_no: i64,
    pub(super) version: i64,
    pub(super) artifact_id: Option<&'r str>,
    pub(super) part: i64,
    pub(super) start: i64,
}

impl ChunkColumns<'_> {
    pub(super) fn checksum(&self, bytes: ContentHash) -> i64 {
        let Self { chunk_no, task_no, version, artifact_id, part, start } = *self;
        Checksum::of_table(CHUNK)
            .number(chunk_no)
            .number(task_no)
            .number(version)
            .optional_text(artifact_id)
            .number(part)
            .number(start)
            .content(bytes)
            .finish()
    }
}

/// A row of `push` without the times at which it is due.
#[derive(Clone)]
pub(super) struct PushColumns {
    pub(super) push_no: i64,
    pub(super) task_no: i64,
    pub(super) config_id: String,
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) auth_scheme: Option<String>,
    pub(super) auth_credentials: Option<String>,
    pub(super) dialect: String,
    pub(super) delivered_seq: i64,
    pub(super) failures: i64,
    pub(super) parked: i64,
    pub(super) last_error: Option<String>,
    pub(super) last_attempt_at: Option<i64>,
    pub(super) created_at: i64,
}

impl PushColumns {
    pub(super) fn checksum(&self) -> i64 {
        let Self {
            push_no,
            task_no,
            config_id,
            url,
            token,
            auth_scheme,
            auth_credentials,
            dialect,
            delivered_seq,
            failures,
            parked,
            last_error,
            last_attempt_at,
            created_at,
        } = self;
        Checksum::of_table(PUSH)
            .number(*push_no)
            .number(*task_no)
            .text(config_id)
            .text(url)
            .optional_text(token.as_deref())
            .optional_text(auth_scheme.as_deref())
            .optional_text(auth_credentials.as_deref())
            .text(dialect)
            .number(*delivered_seq)
            .number(*failures)
            .number(*parked)
            .optional_text(last_error.as_deref())
            .optional_number(*last_attempt_at)
            .number(*created_at)
            .finish()
    }
}

/// The two times of a webhook: when it is due, and until when a delivery has claimed it.
pub(super) fn of_push_times(due_at: Option<i64>, claimed_until: Option<i64>) -> i64 {
    Checksum::of_table(PUSH_TIMES).optional_number(due_at).optional_number(claimed_until).finish()
}

/// A row of `call`.
pub(super) fn of_call(call_no: i64, task_no: i64, id: &str, status: &str, due_at: Option<i64>, record: &str) -> i64 {
    let numbered = Checksum::of_table(CALL).number(call_no).number(task_no);
    numbered.text(id).text(status).optional_number(due_at).text(record).finish()
}

/// A row of `audit_chain`. The rows of `audit` have no checksum, because their hash covers them.
pub(super) struct ChainColumns {
    pub(super) chain_no: i64,
    pub(super) id: String,
    /// The last entry that is no longer kept.
    pub(super) anchor: ChainPosition,
    pub(super) last_no: u64,
}

impl ChainColumns {
    pub(super) fn checksum(&self) -> i64 {
        let Self { chain_no, id, anchor: ChainPosition { no, hash }, last_no } = self;
        Checksum::of_table(AUDIT_CHAIN)
            .number(*chain_no)
            .text(id)
            .number(no.cast_signed())
            .bytes(&hash.0)
            .number(last_no.cast_signed())
            .finish()
    }
}

/// A row of `accepted`.
#[derive(Clone, Copy)]
pub(super) struct AcceptedColumns<'r> {
    pub(super) day: i64,
    pub(super) key: &'r [u8],
    pub(super) task_no: i64,
    pub(super) digest: &'r [u8],
    pub(super) turn: i64,
    pub(super) after_seq: i64,
    pub(super) expires: i64,
    pub(super) version: i64,
}

impl AcceptedColumns<'_> {
    pub(super) fn checksum(&self) -> i64 {
        let Self { day, key, task_no, digest, turn, after_seq, expires, version } = *self;
        Checksum::of_table(ACCEPTED)
            .number(day)
            .bytes(key)
            .number(task_no)
            .bytes(digest)
            .number(turn)
            .number(after_seq)
            .number(expires)
            .number(version)
            .finish()
    }
}

/// The columns of a task, in the order [`task_columns`] reads them.
pub(super) const TASK_COLUMNS: &str = "task.task_no, task.id, task.scope_no, task.context_id, task.phase, task.state, \
     task.status_at, task.version, task.seq, task.turns, task.turn, task.fence, task.attempt, task.cancel_requested, \
     task.push_configs, task.deadline, task.artifacts, task.story_version, task.artifact_version, task.status_version, \
     task.floor_seq, task.floor_version, task.running, task.holder, task.lease_until, task.run_at, task.created_at, \
     task.updated_at, task.closed_at, task.bytes, task.checksum";

/// The first column after the task's.
pub(super) const AFTER_TASK: usize = 31;

/// A row of the task table, if it matches its checksum.
pub(super) fn task_columns<'r>(row: &'r Row<'_>) -> Result<TaskColumns<'r>, Failure> {
    let columns = task_columns_unchecked(row)?;
    match row.get::<_, i64>(AFTER_TASK - 1)? == columns.checksum() {
        true => Ok(columns),
        false => Err(mismatch("its row")),
    }
}

pub(super) fn task_columns_unchecked<'r>(row: &'r Row<'_>) -> Result<TaskColumns<'r>, Failure> {
    let text = |column: usize| -> Result<&'r str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
    let head = HeadColumns {
        id: text(1)?,
        context_id: text(3)?,
        phase: row.get(4)?,
        state: row.get(5)?,
        status_at: row.get(6)?,
        version: row.get(7)?,
        seq: row.get(8)?,
        turns: row.get(9)?,
        turn: row.get(10)?,
        fence: row.get(11)?,
        attempt: row.get(12)?,
        cancel_requested: row.get(13)?,
        push_configs: row.get(14)?,
        deadline: row.get(15)?,
        artifacts: text(16)?,
        running: row.get(22)?,
    };
    Ok(TaskColumns {
        task_no: row.get(0)?,
        scope_no: row.get(2)?,
        head,
        story_version: row.get(17)?,
        artifact_version: row.get(18)?,
        status_version: row.get(19)?,
        floor_seq: row.get(20)?,
        floor_version: row.get(21)?,
        holder: row.get(23)?,
        lease_until: row.get(24)?,
        run_at: row.get(25)?,
        created_at: row.get(26)?,
        updated_at: row.get(27)?,
        closed_at: row.get(28)?,
        bytes: row.get(29)?,
    })
}

pub(super) struct TaskRow {
    pub(super) task_no: i64,
    pub(super) head: Head,
    pub(super) chains: Chains,
}

/// The columns of a commit, given the chains before it, apart from its idempotency key.
pub(super) fn log_columns(task_no: i64, head: &Head, events: &[Event], before: Chains, at: Timestamp) -> LogColumns {
    let visible = events.iter().filter(|event| event.is_visible()).count();
    LogColumns {
        log_no: log_no(task_no, signed(head.version)),
        last_seq: signed(head.seq),
        visible: signed(visible as u64),
        prev_story: before.story,
        prev_artifact: before.artifact,
        at: at.as_ms(),
        accept_expires: None,
    }
}

/// The heads of the chains, as the row of a task has them.
pub(super) fn chains_of(columns: &TaskColumns<'_>) -> Chains {
    let TaskColumns { story_version, artifact_version, status_version, .. } = *columns;
    Chains { story: story_version, artifact: artifact_version, status: status_version }
}

/// Reads a task whose agent is already known.
pub(super) fn task_row(columns: &TaskColumns<'_>, agent: &AgentName) -> Result<TaskRow, Failure> {
    let head = HeadColumns { phase: phase_of(&columns.head), ..columns.head }.into_head(agent)?;
    Ok(TaskRow { task_no: columns.task_no, head, chains: chains_of(columns) })
}

/// The columns of a commit, in the order [`LogRow::read`] reads them.
pub(super) const LOG_COLUMNS: &str =
    "log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires, checksum, record";

/// The same for a commit that waits to be filed, with the checksum that it will have in the log. Such commits have no
/// idempotency key.
pub(super) const RECENT_COLUMNS: &str = "log_no, last_seq, visible, prev_story, prev_artifact, at, NULL, \
     (checksum | recent_no) & ~(checksum & recent_no), record";

/// A commit as it is stored.
pub(super) struct LogRow<'r> {
    pub(super) columns: LogColumns,
    pub(super) record: &'r str,
}

impl<'r> LogRow<'r> {
    /// Reads a row, if it matches its checksum.
    pub(super) fn read(row: &'r Row<'_>) -> Result<Self, Failure> {
        let found = Self::read_unchecked(row)?;
        let checksum = found.columns.checksum(ContentHash::of(found.record.as_bytes()));
        match row.get::<_, i64>(7)? == checksum {
            true => Ok(found),
            false => Err(mismatch(format_args!("commit {}", found.version()))),
        }
    }

    pub(super) fn read_unchecked(row: &'r Row<'_>) -> Result<Self, Failure> {
        let columns = LogColumns {
            log_no: row.get(0)?,
            last_seq: row.get(1)?,
            visible: row.get(2)?,
            prev_story: row.get(3)?,
            prev_artifact: row.get(4)?,
            at: row.get(5)?,
            accept_expires: row.get(6)?,
        };
        Ok(Self { columns, record: row.get_ref(8)?.as_str().map_err(mistyped)? })
    }

    pub(super) fn version(&self) -> i64 {
        version_of(self.columns.log_no)
    }
}

pub(super) fn log_no(task_no: i64, version: i64) -> i64 {
    task_no << VERSION_BITS | version
}

pub(super) fn version_of(log_no: i64) -> i64 {
    log_no & ((1 << VERSION_BITS) - 1)
}

/// The columns of a scope, in the order [`scope_from`] reads them.
pub(super) const SCOPE_COLUMNS: &str = "scope.tenant, scope.principal, scope.agent, scope.scope_no, scope.checksum";
pub(super) const SCOPE_COLUMN_COUNT: usize = 5;

/// The owner and agent of a task, from the columns that begin at `at`, if they match their checksum.
pub(super) fn scope_from(row: &Row<'_>, at: usize) -> Result<Scope, Failure> {
    let text = |column: usize| -> Result<&str, Failure> { row.get_ref(column)?.as_str().map_err(mistyped) };
    let names @ [tenant, principal, agent] = [text(at)?, text(at + 1)?, text(at + 2)?];
    let scope_no = row.get(at + 3)?;
    if of_scope(scope_no, names) != row.get::<_, i64>(at + 4)? {
        return Err(damaged_owner(scope_no));
    }
    Ok(Scope { owner: Owner { tenant: tenant.into(), principal: principal.into() }, agent: agent.into() })
}
