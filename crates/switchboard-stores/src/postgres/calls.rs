//! The calls of agents to other agents. A row has its record as JSON (`record/call.rs`), and columns for what it is looked up by. Which step
//! may follow which is decided in this process, so a row is read, changed and written if nobody has changed it meanwhile (`revision`).

use switchboard_core::model::{TaskId, Timestamp};
use switchboard_engine::ports::calls::{CallRow, CallStep};
use switchboard_engine::ports::store::{StoreError, TaskKey};
use tokio_postgres::Row;

use super::error::corrupt;
use super::rows::{get, now, of_call, read_scope};
use super::runs::observe_clock;
use super::shared::Shared;
use super::text;
use crate::record::{CallColumns, decode_call, encode_call, signed};

/// How often a row is read again that others have changed meanwhile.
const TRIES_MAX: u32 = 16;

macro_rules! select {
    ($condition:literal) => {
        concat!(
            "select c.id, c.task_no, c.status, c.due_at, c.record, c.checksum, c.set_back_ms, c.revision, c.holder, t.id, ",
            now!(),
            ", s.tenant, s.principal, s.agent, c.call_no from call c join task t using (task_no) join scope s using (scope_no) where ",
            $condition
        )
    };
}
const FIND: &str = select!("c.id = $2");
const OF_TASK: &str = select!("c.task_no = $2::bigint order by c.call_no");
const DUE: &str =
    concat!(select!("c.due_at <= "), now!(), " and ($2::text is null or c.id = $2) order by c.due_at limit $3::bigint");
const OF_HOLDER: &str = select!("c.holder = $2::int and c.due_at is not null");
pub(super) const AFTER: &str = select!("c.id > $2 order by c.id limit $3::bigint");
#[cfg(feature = "sqlite")]
pub(super) const AFTER_NUMBER: &str = select!("c.call_no > $2::bigint order by c.call_no limit $3::bigint");
/// The column that holds the number.
#[cfg(feature = "sqlite")]
pub(super) const CALL_NO: usize = 14;

/// A call as it was read.
pub(super) struct Found {
    call: CallRow,
    revision: i64,
    holder: Option<i32>,
    now: Timestamp,
}

impl Found {
    #[cfg(feature = "sqlite")]
    pub(super) fn into_call(self) -> CallRow {
        self.call
    }

    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let columns = CallColumns {
            id: text::read(get(row, 0)?).into_owned(),
            parent: TaskKey(get(row, 1)?),
            parent_id: TaskId::from(&*text::read(get(row, 9)?)),
            scope: read_scope(row, 11)?,
            status: get(row, 2)?,
            due_at: get(row, 3)?,
        };
        let record: String = get(row, 4)?;
        if get::<i64>(row, 5)? != of_call(columns.parent.0, &columns.id, &columns.status, &record) {
            return Err(corrupt(format_args!("call {} does not match its checksum", columns.id)));
        }
        let mut call = decode_call(columns, &text::read(&record))?;
        // The database has shifted the time at which it is due.
        let set_back_ms: i64 = get(row, 6)?;
        call.give_up_at = call.give_up_at.map(|at| at.plus_ms(-set_back_ms));
        let now = Timestamp::from_ms(get(row, 10)?);
        Ok(Self { call, revision: get(row, 7)?, holder: get(row, 8)?, now })
    }
}

async fn find(shared: &Shared, id: &str) -> Result<Option<Found>, StoreError> {
    let rows = shared.database.serve(FIND, &[&shared.database.now(), &&*text::stored(id)]).await?;
    rows.first().map(Found::read).transpose()
}

pub(super) async fn open(shared: &Shared, call: CallRow) -> Result<CallRow, StoreError> {
    const OPEN: &str =
        "insert into call (id, task_no, status, due_at, record, checksum, holder) values ($1, $2, $3, $4, $5, $6, $7)
                        on conflict (id) do nothing returning 1";
    let (record, status) = (stored_record(&call), call.status.word());
    let (id, due_at) = (text::stored(&call.id), call.due_at.map(Timestamp::as_ms));
    let checksum = of_call(call.parent.0, &call.id, status, &record);
    let params: super::connect::Params<'_> =
        &[&&*id, &call.parent.0, &status, &due_at, &record, &checksum, &shared.replica_no];
    if !shared.database.serve(OPEN, params).await?.is_empty() {
        count(shared, &call, signed(call.stored_bytes())).await?;
    }
    let found = find(shared, &call.id).await?;
    found
        .map(|found| found.call)
        .ok_or_else(|| StoreError::Unavailable(format!("the task of call {} is gone", call.id)))
}

/// Counts bytes that a call has more than before.
async fn count(shared: &Shared, call: &CallRow, change: i64) -> Result<(), StoreError> {
    if change != 0
        && let Some(scope) = shared.scopes.find(&shared.database, &call.scope).await?
    {
        shared.usage.add(scope.owner_no, change);
    }
    Ok(())
}

pub(super) async fn change(shared: &Shared, id: &str, step: CallStep) -> Result<Option<CallRow>, StoreError> {
    for _ in 0..TRIES_MAX {
        let Some(Found { mut call, revision, holder, now }) = find(shared, id).await? else { return Ok(None) };
        let before = signed(call.stored_bytes());
        if !call.apply(&step, now) {
            return Ok(None);
        }
        if write(shared, &call, revision, holder).await? {
            count(shared, &call, signed(call.stored_bytes()) - before).await?;
            return Ok(Some(call));
        }
    }
    Err(StoreError::Unavailable(format!("call {id} is changed by too many at once")))
}

pub(super) async fn call(shared: &Shared, id: &str) -> Result<Option<CallRow>, StoreError> {
    Ok(find(shared, id).await?.map(|found| found.call))
}

pub(super) async fn of_task(shared: &Shared, parent: TaskKey) -> Result<Vec<CallRow>, StoreError> {
    let rows = shared.database.serve(OF_TASK, &[&shared.database.now(), &parent.0]).await?;
    rows.iter().map(|row| Found::read(row).map(|found| found.call)).collect()
}

pub(super) async fn claim(
    shared: &Shared,
    only: Option<String>,
    limit: usize,
    claim_ms: u32,
) -> Result<Vec<CallRow>, StoreError> {
    observe_clock(shared).await?;
    let only = only.map(|id| text::stored(&id).into_owned());
    let rows = shared.database.serve(DUE, &[&shared.database.now(), &only, &signed(limit as u64)]).await?;
    let mut claimed = Vec::new();
    for row in &rows {
        match Found::read(row) {
            Ok(Found { mut call, revision, now, .. }) => {
                // Another process may have claimed it since it was read.
                if call.claim(now, claim_ms) && write(shared, &call, revision, Some(shared.replica_no)).await? {
                    claimed.push(call);
                }
            }
            // The others are claimed all the same; `verify` reports this one.
            Err(error) => tracing::error!(?error, "a call cannot be read and is passed over"),
        }
    }
    Ok(claimed)
}

pub(super) async fn next_in(shared: &Shared) -> Result<Option<i64>, StoreError> {
    const NEXT: &str = concat!("select min(due_at) - ", now!(), " from call where due_at is not null");
    let rows = shared.database.serve(NEXT, &[&shared.database.now()]).await?;
    rows.first().map_or(Ok(None), |row| get(row, 0))
}

/// Makes calls due that an earlier process of this name looked after.
pub(super) async fn void_claims(shared: &Shared) -> Result<(), StoreError> {
    for row in &shared.database.serve(OF_HOLDER, &[&shared.database.now(), &shared.replica_no]).await? {
        let Ok(Found { mut call, revision, holder, now }) = Found::read(row) else { continue };
        if call.void_claim(now) {
            write(shared, &call, revision, holder).await?;
        }
    }
    Ok(())
}

/// Writes a call that had this revision; false if it has another by now.
async fn write(shared: &Shared, call: &CallRow, revision: i64, holder: Option<i32>) -> Result<bool, StoreError> {
    const WRITE: &str =
        "update call set status = $3, due_at = $4, record = $5, checksum = $6, holder = $7, set_back_ms = 0,
                                         revision = revision + 1
                          where id = $1 and revision = $2::bigint returning 1";
    let (record, status) = (stored_record(call), call.status.word());
    let (id, due_at) = (text::stored(&call.id), call.due_at.map(Timestamp::as_ms));
    let checksum = of_call(call.parent.0, &call.id, status, &record);
    let params: super::connect::Params<'_> = &[&&*id, &revision, &status, &due_at, &record, &checksum, &holder];
    if !shared.database.serve(WRITE, params).await?.is_empty() {
        return Ok(true);
    }
    // If the connection was lost after it was written, the statement was repeated, and has found what it wrote itself.
    let found = find(shared, &call.id).await?;
    Ok(found.is_some_and(|found| found.revision == revision + 1 && found.holder == holder && found.call == *call))
}

fn stored_record(call: &CallRow) -> String {
    text::stored(&encode_call(call)).into_owned()
}
