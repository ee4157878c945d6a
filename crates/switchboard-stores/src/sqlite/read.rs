//! Reads of one record: its head, its task, its log, and other single queries.

use std::ops::RangeInclusive;

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Part, PushConfig, TaskId, Timestamp};
use switchboard_engine::ports::store::{LogPage, Scope, StoreError, StoredHead, StoredTask, TaskKey};

use super::error::Failure;
use super::fold::Chunks;
use super::outlined::fold_within;
use super::push_rows::{PUSH_COLUMNS, push_columns};
use super::quarantine::Quarantined;
use super::rows::{
    AFTER_TASK, LOG_COLUMNS, LogRow, TASK_COLUMNS, TaskRow, damaged_owner, log_no, of_scope, task_columns, task_row,
};
use super::secrets::Secrets;
use crate::record::{HistoryBounds, Paging, Want, decode, missing, signed};

/// A page of large commits holds fewer of them, so that reading a large file needs little memory.
const LOG_PAGE_BYTES_MAX: usize = 1 << 20;

/// Runs several reads against one state of the file.
pub(super) fn at_once<T>(connection: &Connection, read: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = read();
    connection.prepare_cached("COMMIT")?.execute([])?;
    result
}

pub(super) fn find(connection: &Connection, scope: &Scope, id: &TaskId) -> Result<Option<TaskRow>, Failure> {
    let sql = format!(
        "SELECT {TASK_COLUMNS}, scope.scope_no, scope.checksum FROM task JOIN scope USING (scope_no)
          WHERE task.id = ?1 AND scope.tenant = ?2 AND scope.principal = ?3 AND scope.agent = ?4"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let owner = &scope.owner;
    let names @ [tenant, principal, agent] = [owner.tenant.as_str(), owner.principal.as_str(), scope.agent.as_str()];
    let mut rows = select.query([id.as_str(), tenant, principal, agent])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (scope_no, checksum): (i64, i64) = (row.get(AFTER_TASK)?, row.get(AFTER_TASK + 1)?);
    if of_scope(scope_no, names) != checksum {
        return Err(damaged_owner(scope_no));
    }
    task_row(&task_columns(row)?, &scope.agent).map(Some)
}

pub(super) fn head(connection: &Connection, scope: &Scope, id: &TaskId) -> Result<Option<StoredHead>, Failure> {
    let found = find(connection, scope, id)?;
    Ok(found.map(|row| StoredHead { key: TaskKey(row.task_no), scope: scope.clone(), head: row.head.into() }))
}

pub(super) fn task(
    connection: &Connection,
    scope: &Scope,
    id: &TaskId,
    bytes_max: u64,
    history_max: Option<u32>,
) -> Result<Option<StoredTask>, Failure> {
    let bounds = HistoryBounds::within(bytes_max, history_max);
    at_once(connection, || {
        let found = find(connection, scope, id)?;
        found.map(|row| fold_within(connection, row, bytes_max, bounds)).transpose()
    })
}

pub(super) fn log(connection: &Connection, key: TaskKey, after_seq: u64, limit: usize) -> Result<LogPage, Failure> {
    at_once(connection, || {
        let mut bounds =
            connection.prepare_cached("SELECT floor_seq, seq, floor_version, version FROM task WHERE task_no = ?1")?;
        let found = bounds.query_row([key.0], |row| {
            Ok([row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get::<_, i64>(3)?])
        });
        let [floor_seq, seq, floor_version, version] = found.optional()?.ok_or(StoreError::Pruned)?;
        let after_seq = signed(after_seq);
        if after_seq < floor_seq {
            return Err(StoreError::Pruned.into());
        }
        let mut page = Paging::after(after_seq);
        if after_seq >= seq {
            return Ok(page.finish(true, seq)?);
        }
        let from = first_version_after(connection, key.0, after_seq, floor_version + 1..=version)?;
        let sql = format!(
            "SELECT {LOG_COLUMNS} FROM log
              WHERE log_no BETWEEN ?1 AND ?2 AND visible > 0 ORDER BY log_no LIMIT ?3"
        );
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query(params![log_no(key.0, from), log_no(key.0, version), signed(limit as u64)])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()?.filter(|_| bytes < LOG_PAGE_BYTES_MAX) {
            let found = LogRow::read(row)?;
            page.add(found.version(), found.columns.last_seq, found.columns.visible, || {
                let events: Vec<Event> = decode(found.record, Want::Everything, &Chunks(connection))?;
                bytes += found.record.len() + events.iter().map(artifact_bytes).sum::<usize>();
                Ok(events)
            })?;
        }
        let is_full = page.commits() >= limit || bytes >= LOG_PAGE_BYTES_MAX;
        Ok(page.finish(is_full, seq)?)
    })
}

fn artifact_bytes(event: &Event) -> usize {
    match event {
        Event::ArtifactWritten { artifact, .. } => artifact.parts.iter().map(Part::content_bytes).sum(),
        _ => 0,
    }
}

/// The first commit after which the task's seq is above `after_seq`. Seq never decreases from one commit to the next,
/// so a binary search finds it; a task of a million commits takes twenty reads.
pub(super) fn first_version_after(
    connection: &Connection,
    task_no: i64,
    after_seq: i64,
    versions: RangeInclusive<i64>,
) -> Result<i64, Failure> {
    let mut select = connection.prepare_cached("SELECT last_seq FROM log WHERE log_no = ?1")?;
    let (mut low, mut high) = versions.into_inner();
    while low < high {
        let middle = low + (high - low) / 2;
        let seq: Option<i64> = select.query_row([log_no(task_no, middle)], |row| row.get(0)).optional()?;
        let seq = seq.ok_or_else(|| missing(task_no, middle))?;
        if seq > after_seq {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

pub(super) fn push_configs(
    connection: &Connection,
    secrets: &Secrets,
    key: TaskKey,
) -> Result<Vec<PushConfig>, Failure> {
    at_once(connection, || {
        let mut select = connection.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1"))?;
        let mut tasks = select.query([key.0])?;
        let Some(task) = tasks.next()? else { return Ok(Vec::new()) };
        let task = task_columns(task)?;
        let sql = format!("SELECT {PUSH_COLUMNS} FROM push WHERE push.task_no = ?1 ORDER BY push.push_no");
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query([key.0])?;
        let mut configs = Vec::new();
        while let Some(row) = rows.next()? {
            configs.push(push_columns(row)?.into_config(task.head.id.into(), secrets));
        }
        // The rows are found by an index, which has no checksum.
        if signed(configs.len() as u64) != task.head.push_configs {
            let reason = format!("it counts {} webhooks, and has {}", task.head.push_configs, configs.len());
            return Err(StoreError::Corrupt(reason).into());
        }
        Ok(configs)
    })
}

pub(super) fn canceled_runs(connection: &Connection) -> Result<Vec<TaskKey>, Failure> {
    // The index contains all requested columns, and only runs at work.
    let sql = "SELECT task_no FROM task INDEXED BY task_by_run WHERE running = 1 AND cancel_requested = 1";
    let mut select = connection.prepare_cached(sql)?;
    let keys = select.query_map([], |row| row.get(0).map(TaskKey))?;
    Ok(keys.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn next_delivery_at(
    connection: &Connection,
    quarantine: &Quarantined,
) -> Result<Option<Timestamp>, Failure> {
    // One more than the skipped rows.
    let sql = "SELECT due_at, push_no FROM push WHERE due_at IS NOT NULL ORDER BY due_at LIMIT ?1";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([signed(quarantine.webhooks() as u64 + 1)])?;
    while let Some(row) = rows.next()? {
        if !quarantine.has_webhook(row.get(1)?) {
            return Ok(Some(Timestamp::from_ms(row.get(0)?)));
        }
    }
    Ok(None)
}
