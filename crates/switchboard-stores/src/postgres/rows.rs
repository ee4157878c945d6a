//! Converts rows to the model's types and back, and says what the checksum of each row covers. A checksum is computed by the process
//! that writes the row, so it covers what that process sends, and not what the database adds: leases, the links between commits,
//! and the progress of deliveries.

use switchboard_core::call::Owner;
use switchboard_core::lifecycle::Head;
use switchboard_core::model::AgentName;
use switchboard_engine::ports::store::{Accept, Scope, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::error::corrupt;
use super::text;
use crate::checksum::{Checksum, ContentHash};
use crate::record::{Chains, HeadColumns, signed};

// A number is never reused for another table, because stored checksums depend on it. SQLite's are below 100.
const TASK: u64 = 101;
const ORIGIN: u64 = 102;
const LOG: u64 = 103;
const CHUNK: u64 = 104;
const PUSH: u64 = 105;
const ACCEPTED: u64 = 106;
const CALL: u64 = 107;

/// The columns of a task, in the order [`TaskRow::read`] reads them.
macro_rules! task_columns {
    () => {
        "t.task_no, t.id, t.context_id, t.phase, t.state, t.status_at, t.version, t.seq, t.turns, t.turn, t.fence, t.attempt, \
         t.running, t.cancel_requested, t.push_configs, t.deadline, t.artifacts, t.story_version, t.artifact_version, \
         t.status_version, t.floor_seq, t.floor_version, t.checksum, t.scope_no, t.origin_checksum"
    };
}
pub(super) use task_columns;

/// The first column after the task's.
pub(super) const AFTER_TASK: usize = 25;

/// The time by the clock that decides, which is the first parameter of a statement if a test gives it.
macro_rules! now {
    () => {
        "coalesce($1::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint)"
    };
}
pub(super) use now;

/// A column, or the error of a row that is not as this build writes it.
pub(super) fn get<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(corrupt)
}

/// The checksum of what every commit sets. `artifacts` is the stored form of the head's artifacts.
pub(super) fn of_head(task_no: i64, head: &Head, artifacts: &str) -> i64 {
    of_head_columns(task_no, &HeadColumns::of(head, artifacts))
}

fn of_head_columns(task_no: i64, head: &HeadColumns<'_>) -> i64 {
    let HeadColumns { id, context_id, running, cancel_requested, push_configs, deadline, artifacts, .. } = *head;
    head.add_progress(Checksum::of_table(TASK).number(task_no).text(id).text(context_id))
        .number(running)
        .number(cancel_requested)
        .number(push_configs)
        .optional_number(deadline)
        .text(artifacts)
        .finish()
}

/// The checksum of what only the first commit sets.
pub(super) fn of_origin(task_no: i64, id: &str, scope_no: i64) -> i64 {
    Checksum::of_table(ORIGIN).number(task_no).text(id).number(scope_no).finish()
}

pub(super) struct LogColumns {
    pub(super) task_no: i64,
    pub(super) version: i64,
    pub(super) last_seq: i64,
    pub(super) visible: i64,
    pub(super) at: i64,
    pub(super) nonce: i64,
}

impl LogColumns {
    pub(super) fn checksum(&self, record: ContentHash) -> i64 {
        let Self { task_no, version, last_seq, visible, at, nonce } = *self;
        let numbers = [task_no, version, last_seq, visible, at, nonce];
        numbers.into_iter().fold(Checksum::of_table(LOG), Checksum::number).content(record).finish()
    }
}

pub(super) fn of_chunk(task_no: i64, version: i64, chunk_no: i64, bytes: ContentHash) -> i64 {
    Checksum::of_table(CHUNK).number(task_no).number(version).number(chunk_no).content(bytes).finish()
}

pub(super) fn of_accept(task_no: i64, accept: &Accept) -> i64 {
    Checksum::of_table(ACCEPTED)
        .number(task_no)
        .bytes(&accept.key)
        .bytes(&accept.digest)
        .number(accept.turn.into())
        .number(signed(accept.after_seq))
        .number(accept.expires.as_ms())
        .finish()
}

/// A call. When it is due is not part of it, because the database changes that when its clock is set back.
pub(super) fn of_call(task_no: i64, id: &str, status: &str, record: &str) -> i64 {
    Checksum::of_table(CALL).number(task_no).text(id).text(status).text(record).finish()
}

/// What was registered for a webhook, with its secrets encrypted.
pub(super) struct PushColumns {
    pub(super) task_no: i64,
    pub(super) config_id: String,
    pub(super) url: String,
    pub(super) token: Option<String>,
    pub(super) auth_scheme: Option<String>,
    pub(super) auth_credentials: Option<String>,
    pub(super) dialect: String,
}

impl PushColumns {
    pub(super) fn checksum(&self) -> i64 {
        let Self { task_no, config_id, url, token, auth_scheme, auth_credentials, dialect } = self;
        Checksum::of_table(PUSH)
            .number(*task_no)
            .text(config_id)
            .text(url)
            .optional_text(token.as_deref())
            .optional_text(auth_scheme.as_deref())
            .optional_text(auth_credentials.as_deref())
            .text(dialect)
            .finish()
    }
}

/// A record as it is stored.
pub(super) struct TaskRow {
    pub(super) task_no: i64,
    pub(super) head: Head,
    pub(super) chains: Chains,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
}

impl TaskRow {
    /// Reads the columns of [`task_columns`], if they match their checksums.
    pub(super) fn read(row: &Row, agent: &AgentName) -> Result<Self, StoreError> {
        let task_no = get(row, 0)?;
        let (id, context_id) = (text::read(get(row, 1)?), text::read(get(row, 2)?));
        let artifacts = text::read(get(row, 16)?);
        let columns = HeadColumns {
            id: &id,
            context_id: &context_id,
            phase: get::<i16>(row, 3)?.into(),
            state: get::<i16>(row, 4)?.into(),
            status_at: get(row, 5)?,
            version: get(row, 6)?,
            seq: get(row, 7)?,
            turns: get(row, 8)?,
            turn: get(row, 9)?,
            fence: get(row, 10)?,
            attempt: get(row, 11)?,
            running: get::<bool>(row, 12)?.into(),
            cancel_requested: get::<bool>(row, 13)?.into(),
            push_configs: get(row, 14)?,
            deadline: get(row, 15)?,
            artifacts: &artifacts,
        };
        let scope_no = get(row, 23)?;
        if get::<i64>(row, 22)? != of_head_columns(task_no, &columns)
            || get::<i64>(row, 24)? != of_origin(task_no, columns.id, scope_no)
        {
            return Err(corrupt("its row does not match its checksum"));
        }
        let head = columns.into_head(agent)?;
        let chains = Chains { story: get(row, 17)?, artifact: get(row, 18)?, status: get(row, 19)? };
        Ok(Self { task_no, head, chains, floor_seq: get(row, 20)?, floor_version: get(row, 21)? })
    }
}

/// A scope from three columns: tenant, principal, agent.
pub(super) fn read_scope(row: &Row, first: usize) -> Result<Scope, StoreError> {
    let owner = Owner {
        tenant: text::read(get(row, first)?).into_owned().into(),
        principal: text::read(get(row, first + 1)?).into_owned().into(),
    };
    Ok(Scope { owner, agent: (&*text::read(get(row, first + 2)?)).into() })
}

/// The columns of a commit, in the order [`LogRow::read`] reads them.
macro_rules! log_columns {
    () => {
        "l.task_no, l.version, l.last_seq, l.visible, l.at, l.nonce, l.prev_story, l.prev_artifact, l.checksum, l.record"
    };
}
pub(super) use log_columns;

/// A commit as it is stored.
pub(super) struct LogRow {
    pub(super) columns: LogColumns,
    pub(super) prev_artifact: i64,
    pub(super) record: String,
}

impl LogRow {
    /// Reads a row, if it matches its checksum.
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let columns = LogColumns {
            task_no: get(row, 0)?,
            version: get(row, 1)?,
            last_seq: get(row, 2)?,
            visible: get::<i32>(row, 3)?.into(),
            at: get(row, 4)?,
            nonce: get(row, 5)?,
        };
        let record: String = get(row, 9)?;
        if get::<i64>(row, 8)? != columns.checksum(ContentHash::of(record.as_bytes())) {
            return Err(corrupt(format_args!("commit {} does not match its checksum", columns.version)));
        }
        Ok(Self { columns, prev_artifact: get(row, 7)?, record })
    }

    pub(super) fn version(&self) -> i64 {
        self.columns.version
    }
}
