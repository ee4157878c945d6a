//! Hands tasks over to another owner, in a database that no server uses: tasks from before callers were known, or of a principal whose name has
//! changed.

use switchboard_core::call::Owner;
use switchboard_core::model::AgentName;
use switchboard_engine::ports::audit::AuditEntry;
use tokio::runtime::Handle;
use tokio_postgres::Client;

use super::error::PostgresError;
use super::migrate;
use super::moved::check_not_moved;
use super::offline::{append_audit, failed, refuse_if_running};
use super::options::PostgresOptions;
use super::rows::{TaskRow, get, of_origin, task_columns};
use super::text::{read, stored};
use super::thread::{alone, connector, single_client};
use crate::checked::{Assigned, told};

/// How many tasks are read and changed at once.
const TASKS_PAGE: i64 = 1_000;

/// Hands the tasks of one owner over to another, those of one agent or of all, and adds an entry to the audit log. It is one transaction: all
/// of them, or none.
///
/// # Errors
/// When the database cannot be reached or changed, or a server uses it.
pub fn assign_owner(
    options: &PostgresOptions,
    from: &Owner,
    to: &Owner,
    agent: Option<&str>,
    entry: &AuditEntry,
) -> Result<Assigned, PostgresError> {
    alone(async {
        let client = single_client(&connector(options, Handle::current())?).await?;
        let status = migrate::status(&client, &options.schema).await?;
        if !status.is_usable() {
            return Err(PostgresError(status.to_string()));
        }
        check_not_moved(&client).await?;
        refuse_if_running(&client, &options.schema).await?;
        append_audit(&client, entry).await?;
        // A server that starts meanwhile waits before it reads anything, because it writes to this table first.
        let begin = "begin; set local statement_timeout = 0; lock table replica in share row exclusive mode";
        client.batch_execute(begin).await.map_err(failed)?;
        refuse_if_running(&client, &options.schema).await?;
        let assigned = assign(&client, from, to, agent).await?;
        client.batch_execute("commit").await.map_err(failed)?;
        Ok(assigned)
    })
}

async fn assign(client: &Client, from: &Owner, to: &Owner, agent: Option<&str>) -> Result<Assigned, PostgresError> {
    const SCOPES: &str = "select o.scope_no, o.agent, n.scope_no from scope o
                            left join scope n on n.tenant = $3 and n.principal = $4 and n.agent = o.agent
                           where o.tenant = $1 and o.principal = $2 and ($5::text is null or o.agent = $5) order by o.agent";
    const OWNER: &str = "insert into owner (tenant, principal) values ($1, $2)
                         on conflict (tenant, principal) do update set tenant = excluded.tenant returning owner_no";
    const RENAME: &str = "update scope set tenant = $2, principal = $3, owner_no = $4 where scope_no = $1";
    const COUNT: &str = "select count(*) from task where scope_no = $1";
    const FILE: &str =
        "update push set owner_no = $2 from task where task.task_no = push.task_no and task.scope_no = $1";
    let mut assigned = Assigned::default();
    if from == to {
        return Ok(assigned);
    }
    let [old_tenant, old_principal] = [from.tenant.as_str(), from.principal.as_str()].map(stored);
    let [tenant, principal] = [to.tenant.as_str(), to.principal.as_str()].map(stored);
    let agent = agent.map(stored);
    let names = [&&*old_tenant, &&*old_principal, &&*tenant, &&*principal];
    let scopes =
        client.query(SCOPES, &[names[0], names[1], names[2], names[3], &agent.as_deref()]).await.map_err(failed)?;
    if scopes.is_empty() {
        return Ok(assigned);
    }
    let owner_no: i64 =
        client.query_one(OWNER, &[names[2], names[3]]).await.and_then(|row| row.try_get(0)).map_err(failed)?;
    for row in &scopes {
        let (old_no, agent): (i64, &str) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
        let tasks = match row.try_get::<_, Option<i64>>(2).map_err(failed)? {
            // The new owner has no task at this agent yet, so the owner of all of them is renamed.
            None => {
                client.execute(RENAME, &[&old_no, names[2], names[3], &owner_no]).await.map_err(failed)?;
                client.execute(FILE, &[&old_no, &owner_no]).await.map_err(failed)?;
                let row = client.query_one(COUNT, &[&old_no]).await.map_err(failed)?;
                row.try_get::<_, i64>(0).map_err(failed)?.unsigned_abs()
            }
            Some(new_no) => {
                let (moved, damaged) = move_tasks(client, old_no, new_no).await?;
                client.execute(FILE, &[&new_no, &owner_no]).await.map_err(failed)?;
                assigned.damaged += damaged;
                moved
            }
        };
        if tasks > 0 {
            assigned.tasks += tasks;
            assigned.agents.push(read(agent).into_owned());
        }
    }
    Ok(assigned)
}

/// Moves tasks to an owner that has others. A row that does not match its checksum stays where it is, since it must not get a new one. Returns
/// how many were moved, and how many were not.
async fn move_tasks(client: &Client, from: i64, to: i64) -> Result<(u64, u64), PostgresError> {
    const TASKS: &str = concat!(
        "select ",
        task_columns!(),
        " from task t where t.scope_no = $1 and t.task_no > $2 order by t.task_no limit $3"
    );
    const MOVE: &str = "update task set scope_no = $1, origin_checksum = m.checksum
                          from unnest($2::bigint[], $3::bigint[]) as m(task_no, checksum) where task.task_no = m.task_no";
    let (mut moved, mut damaged, mut after) = (0, 0, 0_i64);
    loop {
        let page = client.query(TASKS, &[&from, &after, &TASKS_PAGE]).await.map_err(failed)?;
        let Some(last) = page.last() else { return Ok((moved, damaged)) };
        after = get(last, 0).map_err(|error| PostgresError(told(&error)))?;
        let (mut numbers, mut checksums) = (Vec::new(), Vec::new());
        for row in &page {
            match TaskRow::read(row, &AgentName::default()) {
                Ok(task) => {
                    numbers.push(task.task_no);
                    checksums.push(of_origin(task.task_no, task.head.id.as_str(), to));
                }
                Err(_) => damaged += 1,
            }
        }
        moved += numbers.len() as u64;
        client.execute(MOVE, &[&to, &numbers, &checksums]).await.map_err(failed)?;
    }
}
