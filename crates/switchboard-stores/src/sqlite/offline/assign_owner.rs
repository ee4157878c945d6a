//! Hands tasks over to another owner, on a file that no process has open: tasks from before callers were known, or of a principal whose
//! name has changed.

use std::path::Path;

use rusqlite::{Connection, params};
use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;

pub use crate::checked::Assigned;
use crate::sqlite::error::{Failure, FileError};
use crate::sqlite::ledger::find_scope_no;
use crate::sqlite::open::{Opened, SqliteOptions, open};
use crate::sqlite::push_rows::file_under_owners;
use crate::sqlite::rows::{TASK_COLUMNS, TaskColumns, of_scope, task_columns};

/// Hands the tasks of one owner over to another, those of one agent or of all. It is one transaction: all of them, or none.
///
/// # Errors
/// When there is no database, a process has it open, or it cannot be read or written.
pub fn assign_owner(
    database: &Path,
    now: Timestamp,
    from: &Owner,
    to: &Owner,
    agent: Option<&str>,
) -> Result<Assigned, FileError> {
    if !database.exists() {
        return Err(FileError::Missing { path: database.to_owned() });
    }
    let sql = |source| FileError::Sqlite { path: database.to_owned(), source };
    let Opened { lock, writer, readers, .. } = open(database, &SqliteOptions::default(), now)?;
    drop(readers);
    writer.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
    let assigned = assign(&writer, from, to, agent).and_then(|assigned| {
        file_under_owners(&writer)?;
        Ok(assigned)
    });
    let end = if assigned.is_ok() { "COMMIT" } else { "ROLLBACK" };
    writer.execute_batch(end).map_err(sql)?;
    let assigned = assigned.map_err(|Failure(failure)| FileError::Store { path: database.to_owned(), failure })?;
    writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(sql)?;
    writer.close().map_err(|(_, source)| sql(source))?;
    drop(lock);
    Ok(assigned)
}

fn assign(connection: &Connection, from: &Owner, to: &Owner, agent: Option<&str>) -> Result<Assigned, Failure> {
    let mut assigned = Assigned::default();
    if from == to {
        return Ok(assigned);
    }
    let mut listing = connection.prepare(
        "SELECT agent FROM scope WHERE tenant = ?1 AND principal = ?2 AND (?3 IS NULL OR agent = ?3) ORDER BY agent",
    )?;
    let listed = listing.query_map(params![from.tenant.as_str(), from.principal.as_str(), agent], |row| row.get(0))?;
    let agents: Vec<String> = listed.collect::<Result<_, _>>()?;
    for agent in agents {
        let old = [from.tenant.as_str(), from.principal.as_str(), &agent];
        let new = [to.tenant.as_str(), to.principal.as_str(), &agent];
        let Some(old_no) = find_scope_no(connection, old)? else { continue };
        let tasks = match find_scope_no(connection, new)? {
            // The new owner has no task at this agent yet, so the owner of all of them is renamed.
            None => {
                let [tenant, principal, _] = new;
                connection.execute(
                    "UPDATE scope SET tenant = ?2, principal = ?3, checksum = ?4 WHERE scope_no = ?1",
                    params![old_no, tenant, principal, of_scope(old_no, new)],
                )?;
                count(connection, old_no)?
            }
            Some(new_no) => {
                let (moved, damaged) = move_tasks(connection, old_no, new_no)?;
                assigned.damaged += damaged;
                moved
            }
        };
        if tasks > 0 {
            assigned.tasks += tasks;
            assigned.agents.push(agent);
        }
    }
    Ok(assigned)
}

fn count(connection: &Connection, scope_no: i64) -> Result<u64, Failure> {
    Ok(connection.query_row("SELECT count(*) FROM task WHERE scope_no = ?1", [scope_no], |row| row.get(0))?)
}

/// Moves tasks to an owner that has others. A row that does not match its checksum stays where it is, since it must not get a new
/// one. Returns how many were moved, and how many were not.
fn move_tasks(connection: &Connection, from: i64, to: i64) -> Result<(u64, u64), Failure> {
    let mut reading = connection.prepare(&format!("SELECT {TASK_COLUMNS} FROM task WHERE scope_no = ?1"))?;
    let mut rows = reading.query([from])?;
    let (mut changes, mut damaged) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        match task_columns(row) {
            Ok(columns) => changes.push((columns.task_no, TaskColumns { scope_no: to, ..columns }.checksum())),
            Err(_) => damaged += 1,
        }
    }
    drop(rows);
    let mut update = connection.prepare("UPDATE task SET scope_no = ?2, checksum = ?3 WHERE task_no = ?1")?;
    for (task_no, checksum) in &changes {
        update.execute(params![task_no, to, checksum])?;
    }
    Ok((changes.len() as u64, damaged))
}
