//! Reads pages of rows from a schema. Rows that do not match their checksums end the move.

use std::collections::BTreeMap;

use switchboard_core::model::{AgentName, Timestamp};
use switchboard_engine::ports::audit::{AuditHash, ChainPosition, StoredEntry};
use switchboard_engine::ports::storage::{COMMIT_BYTES, PIECE_BYTES};
use switchboard_engine::ports::store::StoreError;
use tokio_postgres::{Client, Row as Found};

use super::super::calls::{AFTER_NUMBER, CALL_NO, Found as FoundCall};
use super::super::deliveries::{push_columns, read_push};
use super::super::error::PostgresError;
use super::super::offline::failed;
use super::super::rows::{AFTER_TASK, LogRow, TaskRow as StoredTask, get, log_columns, of_chunk, task_columns};
use super::super::text;
use super::super::verify::is_accept_whole;
use crate::checked::told;
use crate::checksum::ContentHash;
use crate::moving_rows::{
    ChainRow, CommitRow, Cursor, KeyRow, PAGE_BYTES, PAGE_ROWS, PieceRow, Row, RunRow, ScopeRow, Stage, TaskRow,
    WebhookRow,
};
use crate::record::{renumber, unsigned};

const LIMIT: i64 = PAGE_ROWS as i64;
const MS_PER_DAY: i64 = 86_400_000;

pub(super) async fn page(
    client: &Client,
    stage: Stage,
    after: &Cursor,
    at: Timestamp,
) -> Result<Vec<Row>, PostgresError> {
    const SCOPES: &str =
        "select scope_no, tenant, principal, agent from scope where scope_no > $1 order by scope_no limit $2";
    const TASKS: &str = concat!(
        "select ",
        task_columns!(),
        ", t.hold <> 0, t.begun, t.claimable_at, t.created_at, t.updated_at, t.closed_at, t.bytes
           from task t where t.task_no > $1 order by t.task_no limit $2"
    );
    const WEBHOOKS: &str = concat!(
        "select ",
        push_columns!(),
        ", p.delivered_seq, p.failures, p.parked, p.last_error, p.last_attempt_at, p.created_at, p.due_at, p.claimed_until is not null
           from push p where p.push_no > $1 and exists (select 1 from task t where t.task_no = p.task_no)
          order by p.push_no limit $2"
    );
    const CHAINS: &str = "select chain_no, id, anchor_no, anchor_hash, last_no from audit_chain
                           where chain_no > $1 order by chain_no limit $2";
    let page = async |sql: &str| client.query(sql, &[&after.no, &LIMIT]).await.map_err(failed);
    let rows: Result<Vec<Row>, StoreError> = match stage {
        Stage::Scopes => page(SCOPES).await?.iter().map(scope).collect(),
        Stage::Tasks => page(TASKS).await?.iter().map(task).collect(),
        Stage::Commits => return commits(client, after).await,
        Stage::Webhooks => page(WEBHOOKS).await?.iter().map(|row| webhook(row, at)).collect(),
        Stage::Keys => return keys(client, after).await,
        Stage::Calls => {
            let found = client.query(AFTER_NUMBER, &[&None::<i64>, &after.no, &LIMIT]).await.map_err(failed)?;
            found.iter().map(|row| call(row, at)).collect()
        }
        Stage::Entries => {
            const ENTRIES: &str = "select chain_no, entry_no, at, record, hash from audit
                                    where (chain_no, entry_no) > ($1, $2) order by chain_no, entry_no limit $3";
            let chain_no = i32::try_from(after.no).unwrap_or(i32::MAX);
            let found = client.query(ENTRIES, &[&chain_no, &after.within, &LIMIT]).await.map_err(failed)?;
            found.iter().map(entry).collect()
        }
        Stage::Chains => {
            let chain_no = i32::try_from(after.no).unwrap_or(i32::MAX);
            let found = client.query(CHAINS, &[&chain_no, &LIMIT]).await.map_err(failed)?;
            found.iter().map(chain).collect()
        }
    };
    rows.map_err(|error| damaged(&error))
}

fn damaged(error: &StoreError) -> PostgresError {
    PostgresError(format!("{}; see switchboard db verify", told(error)))
}

fn scope(row: &Found) -> Result<Row, StoreError> {
    let name = |column| -> Result<String, StoreError> { Ok(text::read(get(row, column)?).into_owned()) };
    Ok(Row::Scope(ScopeRow { scope_no: get(row, 0)?, names: [name(1)?, name(2)?, name(3)?] }))
}

fn task(row: &Found) -> Result<Row, StoreError> {
    let of_task = |error: StoreError| {
        let id = get::<&str>(row, 1).unwrap_or_default();
        StoreError::Damaged(format!("task {} is damaged: {}", text::read(id), told(&error)))
    };
    let StoredTask { task_no, head, chains, floor_seq, floor_version } =
        StoredTask::read(row, &AgentName::default()).map_err(of_task)?;
    let (is_held, begun): (bool, bool) = (get(row, AFTER_TASK)?, get(row, AFTER_TASK + 1)?);
    let claimable_at: Option<i64> = get(row, AFTER_TASK + 2)?;
    let updated_at = get(row, AFTER_TASK + 4)?;
    let run = match (head.running, is_held) {
        (false, _) => RunRow::None,
        (true, false) => RunRow::Released { due_at: claimable_at.unwrap_or(updated_at) },
        (true, true) => RunRow::Held { begun },
    };
    Ok(Row::Task(Box::new(TaskRow {
        task_no,
        scope_no: get(row, 23)?,
        head,
        chains,
        floor_seq,
        floor_version,
        run,
        created_at: get(row, AFTER_TASK + 3)?,
        updated_at,
        closed_at: get(row, AFTER_TASK + 5)?,
        bytes: get(row, AFTER_TASK + 6)?,
    })))
}

/// Commits with their chunks. Those of a task that is being removed stay behind.
async fn commits(client: &Client, after: &Cursor) -> Result<Vec<Row>, PostgresError> {
    const COMMITS: &str = concat!(
        "select ",
        log_columns!(),
        ", l.weight
           from (select l.*, sum(octet_length(l.record)) over (order by l.task_no, l.version) as upto
                   from (select * from log l
                          where (l.task_no, l.version) > ($1, $2)
                            and exists (select 1 from task t where t.task_no = l.task_no)
                          order by l.task_no, l.version limit $3) l) l
          where l.upto - octet_length(l.record) < $4 order by l.task_no, l.version"
    );
    let bytes_max = i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX);
    let found = client.query(COMMITS, &[&after.no, &after.within, &LIMIT, &bytes_max]).await.map_err(failed)?;
    let mut page = Vec::with_capacity(found.len());
    let mut bytes = 0;
    for row in &found {
        let commit = commit(client, row).await?;
        bytes += commit.content_bytes();
        page.push(Row::Commit(commit));
        if bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(page)
}

async fn commit(client: &Client, row: &Found) -> Result<CommitRow, PostgresError> {
    let of_task = |error: StoreError| {
        let task_no = get::<i64>(row, 0).unwrap_or_default();
        damaged(&StoreError::Damaged(format!("task number {task_no}: {}", told(&error))))
    };
    let LogRow { columns, prev_artifact, record } = LogRow::read(row).map_err(of_task)?;
    let (mut wanted, mut count) = (Vec::new(), 0);
    let renumbered = renumber(&record, &mut |range| {
        let first = count + 1;
        count += range.end - range.start;
        wanted.extend(range);
        first
    });
    let renumbered = renumbered.map_err(of_task)?;
    let mut pieces = Vec::with_capacity(wanted.len());
    if !wanted.is_empty() {
        let mut found = read_pieces(client, columns.task_no, columns.version).await?;
        for number in wanted {
            let missing = || StoreError::Corrupt(format!("piece {number} of commit {} is missing", columns.version));
            pieces.push(found.remove(&number).ok_or_else(missing).map_err(of_task)?);
        }
    }
    let chunk_bytes: usize = pieces.iter().map(|piece: &PieceRow| piece.bytes.len()).sum();
    let without_key = (record.len() + chunk_bytes) as u64 + PIECE_BYTES * pieces.len() as u64 + COMMIT_BYTES;
    let weight: i64 = get(row, 10).map_err(of_task)?;
    Ok(CommitRow {
        task_no: columns.task_no,
        version: columns.version,
        last_seq: columns.last_seq,
        visible: columns.visible,
        prev_story: get(row, 6).map_err(of_task)?,
        prev_artifact,
        at: columns.at,
        has_key: unsigned(weight) > without_key,
        record_bytes: record.len(),
        record: renumbered.unwrap_or(record),
        pieces,
    })
}

async fn read_pieces(client: &Client, task_no: i64, version: i64) -> Result<BTreeMap<i64, PieceRow>, PostgresError> {
    const CHUNKS: &str = "select chunk_no, part, start, artifact_id, bytes, checksum from chunk
                           where task_no = $1 and version = $2 order by chunk_no";
    let mut pieces = BTreeMap::new();
    for row in &client.query(CHUNKS, &[&task_no, &version]).await.map_err(failed)? {
        let read = || -> Result<(i64, PieceRow), StoreError> {
            let number: i32 = get(row, 0)?;
            let bytes: Vec<u8> = get(row, 4)?;
            if get::<i64>(row, 5)? != of_chunk(task_no, version, number.into(), ContentHash::of(&bytes)) {
                let what =
                    format!("task number {task_no}: piece {number} of commit {version} does not match its checksum");
                return Err(StoreError::Corrupt(what));
            }
            let artifact_id = get::<Option<&str>>(row, 3)?.map(|id| text::read(id).into_owned());
            Ok((number.into(), PieceRow { part: get(row, 1)?, start: get(row, 2)?, artifact_id, bytes }))
        };
        let (number, piece) = read().map_err(|error| damaged(&error))?;
        pieces.insert(number, piece);
    }
    Ok(pieces)
}

fn webhook(row: &Found, at: Timestamp) -> Result<Row, StoreError> {
    const AFTER_PUSH: usize = 9;
    let (key, columns) = read_push(row)?;
    let plain = |text: &str| text::read(text).into_owned();
    let is_claimed: bool = get(row, AFTER_PUSH + 7)?;
    let due_at: Option<i64> = get(row, AFTER_PUSH + 6)?;
    Ok(Row::Webhook(Box::new(WebhookRow {
        push_no: key.0,
        task_no: columns.task_no,
        config_id: plain(&columns.config_id),
        url: plain(&columns.url),
        token: columns.token,
        auth_scheme: columns.auth_scheme.as_deref().map(plain),
        auth_credentials: columns.auth_credentials,
        dialect: columns.dialect,
        delivered_seq: get(row, AFTER_PUSH)?,
        failures: get(row, AFTER_PUSH + 1)?,
        parked: get(row, AFTER_PUSH + 2)?,
        last_error: get::<Option<&str>>(row, AFTER_PUSH + 3)?.map(plain),
        last_attempt_at: get(row, AFTER_PUSH + 4)?,
        created_at: get(row, AFTER_PUSH + 5)?,
        due_at: due_at.map(|due_at| if is_claimed { at.as_ms() } else { due_at }),
    })))
}

/// Keys of tasks that exist, by the day on which they expire, as a file has them.
async fn keys(client: &Client, after: &Cursor) -> Result<Vec<Row>, PostgresError> {
    const KEYS: &str =
        "select a.key, a.digest, a.task_no, a.turn, a.after_seq, a.expires, a.checksum, a.version from accepted a
                         where a.expires >= $1 and a.expires < $2 and a.key > $3
                           and exists (select 1 from task t where t.task_no = a.task_no)
                         order by a.key limit $4";
    const NEXT: &str = "select min(expires) from accepted where expires >= $1";
    let (mut day, mut key) = (after.no, after.key_bytes());
    loop {
        let (from, until) = (day.saturating_mul(MS_PER_DAY), day.saturating_add(1).saturating_mul(MS_PER_DAY));
        let found = client.query(KEYS, &[&from, &until, &key, &LIMIT]).await.map_err(failed)?;
        if !found.is_empty() {
            let rows: Result<Vec<Row>, StoreError> = found.iter().map(|row| self::key(row, day)).collect();
            return rows.map_err(|error| damaged(&error));
        }
        let next = client.query_one(NEXT, &[&until]).await.map_err(failed)?;
        let Some(next) = next.try_get::<_, Option<i64>>(0).map_err(failed)? else { return Ok(Vec::new()) };
        (day, key) = (next.div_euclid(MS_PER_DAY), Vec::new());
    }
}

fn key(row: &Found, day: i64) -> Result<Row, StoreError> {
    let task_no = get(row, 2)?;
    if !is_accept_whole(row)? {
        let what = format!("an idempotency key of task number {task_no} does not match its checksum");
        return Err(StoreError::Damaged(what));
    }
    Ok(Row::Key(KeyRow {
        day,
        key: get(row, 0)?,
        digest: get(row, 1)?,
        task_no,
        turn: get(row, 3)?,
        after_seq: get(row, 4)?,
        expires: get(row, 5)?,
        version: get(row, 7)?,
    }))
}

fn call(row: &Found, at: Timestamp) -> Result<Row, StoreError> {
    let mut call = FoundCall::read(row)?.into_call();
    call.void_claim(at);
    Ok(Row::Call { call_no: get(row, CALL_NO)?, call: Box::new(call) })
}

fn entry(row: &Found) -> Result<Row, StoreError> {
    let entry = StoredEntry {
        no: unsigned(get(row, 1)?),
        at: Timestamp::from_ms(get(row, 2)?),
        record: get(row, 3)?,
        hash: hash(get(row, 4)?)?,
    };
    Ok(Row::Entry { chain_no: get::<i32>(row, 0)?.into(), entry })
}

fn chain(row: &Found) -> Result<Row, StoreError> {
    let anchor = ChainPosition { no: unsigned(get(row, 2)?), hash: hash(get(row, 3)?)? };
    let chain_no = get::<i32>(row, 0)?.into();
    Ok(Row::Chain(ChainRow { chain_no, id: get(row, 1)?, anchor, last_no: unsigned(get(row, 4)?) }))
}

fn hash(bytes: &[u8]) -> Result<AuditHash, StoreError> {
    let wrong = |_| StoreError::Corrupt("a hash of the audit log has the wrong length".to_owned());
    bytes.try_into().map(AuditHash).map_err(wrong)
}
