//! Reads pages of rows from a file. Rows that do not match their checksums end the move.

use rusqlite::{Connection, params};
use switchboard_core::model::AgentName;
use switchboard_engine::ports::audit::StoredEntry;
use switchboard_engine::ports::store::StoreError;

use super::super::audit::{read_chains, stored_entry};
use super::super::call_rows::calls_after;
use super::super::error::Failure;
use super::super::fold::{CHUNK_COLUMNS, ChunkRow};
use super::super::idempotency::{ACCEPTED_COLUMNS, accepted_columns, last_accepted_day};
use super::super::push_rows::{AFTER_PUSH, PUSH_COLUMNS, push_columns};
use super::super::rows::{
    ChainColumns, LOG_COLUMNS, LogRow, TASK_COLUMNS, VERSION_BITS, chains_of, log_no, mismatch, of_push_times,
    of_scope, task_columns, task_row,
};
use crate::moving_rows::{
    ChainRow, CommitRow, Cursor, KeyRow, PAGE_BYTES, PAGE_ROWS, PieceRow, Row, RunRow, ScopeRow, Stage, TaskRow,
    WebhookRow,
};
use crate::record::renumber;

const LIMIT: i64 = PAGE_ROWS as i64;

pub(super) fn page(connection: &Connection, stage: Stage, after: &Cursor) -> Result<Vec<Row>, Failure> {
    match stage {
        Stage::Scopes => scopes(connection, after),
        Stage::Tasks => tasks(connection, after),
        Stage::Commits => commits(connection, after),
        Stage::Webhooks => webhooks(connection, after),
        Stage::Keys => keys(connection, after),
        Stage::Calls => {
            let calls = calls_after(connection, after.no, LIMIT)?.into_iter();
            Ok(calls.map(|(call_no, call)| Row::Call { call_no, call: Box::new(call) }).collect())
        }
        Stage::Entries => entries(connection, after),
        Stage::Chains => {
            let chains = read_chains(connection, "ORDER BY chain_no")?.into_iter();
            let row =
                |ChainColumns { chain_no, id, anchor, last_no }| Row::Chain(ChainRow { chain_no, id, anchor, last_no });
            Ok(chains.filter(|chain| chain.chain_no > after.no).take(PAGE_ROWS).map(row).collect())
        }
    }
}

fn scopes(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT scope_no, tenant, principal, agent, checksum FROM scope WHERE scope_no > ?1 ORDER BY scope_no LIMIT ?2",
    )?;
    let mut rows = select.query([after.no, LIMIT])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let scope_no = row.get(0)?;
        let names: [String; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
        if row.get::<_, i64>(4)? != of_scope(scope_no, names.each_ref().map(String::as_str)) {
            return Err(mismatch(format_args!("owner number {scope_no}")));
        }
        page.push(Row::Scope(ScopeRow { scope_no, names }));
    }
    Ok(page)
}

fn tasks(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE task_no > ?1 ORDER BY task_no LIMIT ?2");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([after.no, LIMIT])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(1)?;
        let columns = task_columns(row).map_err(|failure| of_task(&id, failure))?;
        let run = match (columns.head.running != 0, columns.holder) {
            (false, _) => RunRow::None,
            (true, 0) => RunRow::Released { due_at: columns.run_at.unwrap_or(columns.updated_at) },
            (true, _) => RunRow::Held { begun: columns.run_at.is_none() },
        };
        page.push(Row::Task(Box::new(TaskRow {
            task_no: columns.task_no,
            scope_no: columns.scope_no,
            head: task_row(&columns, &AgentName::default()).map_err(|failure| of_task(&id, failure))?.head,
            chains: chains_of(&columns),
            floor_seq: columns.floor_seq,
            floor_version: columns.floor_version,
            run,
            created_at: columns.created_at,
            updated_at: columns.updated_at,
            closed_at: columns.closed_at,
            bytes: columns.bytes,
        })));
    }
    Ok(page)
}

fn of_task(id: &str, failure: Failure) -> Failure {
    match failure.damage() {
        Some(reason) => {
            Failure(StoreError::Damaged(format!("task {id} is damaged: {reason}; see switchboard db verify")))
        }
        None => failure,
    }
}

/// Commits with their chunks. Those of a task that is being removed stay behind.
fn commits(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let sql = format!(
        "SELECT {LOG_COLUMNS} FROM log WHERE log_no > ?1
            AND EXISTS (SELECT 1 FROM task WHERE task.task_no = log.log_no >> {VERSION_BITS})
          ORDER BY log_no LIMIT ?2"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([log_no(after.no, after.within), LIMIT])?;
    let mut page = Vec::new();
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let task_no = row.get::<_, i64>(0)? >> VERSION_BITS;
        let of_task = |failure| of_task(&format!("number {task_no}"), failure);
        let found = LogRow::read(row).map_err(of_task)?;
        let (mut wanted, mut count) = (Vec::new(), 0);
        let renumbered = renumber(found.record, &mut |range| {
            let first = count + 1;
            count += range.end - range.start;
            wanted.push(range);
            first
        })?;
        let mut pieces = Vec::new();
        for range in wanted {
            read_pieces(connection, range, &mut pieces).map_err(of_task)?;
        }
        let commit = CommitRow {
            task_no,
            version: found.version(),
            last_seq: found.columns.last_seq,
            visible: found.columns.visible,
            prev_story: found.columns.prev_story,
            prev_artifact: found.columns.prev_artifact,
            at: found.columns.at,
            has_key: found.columns.accept_expires.is_some(),
            record_bytes: found.record.len(),
            record: renumbered.unwrap_or_else(|| found.record.to_owned()),
            pieces,
        };
        bytes += commit.content_bytes();
        page.push(Row::Commit(commit));
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}

fn read_pieces(
    connection: &Connection,
    range: std::ops::Range<i64>,
    pieces: &mut Vec<PieceRow>,
) -> Result<(), Failure> {
    let sql = format!("SELECT {CHUNK_COLUMNS} FROM chunk WHERE chunk_no >= ?1 AND chunk_no < ?2 ORDER BY chunk_no");
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([range.start, range.end])?;
    let mut next = range.start;
    while let Some(row) = rows.next()? {
        let ChunkRow { columns, bytes } = ChunkRow::read(row)?;
        if columns.chunk_no != next {
            break;
        }
        next += 1;
        let artifact_id = columns.artifact_id.map(str::to_owned);
        pieces.push(PieceRow { part: columns.part, start: columns.start, artifact_id, bytes: bytes.to_vec() });
    }
    match next == range.end {
        true => Ok(()),
        false => Err(StoreError::Corrupt(format!("piece of content {next} is missing")).into()),
    }
}

fn webhooks(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let sql = format!(
        "SELECT {PUSH_COLUMNS}, due_at, claimed_until, times_checksum FROM push
          WHERE push_no > ?1 AND EXISTS (SELECT 1 FROM task WHERE task.task_no = push.task_no) ORDER BY push_no LIMIT ?2"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([after.no, LIMIT])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let columns = push_columns(row)?;
        let (due_at, claimed_until): (Option<i64>, Option<i64>) = (row.get(AFTER_PUSH)?, row.get(AFTER_PUSH + 1)?);
        if row.get::<_, i64>(AFTER_PUSH + 2)? != of_push_times(due_at, claimed_until) {
            return Err(mismatch(format_args!("when webhook {} is due", columns.config_id)));
        }
        page.push(Row::Webhook(Box::new(WebhookRow {
            push_no: columns.push_no,
            task_no: columns.task_no,
            config_id: columns.config_id,
            url: columns.url,
            token: columns.token,
            auth_scheme: columns.auth_scheme,
            auth_credentials: columns.auth_credentials,
            dialect: columns.dialect,
            delivered_seq: columns.delivered_seq,
            failures: columns.failures,
            parked: columns.parked != 0,
            last_error: columns.last_error,
            last_attempt_at: columns.last_attempt_at,
            created_at: columns.created_at,
            due_at,
        })));
    }
    Ok(page)
}

/// Keys of tasks that exist. Of several rows with one key, which expire on different days, the last counts.
fn keys(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let sql = format!(
        "SELECT {ACCEPTED_COLUMNS} FROM accepted WHERE (day, key) > (?1, ?2)
            AND EXISTS (SELECT 1 FROM task WHERE task.task_no = accepted.task_no) ORDER BY day, key LIMIT ?3"
    );
    let mut select = connection.prepare_cached(&sql)?;
    let mut later = connection.prepare_cached("SELECT 1 FROM accepted WHERE day = ?1 AND key = ?2")?;
    let last_day = last_accepted_day(connection)?;
    let (mut day, mut key) = (after.no, after.key_bytes());
    loop {
        let mut rows = select.query(params![day, key, LIMIT])?;
        let (mut page, mut is_end) = (Vec::new(), true);
        let mut last = None;
        while let Some(row) = rows.next()? {
            is_end = false;
            let columns = accepted_columns(row)?;
            last = Some((columns.day, columns.key.to_vec()));
            let mut is_replaced = false;
            for later_day in columns.day + 1..=last_day {
                is_replaced |= later.exists(params![later_day, columns.key])?;
            }
            if !is_replaced {
                page.push(Row::Key(KeyRow {
                    day: columns.day,
                    key: columns.key.to_vec(),
                    digest: columns.digest.to_vec(),
                    task_no: columns.task_no,
                    version: columns.version,
                    turn: columns.turn,
                    after_seq: columns.after_seq,
                    expires: columns.expires,
                }));
            }
        }
        drop(rows);
        match last {
            Some(last) if page.is_empty() && !is_end => (day, key) = last,
            _ => return Ok(page),
        }
    }
}

fn entries(connection: &Connection, after: &Cursor) -> Result<Vec<Row>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT entry_no, at, record, hash, chain_no FROM audit WHERE (chain_no, entry_no) > (?1, ?2)
          ORDER BY chain_no, entry_no LIMIT ?3",
    )?;
    let mut rows = select.query([after.no, after.within, LIMIT])?;
    let mut page = Vec::new();
    while let Some(row) = rows.next()? {
        let entry: StoredEntry = stored_entry(row)?;
        page.push(Row::Entry { chain_no: row.get(4)?, entry });
    }
    Ok(page)
}
