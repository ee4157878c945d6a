//! Prunes the store. Active records are never removed, nor is anything that a delivery still needs. Candidates are found by an index
//! of closed records and locked one statement at a time; rows that another process has locked are passed over, so several processes
//! may prune at once. Large tasks are removed in slices.

use switchboard_engine::ports::store::{Retention, StoreError};
use tokio_postgres::Row;

use super::rows::get;
use super::shared::Shared;
use super::totals::{Counted, place_of};
use super::usage::Sums;
use crate::record::{signed, unsigned};

/// How many log rows and chunks of one task are removed at once.
const LOG_ROWS_SLICE: i64 = 4_096;
const CHUNKS_SLICE: i64 = 64;

/// Above so many records by the server's own estimate, counting waits for the first use.
const COUNT_AT_OPEN_MAX: u32 = 200_000;

const FORGET_ACCEPTED: &str = "
with gone as (select key from accepted where expires <= $1::bigint limit $2::bigint for update skip locked)
delete from accepted a using gone where a.key = gone.key returning 1";

/// Removes the rows of tasks, but neither their logs nor their chunks.
macro_rules! remove_sql {
    ($candidates:literal) => {
        concat!(
            "with gone as (select t.task_no from task t where ",
            $candidates,
            "     and not exists (select 1 from push p where p.task_no = t.task_no and p.due_at is not null)
                  limit $1::bigint for update of t skip locked),
                  pushes as (delete from push p using gone where p.task_no = gone.task_no returning 1),
                  marked as (insert into removal select task_no from gone on conflict do nothing returning 1)
             delete from task t using gone where t.task_no = gone.task_no
             returning t.task_no, t.phase, t.state,
                       t.bytes + coalesce((select sum(c.bytes) from call c where c.task_no = t.task_no), 0)::bigint,
                       coalesce((select s.owner_no from scope s where s.scope_no = t.scope_no), 0)"
        )
    };
}
const REMOVE_OLD: &str = remove_sql!(
    "((t.prune_stage in (0, 1) and t.closed_at <= $2::bigint) or (t.prune_stage = 2 and t.closed_at <= $3::bigint))
     and t.closed_at is not null"
);
const REMOVE_EXCESS: &str = remove_sql!(
    "t.task_no = any (array(
    select c.task_no from task c where c.closed_at is not null
       and not exists (select 1 from push q where q.task_no = c.task_no and q.due_at is not null)
     order by c.task_no limit $1::bigint))"
);

/// The tasks whose log is compacted: of the commits only those that readers fold are kept. The floor is raised first, so that no
/// reader finds gaps.
const COMPACT: &str = "
with old as (select t.task_no, t.version from task t
              where t.prune_stage = 0 and t.closed_at is not null and t.closed_at <= $2::bigint
                and not exists (select 1 from push p where p.task_no = t.task_no and p.delivered_seq < t.seq)
              limit $1::bigint for update of t skip locked)
update task t set floor_seq = t.seq, floor_version = t.version from old where t.task_no = old.task_no
returning t.task_no, t.version, t.story_version, t.artifact_version, t.status_version";

/// The newest commit stays: it is one row, and a commit after it may need its links.
const COMPACT_SLICE: &str = "
with recursive kept as (
        select $2::bigint as story, $3::bigint as artifact, $4::bigint as status, null::bigint as version
        union all
        select case when k.story = l.version then l.prev_story else k.story end,
               case when k.artifact = l.version then l.prev_artifact else k.artifact end,
               case when k.status = l.version then 0 else k.status end,
               l.version
          from kept k join log l on l.task_no = $1::bigint and l.version = greatest(k.story, k.artifact, k.status)),
     gone as (select l.version from log l
               where l.task_no = $1::bigint and l.version < $5::bigint
                 and not exists (select 1 from kept where kept.version = l.version)
               limit $6::bigint),
     chunks as (delete from chunk c using gone where c.task_no = $1::bigint and c.version = gone.version returning 1),
     freed as (delete from log l using gone where l.task_no = $1::bigint and l.version = gone.version returning l.weight),
     sums as (select count(*) as rows, coalesce(sum(weight), 0)::bigint as bytes from freed)
update task t set bytes = t.bytes - sums.bytes from sums where t.task_no = $1::bigint
returning sums.rows, sums.bytes, coalesce((select s.owner_no from scope s where s.scope_no = t.scope_no), 0)";
const COMPACTED: &str =
    "update task set prune_stage = 1 where task_no = $1::bigint and version = $2::bigint and prune_stage = 0";

const LEFTOVERS: &str = "select task_no from removal limit $1::bigint for update skip locked";
const REMOVE_LOG: &str = "
with gone as (select task_no, version from log where task_no = $1::bigint limit $2::bigint)
delete from log l using gone where l.task_no = gone.task_no and l.version = gone.version returning 1";
const REMOVE_CHUNKS: &str = "
with gone as (select task_no, version, chunk_no from chunk where task_no = $1::bigint limit $2::bigint)
delete from chunk c using gone
 where c.task_no = gone.task_no and c.version = gone.version and c.chunk_no = gone.chunk_no returning 1";
const REMOVED: &str = "delete from removal where task_no = $1::bigint returning 1";

pub(super) async fn prune(shared: &Shared, retention: Retention, limit: usize) -> Result<usize, StoreError> {
    let limit = signed(limit as u64);
    let before = |kept_ms: i64| retention.now.plus_ms(kept_ms.saturating_neg()).as_ms();
    let mut done = remove_leftovers(shared, limit.min(8)).await?;
    let forgotten = shared.database.tend(FORGET_ACCEPTED, &[&retention.now.as_ms(), &(limit - done)]).await?;
    done += signed(forgotten.len() as u64);
    let excess = excess(shared, &retention).await?.min(limit - done);
    if excess > 0 {
        let rows = shared.database.tend(REMOVE_EXCESS, &[&excess]).await?;
        done += removed(shared, &rows).await?;
    }
    if done < limit {
        let (tasks, replies) = (before(retention.tasks_ms), before(retention.replies_ms));
        let rows = shared.database.tend(REMOVE_OLD, &[&(limit - done), &tasks, &replies]).await?;
        done += removed(shared, &rows).await?;
    }
    if done < limit {
        let rows = shared.database.tend(COMPACT, &[&(limit - done), &before(retention.events_ms)]).await?;
        done += signed(rows.len() as u64);
        for row in &rows {
            compact(shared, row).await?;
        }
    }
    Ok(usize::try_from(done).unwrap_or(0))
}

/// Counts what was removed, and removes the logs.
async fn removed(shared: &Shared, rows: &[Row]) -> Result<i64, StoreError> {
    for row in rows {
        let (phase, state): (i16, i16) = (get(row, 1)?, get(row, 2)?);
        shared.totals.changed((phase == 1).then_some(state.into()), None, -1);
        shared.usage.add(get(row, 4)?, -get::<i64>(row, 3)?);
        remove_slice(shared, get(row, 0)?).await?;
    }
    Ok(signed(rows.len() as u64))
}

/// Removes some of the log and chunks of a removed task.
async fn remove_slice(shared: &Shared, task_no: i64) -> Result<(), StoreError> {
    let log = shared.database.tend(REMOVE_LOG, &[&task_no, &LOG_ROWS_SLICE]).await?;
    let chunks = shared.database.tend(REMOVE_CHUNKS, &[&task_no, &CHUNKS_SLICE]).await?;
    shared.totals.rows((log.len() + chunks.len()) as u64);
    if signed(log.len() as u64) < LOG_ROWS_SLICE && signed(chunks.len() as u64) < CHUNKS_SLICE {
        shared.database.tend(REMOVED, &[&task_no]).await?;
    }
    Ok(())
}

async fn remove_leftovers(shared: &Shared, limit: i64) -> Result<i64, StoreError> {
    let rows = shared.database.tend(LEFTOVERS, &[&limit]).await?;
    for row in &rows {
        remove_slice(shared, get(row, 0)?).await?;
    }
    Ok(signed(rows.len() as u64))
}

async fn compact(shared: &Shared, row: &Row) -> Result<(), StoreError> {
    let [task_no, version, story, artifact, status] =
        [get::<i64>(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?, get(row, 4)?];
    let params: super::connect::Params<'_> = &[&task_no, &story, &artifact, &status, &version, &LOG_ROWS_SLICE];
    let rows = shared.database.tend(COMPACT_SLICE, params).await?;
    // No row: the task was removed meanwhile.
    let Some(freed) = rows.first() else { return Ok(()) };
    let removed: i64 = get(freed, 0)?;
    shared.usage.add(get(freed, 2)?, -get::<i64>(freed, 1)?);
    shared.totals.rows(unsigned(removed) + 1);
    if removed < LOG_ROWS_SLICE {
        shared.database.tend(COMPACTED, &[&task_no, &version]).await?;
    }
    Ok(())
}

/// How many closed records exceed the limit. Another process may have removed them since they were counted, so they are counted
/// again before any is removed.
async fn excess(shared: &Shared, retention: &Retention) -> Result<i64, StoreError> {
    if retention.tasks_max >= i64::MAX.unsigned_abs() {
        return Ok(0);
    }
    let known = shared.totals.records();
    if known.is_some_and(|records| retention.too_many(records) == 0) {
        return Ok(0);
    }
    count(shared).await?;
    Ok(shared.totals.records().map_or(0, |records| signed(retention.too_many(records))))
}

/// Counts all records and their bytes.
pub(super) async fn count(shared: &Shared) -> Result<(), StoreError> {
    // A row for each phase and state, with their number, a row for each scope, with its bytes, and one with those of its calls.
    const COUNT: &str = "
select g.phase, g.state, g.records, g.bytes, s.owner_no
  from (select phase, state, scope_no, count(*) as records, coalesce(sum(bytes), 0)::bigint as bytes
          from task group by grouping sets ((phase, state), (scope_no))
        union all
        select null, null, task.scope_no, 0, sum(call.bytes)::bigint from call join task using (task_no) group by task.scope_no) g
  left join scope s on s.scope_no = g.scope_no";
    let (begun, usage_begun) = (shared.totals.count_begins(), shared.usage.count_begins());
    let (mut counted, mut sums) = (Counted::default(), Sums::default());
    for row in &shared.database.tend(COUNT, &[]).await? {
        let Some(phase) = get::<Option<i16>>(row, 0)? else {
            sums.add(get::<Option<i64>>(row, 4)?.unwrap_or_default(), get(row, 3)?);
            continue;
        };
        let (state, count): (i16, i64) = (get(row, 1)?, get(row, 2)?);
        counted.records += count;
        if let Some(place) = place_of(state.into()).filter(|_| phase == 1) {
            counted.tasks[place] += count;
        }
    }
    shared.totals.counted(begun, counted);
    shared.usage.counted(usage_begun, sums);
    Ok(())
}

/// Counts all records of a database that is not large.
pub(super) async fn count_if_few(shared: &Shared) -> Result<(), StoreError> {
    const ESTIMATE: &str = "select reltuples from pg_class where oid = to_regclass('task')";
    let rows = shared.database.tend(ESTIMATE, &[]).await?;
    match rows.first().map_or(Ok(0.0), |row| get::<f32>(row, 0))? {
        estimate if f64::from(estimate) > f64::from(COUNT_AT_OPEN_MAX) => Ok(()),
        _ => count(shared).await,
    }
}
