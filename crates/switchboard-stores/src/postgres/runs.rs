//! Runs and their leases. A run is claimed by a commit; the statements here list runs and change leases. Time is that of the
//! database. Rows are locked in the order of their numbers, like those of a batch of commits.

use switchboard_core::model::AgentName;
use switchboard_engine::ports::store::{DueRun, Release, StoreError, StoredHead, TaskKey};
use tokio_postgres::Row;

use super::rows::{AFTER_TASK, TaskRow, get, now, read_scope, task_columns};
use super::shared::Shared;
use super::text;
use crate::record::signed;

const OBSERVE: &str = "select observe_clock_v2($1)";

/// Notes the time, and shifts waiting times if the clock was set back.
pub(super) async fn observe_clock(shared: &Shared) -> Result<(), StoreError> {
    shared.database.serve(OBSERVE, &[&shared.database.now()]).await?;
    Ok(())
}

/// Each agent has its own range of the index, so runs of other agents are not read.
const DUE: &str = concat!(
    "select ",
    task_columns!(),
    ", s.tenant, s.principal, s.agent, (t.hold <> 0 and t.begun)
       from agent a
      cross join lateral (select * from task where task.agent_no = a.agent_no and task.running and task.claimable_at <= ",
    now!(),
    "  order by task.claimable_at limit $3::bigint) t
       join scope s on s.scope_no = t.scope_no
      where a.name = any ($2::text[])
      order by t.claimable_at, t.task_no limit $3::bigint"
);

pub(super) async fn due(shared: &Shared, agents: &[AgentName], limit: usize) -> Result<Vec<DueRun>, StoreError> {
    observe_clock(shared).await?;
    let names: Vec<String> = agents.iter().map(|agent| text::stored(agent.as_str()).into_owned()).collect();
    let rows = shared.database.serve(DUE, &[&shared.database.now(), &names, &signed(limit as u64)]).await?;
    read_due(shared, &rows)
}

const DUE_OF_OTHERS: &str = concat!(
    "select ",
    task_columns!(),
    ", s.tenant, s.principal, s.agent, (t.hold <> 0 and t.begun)
       from task t join scope s using (scope_no)
      where t.running and t.claimable_at <= ",
    now!(),
    "   and t.task_no > $3::bigint
        and t.agent_no not in (select agent_no from agent where name = any ($2::text[]))
      order by t.task_no limit $4::bigint"
);

pub(super) async fn due_of_others(
    shared: &Shared,
    agents: &[AgentName],
    after: Option<TaskKey>,
    limit: usize,
) -> Result<Vec<DueRun>, StoreError> {
    let names: Vec<String> = agents.iter().map(|agent| text::stored(agent.as_str()).into_owned()).collect();
    let after = after.map_or(i64::MIN, |after| after.0);
    let rows =
        shared.database.serve(DUE_OF_OTHERS, &[&shared.database.now(), &names, &after, &signed(limit as u64)]).await?;
    read_due(shared, &rows)
}

fn read_due(shared: &Shared, rows: &[Row]) -> Result<Vec<DueRun>, StoreError> {
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let scope = read_scope(row, AFTER_TASK)?;
        match TaskRow::read(row, &scope.agent) {
            Ok(found) => {
                let stored = StoredHead { key: TaskKey(found.task_no), scope, head: found.head.into() };
                runs.push(DueRun { stored, interrupted: get(row, AFTER_TASK + 3)? });
            }
            // The other runs are still listed.
            Err(error) => drop(shared.quarantine.task((&*text::read(get(row, 1)?)).into(), error)),
        }
    }
    Ok(runs)
}

const BEGIN: &str = "
with h as (select * from unnest($1::bigint[], $2::bigint[]) as h(task_no, fence)),
     l as (select t.task_no from task t join h using (task_no)
            where t.running and t.hold = 1 and t.fence = h.fence order by t.task_no for update of t)
update task set begun = true from l where task.task_no = l.task_no returning task.task_no";

pub(super) async fn begin(shared: &Shared, begun: Vec<(TaskKey, u64)>) -> Result<Vec<TaskKey>, StoreError> {
    let (tasks, fences) = split(&begun);
    let rows = shared.database.serve(BEGIN, &[&tasks, &fences]).await?;
    shared.totals.rows(rows.len() as u64);
    lost(&begun, &rows)
}

const RENEW: &str = concat!(
    "with h as (select * from unnest($2::bigint[], $3::bigint[]) as h(task_no, fence)),
          l as (select t.task_no from task t join h using (task_no)
                 where t.running and t.hold = 1 and t.fence = h.fence order by t.task_no for update of t)
     update task set claimable_at = ",
    now!(),
    " + $4::bigint from l where task.task_no = l.task_no returning task.task_no"
);

pub(super) async fn renew(
    shared: &Shared,
    held: Vec<(TaskKey, u64)>,
    lease_ms: u32,
) -> Result<Vec<TaskKey>, StoreError> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let (tasks, fences) = split(&held);
    let rows = shared.database.serve(RENEW, &[&shared.database.now(), &tasks, &fences, &i64::from(lease_ms)]).await?;
    lost(&held, &rows)
}

const RELEASE: &str = concat!(
    "with h as (select * from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as h(task_no, fence, pause_ms)),
          l as (select t.task_no, h.pause_ms from task t join h using (task_no)
                 where t.running and t.hold = 1 and t.fence = h.fence order by t.task_no for update of t)
     update task set hold = 0, begun = false, holder = null,
                     claimable_at = ",
    now!(),
    " + case when task.cancel_requested then 0 else l.pause_ms end
       from l where task.task_no = l.task_no returning task.task_no"
);

pub(super) async fn release(shared: &Shared, released: Vec<Release>) -> Result<(), StoreError> {
    if released.is_empty() {
        return Ok(());
    }
    let tasks: Vec<i64> = released.iter().map(|release| release.key.0).collect();
    let fences: Vec<i64> = released.iter().map(|release| signed(release.fence)).collect();
    let pauses: Vec<i64> = released.iter().map(|release| release.pause_ms).collect();
    shared.database.serve(RELEASE, &[&shared.database.now(), &tasks, &fences, &pauses]).await?;
    Ok(())
}

pub(super) async fn canceled(shared: &Shared) -> Result<Vec<TaskKey>, StoreError> {
    const CANCELED: &str = "select task_no from task where running and cancel_requested order by task_no";
    let rows = shared.database.serve(CANCELED, &[]).await?;
    rows.iter().map(|row| get(row, 0).map(TaskKey)).collect()
}

fn split(held: &[(TaskKey, u64)]) -> (Vec<i64>, Vec<i64>) {
    held.iter().map(|(key, fence)| (key.0, signed(*fence))).unzip()
}

/// Those of the given runs that are not among the rows.
fn lost(given: &[(TaskKey, u64)], rows: &[Row]) -> Result<Vec<TaskKey>, StoreError> {
    let kept = rows.iter().map(|row| get(row, 0)).collect::<Result<std::collections::HashSet<i64>, _>>()?;
    Ok(given.iter().map(|(key, _)| *key).filter(|key| !kept.contains(&key.0)).collect())
}
