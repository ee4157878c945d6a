//! Writes pages of rows into a file, as its own writer would have written them.

use rusqlite::{Connection, OptionalExtension, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::StoredEntry;
use switchboard_engine::ports::calls::CallRow;
use switchboard_engine::ports::store::StoreError;

use super::super::audit::insert_chain;
use super::super::error::Failure;
use super::super::fold::{ChunkRow, commit_sql};
use super::super::idempotency::ACCEPTED_COLUMNS;
use super::super::push_rows::PUSH_COLUMNS;
use super::super::rows::{
    AcceptedColumns, ChainColumns, ChunkColumns, LOG_COLUMNS, LogColumns, LogRow, PushColumns, TASK_COLUMNS,
    TaskColumns, VERSION_BITS, VERSION_MAX, log_no, of_call, of_push_times, of_scope, task_columns,
};
use crate::checksum::ContentHash;
use crate::moving_rows::{CommitRow, KeyRow, Row, RunRow, ScopeRow, TaskRow, WebhookRow};
use crate::record::{HeadColumns, encode_artifacts, encode_call, renumber, signed};

/// The epoch that holds runs whose process is gone. It is the first of the file, and every server begins a later one.
const GONE_EPOCH: i64 = 1;

pub(super) fn page(connection: &Connection, rows: &[Row]) -> Result<(), Failure> {
    for row in rows {
        match row {
            Row::Scope(row) => scope(connection, row)?,
            Row::Task(row) => task(connection, row)?,
            Row::Commit(row) => commit(connection, row)?,
            Row::Webhook(row) => webhook(connection, row)?,
            Row::Key(row) => key(connection, row)?,
            Row::Call { call_no, call } => self::call(connection, *call_no, call)?,
            Row::Entry { chain_no, entry } => self::entry(connection, *chain_no, entry)?,
            Row::Chain(row) => {
                let columns = ChainColumns {
                    chain_no: row.chain_no,
                    id: row.id.clone(),
                    anchor: row.anchor,
                    last_no: row.last_no,
                };
                insert_chain(connection, &columns)?;
            }
        }
    }
    Ok(())
}

/// A statement that inserts these columns.
fn insert(table: &str, columns: &str) -> String {
    let columns = columns.replace(&format!("{table}."), "");
    let places = vec!["?"; columns.split(',').count()].join(", ");
    format!("INSERT INTO {table} ({columns}) VALUES ({places})")
}

fn scope(connection: &Connection, row: &ScopeRow) -> Result<(), Failure> {
    let ScopeRow { scope_no, names } = row;
    let [tenant, principal, agent] = names;
    let mut insert = connection.prepare_cached(&insert("scope", "scope_no, tenant, principal, agent, checksum"))?;
    insert.execute(params![
        scope_no,
        tenant,
        principal,
        agent,
        of_scope(*scope_no, names.each_ref().map(String::as_str))
    ])?;
    Ok(())
}

fn task(connection: &Connection, row: &TaskRow) -> Result<(), Failure> {
    let head = &row.head;
    // Numbers of tasks beyond this do not fit into the numbers of commits.
    let task_no_max = i64::MAX >> VERSION_BITS;
    if row.task_no > task_no_max || head.version > VERSION_MAX {
        let why = format!(
            "task {} does not fit into a file: it has {} commits and the number {}, and the most are {VERSION_MAX} and {task_no_max}",
            head.id, head.version, row.task_no
        );
        return Err(Failure(StoreError::Unavailable(why)));
    }
    let artifacts = encode_artifacts(&head.artifacts);
    // A run that is held and has not begun has a time at which it was due; which one does not matter.
    let (holder, lease_until, run_at) = match row.run {
        RunRow::None => (0, None, None),
        RunRow::Released { due_at } => (0, None, Some(due_at)),
        RunRow::Held { begun } => (GONE_EPOCH, Some(row.updated_at), (!begun).then_some(row.updated_at)),
    };
    let columns = TaskColumns {
        task_no: row.task_no,
        scope_no: row.scope_no,
        head: HeadColumns::of(head, &artifacts),
        story_version: row.chains.story,
        artifact_version: row.chains.artifact,
        status_version: row.chains.status,
        floor_seq: row.floor_seq,
        floor_version: row.floor_version,
        holder,
        lease_until,
        run_at,
        created_at: row.created_at,
        updated_at: row.updated_at,
        closed_at: row.closed_at,
        bytes: row.bytes,
    };
    insert_task(connection, &columns)
}

fn insert_task(connection: &Connection, columns: &TaskColumns<'_>) -> Result<(), Failure> {
    let mut insert = connection.prepare_cached(&insert("task", TASK_COLUMNS))?;
    let (c, head) = (columns, columns.head);
    insert.execute(params![
        c.task_no,
        head.id,
        c.scope_no,
        head.context_id,
        head.phase,
        head.state,
        head.status_at,
        head.version,
        head.seq,
        head.turns,
        head.turn,
        head.fence,
        head.attempt,
        head.cancel_requested,
        head.push_configs,
        head.deadline,
        head.artifacts,
        c.story_version,
        c.artifact_version,
        c.status_version,
        c.floor_seq,
        c.floor_version,
        head.running,
        c.holder,
        c.lease_until,
        c.run_at,
        c.created_at,
        c.updated_at,
        c.closed_at,
        c.bytes,
        c.checksum(),
    ])?;
    Ok(())
}

/// Writes a commit, whose chunks get the next numbers of the file. Its task counts the bytes of the record as it is here.
fn commit(connection: &Connection, row: &CommitRow) -> Result<(), Failure> {
    let last_chunk = "SELECT coalesce(max(chunk_no), 0) FROM chunk";
    let last_chunk: i64 = connection.prepare_cached(last_chunk)?.query_row([], |row| row.get(0))?;
    let renumbered = renumber(&row.record, &mut |range| last_chunk + range.start)?;
    let record = renumbered.as_ref().unwrap_or(&row.record);
    let columns = LogColumns {
        log_no: log_no(row.task_no, row.version),
        last_seq: row.last_seq,
        visible: row.visible,
        prev_story: row.prev_story,
        prev_artifact: row.prev_artifact,
        at: row.at,
        // The key itself comes later and says when it expires. If it does not come, it has expired long ago.
        accept_expires: row.has_key.then_some(0),
    };
    let checksum = columns.checksum(ContentHash::of(record.as_bytes()));
    let mut insert_log = connection.prepare_cached(&insert("log", LOG_COLUMNS))?;
    let LogColumns { log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires } = columns;
    let values = params![log_no, last_seq, visible, prev_story, prev_artifact, at, accept_expires, checksum, record];
    insert_log.execute(values)?;
    for (number, piece) in (last_chunk + 1..).zip(&row.pieces) {
        let columns = ChunkColumns {
            chunk_no: number,
            task_no: row.task_no,
            version: row.version,
            artifact_id: piece.artifact_id.as_deref(),
            part: piece.part,
            start: piece.start,
        };
        ChunkRow { columns, bytes: &piece.bytes }.insert(connection, ContentHash::of(&piece.bytes))?;
    }
    let longer = signed(record.len() as u64) - signed(row.record_bytes as u64);
    if longer != 0 {
        add_bytes(connection, row.task_no, longer)?;
    }
    Ok(())
}

fn add_bytes(connection: &Connection, task_no: i64, more: i64) -> Result<(), Failure> {
    let mut select = connection.prepare_cached(&format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no = ?1"))?;
    let mut rows = select.query([task_no])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let before = task_columns(row)?;
    let after = TaskColumns { bytes: before.bytes + more, ..before };
    let (bytes, checksum) = (after.bytes, after.checksum());
    drop(rows);
    let mut update = connection.prepare_cached("UPDATE task SET bytes = ?2, checksum = ?3 WHERE task_no = ?1")?;
    update.execute([task_no, bytes, checksum])?;
    Ok(())
}

fn webhook(connection: &Connection, row: &WebhookRow) -> Result<(), Failure> {
    let columns = PushColumns {
        push_no: row.push_no,
        task_no: row.task_no,
        config_id: row.config_id.clone(),
        url: row.url.clone(),
        token: row.token.clone(),
        auth_scheme: row.auth_scheme.clone(),
        auth_credentials: row.auth_credentials.clone(),
        dialect: row.dialect.clone(),
        delivered_seq: row.delivered_seq,
        failures: row.failures,
        parked: row.parked.into(),
        last_error: row.last_error.clone(),
        last_attempt_at: row.last_attempt_at,
        created_at: row.created_at,
    };
    let sql = insert("push", &format!("{PUSH_COLUMNS}, due_at, claimed_until, times_checksum"));
    connection.prepare_cached(&sql)?.execute(params![
        columns.push_no,
        columns.task_no,
        columns.config_id,
        columns.url,
        columns.token,
        columns.auth_scheme,
        columns.auth_credentials,
        columns.dialect,
        columns.delivered_seq,
        columns.failures,
        columns.parked,
        columns.last_error,
        columns.last_attempt_at,
        columns.created_at,
        columns.checksum(),
        row.due_at,
        None::<i64>,
        of_push_times(row.due_at, None),
    ])?;
    Ok(())
}

/// Writes a key, and when it expires into the commit that stored it.
fn key(connection: &Connection, row: &KeyRow) -> Result<(), Failure> {
    let KeyRow { day, key, digest, task_no, version, turn, after_seq, expires } = row;
    let columns = AcceptedColumns {
        day: *day,
        key,
        task_no: *task_no,
        digest,
        turn: *turn,
        after_seq: *after_seq,
        expires: *expires,
        version: *version,
    };
    let mut insert_key = connection.prepare_cached(&insert("accepted", ACCEPTED_COLUMNS))?;
    insert_key.execute(params![day, key, task_no, digest, turn, after_seq, expires, version, columns.checksum()])?;
    let log_no = log_no(*task_no, *version);
    let mut select = connection.prepare_cached(&commit_sql())?;
    let checksum = select
        .query_row([log_no], |row| {
            Ok(LogRow::read(row).map(|found| {
                let columns = LogColumns { accept_expires: Some(*expires), ..found.columns };
                columns.checksum(ContentHash::of(found.record.as_bytes()))
            }))
        })
        .optional()?
        .transpose()?;
    if let Some(checksum) = checksum {
        let mut update =
            connection.prepare_cached("UPDATE log SET accept_expires = ?2, checksum = ?3 WHERE log_no = ?1")?;
        update.execute([log_no, *expires, checksum])?;
    }
    Ok(())
}

fn call(connection: &Connection, call_no: i64, call: &CallRow) -> Result<(), Failure> {
    let (record, status, due_at) = (encode_call(call), call.status.word(), call.due_at.map(Timestamp::as_ms));
    let checksum = of_call(call_no, call.parent.0, &call.id, status, due_at, &record);
    let sql = insert("call", "call_no, id, task_no, status, due_at, record, checksum");
    let values = params![call_no, call.id, call.parent.0, status, due_at, record, checksum];
    connection.prepare_cached(&sql)?.execute(values)?;
    Ok(())
}

fn entry(connection: &Connection, chain_no: i64, entry: &StoredEntry) -> Result<(), Failure> {
    let sql = insert("audit", "chain_no, entry_no, at, record, hash");
    let values = params![chain_no, signed(entry.no), entry.at.as_ms(), entry.record, entry.hash.0];
    connection.prepare_cached(&sql)?.execute(values)?;
    Ok(())
}
