//! Writes pages of rows into a schema with `COPY`, as commits of its own processes would have left them.

use std::collections::HashMap;
use std::pin::pin;

use bytes::Bytes;
use switchboard_core::lifecycle::Phase;
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::storage::{COMMIT_BYTES, KEY_BYTES, PIECE_BYTES};
use switchboard_engine::ports::store::Accept;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use super::super::error::PostgresError;
use super::super::offline::failed;
use super::super::rows::{LogColumns, PushColumns, of_accept, of_call, of_chunk, of_head, of_origin};
use super::super::text::stored;
use crate::checksum::ContentHash;
use crate::moving_rows::{ChainRow, CommitRow, KeyRow, Row, RunRow, ScopeRow, Stage, TaskRow, WebhookRow};
use crate::moving_state::MoveState;
use crate::record::{encode_artifacts, encode_call, phase_number, signed, state_number, unsigned};

/// A column of a row that is copied.
type Value = Box<dyn ToSql + Sync + Send>;

fn value<T: ToSql + Sync + Send + 'static>(value: T) -> Value {
    Box::new(value)
}

/// Notes how far the move has come.
pub(super) async fn state(client: &Client, state: &MoveState) -> Result<(), PostgresError> {
    let text = serde_json::to_string(state).map_err(|error| PostgresError(error.to_string()))?;
    client.batch_execute("delete from db_move").await.map_err(failed)?;
    client.execute("insert into db_move (state) values ($1)", &[&text]).await.map_err(failed)?;
    Ok(())
}

pub(super) async fn page(client: &Client, stage: Stage, rows: &[Row]) -> Result<(), PostgresError> {
    match stage {
        Stage::Scopes => scopes(client, rows).await,
        Stage::Tasks => tasks(client, rows).await,
        Stage::Commits => commits(client, rows).await,
        Stage::Webhooks => webhooks(client, rows).await,
        Stage::Keys => keys(client, rows).await,
        Stage::Calls => calls(client, rows).await,
        Stage::Entries => entries(client, rows).await,
        Stage::Chains => chains(client, rows).await,
    }
}

/// A table and the columns that are copied into it.
struct Copied {
    table: &'static str,
    columns: &'static [(&'static str, Type)],
}

impl Copied {
    async fn rows(&self, client: &Client, rows: impl Iterator<Item = Vec<Value>>) -> Result<(), PostgresError> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        let types: Vec<Type> = self.columns.iter().map(|(_, kind)| kind.clone()).collect();
        let sql = format!("copy {} ({}) from stdin (format binary)", self.table, names.join(", "));
        let sink = client.copy_in::<_, Bytes>(&sql).await.map_err(failed)?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in rows {
            let values: Vec<&(dyn ToSql + Sync)> = row.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
            writer.as_mut().write(&values).await.map_err(failed)?;
        }
        writer.finish().await.map_err(failed)?;
        Ok(())
    }
}

async fn scopes(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    const AGENTS: &str =
        "insert into agent (name) select distinct a from unnest($1::text[]) as a on conflict (name) do nothing";
    const OWNERS: &str =
        "insert into owner (tenant, principal) select distinct t, p from unnest($1::text[], $2::text[]) as o(t, p)
                          on conflict (tenant, principal) do nothing";
    const SCOPES: &str = "insert into scope (scope_no, tenant, principal, agent, agent_no, owner_no) overriding system value
                          select s.no, s.tenant, s.principal, s.agent, agent.agent_no, owner.owner_no
                            from unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) as s(no, tenant, principal, agent)
                            join agent on agent.name = s.agent
                            join owner on owner.tenant = s.tenant and owner.principal = s.principal";
    let (mut numbers, mut names) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
    for row in rows {
        let Row::Scope(ScopeRow { scope_no, names: of_scope }) = row else { continue };
        numbers.push(*scope_no);
        for (list, name) in names.iter_mut().zip(of_scope) {
            list.push(stored(name).into_owned());
        }
    }
    let [tenants, principals, agents] = &names;
    client.execute(AGENTS, &[agents]).await.map_err(failed)?;
    client.execute(OWNERS, &[tenants, principals]).await.map_err(failed)?;
    client.execute(SCOPES, &[&numbers, tenants, principals, agents]).await.map_err(failed)?;
    Ok(())
}

const TASKS: Copied = Copied {
    table: "task",
    columns: &[
        ("task_no", Type::INT8),
        ("scope_no", Type::INT8),
        ("created_at", Type::INT8),
        ("status_at", Type::INT8),
        ("version", Type::INT8),
        ("seq", Type::INT8),
        ("turns", Type::INT8),
        ("turn", Type::INT8),
        ("fence", Type::INT8),
        ("attempt", Type::INT8),
        ("push_configs", Type::INT8),
        ("deadline", Type::INT8),
        ("story_version", Type::INT8),
        ("artifact_version", Type::INT8),
        ("status_version", Type::INT8),
        ("floor_seq", Type::INT8),
        ("floor_version", Type::INT8),
        ("claimable_at", Type::INT8),
        ("updated_at", Type::INT8),
        ("closed_at", Type::INT8),
        ("bytes", Type::INT8),
        ("checksum", Type::INT8),
        ("origin_checksum", Type::INT8),
        ("agent_no", Type::INT4),
        ("phase", Type::INT2),
        ("state", Type::INT2),
        ("hold", Type::INT2),
        ("prune_stage", Type::INT2),
        ("running", Type::BOOL),
        ("begun", Type::BOOL),
        ("cancel_requested", Type::BOOL),
        ("id", Type::TEXT),
        ("context_id", Type::TEXT),
        ("artifacts", Type::TEXT),
    ],
};

async fn tasks(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    const AGENTS: &str = "select scope_no, agent_no from scope where scope_no = any ($1)";
    let tasks = || rows.iter().filter_map(|row| if let Row::Task(task) = row { Some(&**task) } else { None });
    let scopes: Vec<i64> = tasks().map(|task| task.scope_no).collect();
    let mut agents: HashMap<i64, i32> = HashMap::new();
    for row in &client.query(AGENTS, &[&scopes]).await.map_err(failed)? {
        agents.insert(row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    }
    if let Some(task) = tasks().find(|task| !agents.contains_key(&task.scope_no)) {
        return Err(PostgresError(format!("task {} has no owner; see switchboard db verify", task.head.id)));
    }
    let agent_no = |scope_no: i64| agents.get(&scope_no).copied().unwrap_or_default();
    TASKS.rows(client, tasks().map(|task| task_values(task, agent_no(task.scope_no)))).await
}

fn task_values(task: &TaskRow, agent_no: i32) -> Vec<Value> {
    let head = &task.head;
    let small = |number: i64| i16::try_from(number).unwrap_or_default();
    // 0 released, 2 its holder is known to be gone, so that it can be claimed at once.
    let (claimable_at, hold, begun) = match task.run {
        RunRow::None => (None, 0_i16, false),
        RunRow::Released { due_at } => (Some(due_at), 0, false),
        RunRow::Held { begun } => (Some(i64::MIN), 2, begun),
    };
    let is_compacted = task.closed_at.is_some() && unsigned(task.floor_version) >= head.version;
    let prune_stage = match head.phase {
        Phase::Live => i16::from(is_compacted),
        _ => 2,
    };
    let artifacts = encode_artifacts(&head.artifacts);
    vec![
        value(task.task_no),
        value(task.scope_no),
        value(task.created_at),
        value(head.status_at.as_ms()),
        value(signed(head.version)),
        value(signed(head.seq)),
        value(i64::from(head.turns)),
        value(i64::from(head.turn)),
        value(signed(head.fence)),
        value(i64::from(head.attempt)),
        value(i64::from(head.push_configs)),
        value(head.deadline.map(Timestamp::as_ms)),
        value(task.chains.story),
        value(task.chains.artifact),
        value(task.chains.status),
        value(task.floor_seq),
        value(task.floor_version),
        value(claimable_at),
        value(task.updated_at),
        value(task.closed_at),
        value(task.bytes),
        value(of_head(task.task_no, head, &artifacts)),
        value(of_origin(task.task_no, head.id.as_str(), task.scope_no)),
        value(agent_no),
        value(small(phase_number(head.phase))),
        value(small(state_number(head.state))),
        value(hold),
        value(prune_stage),
        value(head.running),
        value(begun),
        value(head.cancel_requested),
        value(stored(head.id.as_str()).into_owned()),
        value(stored(head.context_id.as_str()).into_owned()),
        value(stored(&artifacts).into_owned()),
    ]
}

const COMMITS: Copied = Copied {
    table: "log",
    columns: &[
        ("task_no", Type::INT8),
        ("version", Type::INT8),
        ("last_seq", Type::INT8),
        ("prev_story", Type::INT8),
        ("prev_artifact", Type::INT8),
        ("at", Type::INT8),
        ("nonce", Type::INT8),
        ("weight", Type::INT8),
        ("checksum", Type::INT8),
        ("visible", Type::INT4),
        ("record", Type::TEXT),
    ],
};

const CHUNKS: Copied = Copied {
    table: "chunk",
    columns: &[
        ("task_no", Type::INT8),
        ("version", Type::INT8),
        ("chunk_no", Type::INT4),
        ("part", Type::INT8),
        ("start", Type::INT8),
        ("checksum", Type::INT8),
        ("artifact_id", Type::TEXT),
        ("bytes", Type::BYTEA),
    ],
};

/// Writes commits and their chunks. Their tasks count the bytes of the records as they are here.
async fn commits(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    const LONGER: &str = "update task set bytes = bytes + $2 where task_no = $1";
    let commits = || rows.iter().filter_map(|row| if let Row::Commit(commit) = row { Some(commit) } else { None });
    COMMITS.rows(client, commits().map(commit_values)).await?;
    if commits().any(|commit| !commit.pieces.is_empty()) {
        CHUNKS.rows(client, commits().flat_map(chunk_values)).await?;
    }
    for commit in commits().filter(|commit| commit.record.len() != commit.record_bytes) {
        let longer = signed(commit.record.len() as u64) - signed(commit.record_bytes as u64);
        client.execute(LONGER, &[&commit.task_no, &longer]).await.map_err(failed)?;
    }
    Ok(())
}

fn commit_values(commit: &CommitRow) -> Vec<Value> {
    let CommitRow { task_no, version, last_seq, visible, prev_story, prev_artifact, at, has_key, record, .. } = commit;
    // No process has lost the answer to this commit, so it needs no number to be found by.
    let nonce = 0;
    let (task_no, version, last_seq, at) = (*task_no, *version, *last_seq, *at);
    let columns = LogColumns { task_no, version, last_seq, visible: *visible, at, nonce };
    let around = COMMIT_BYTES + PIECE_BYTES * commit.pieces.len() as u64 + if *has_key { KEY_BYTES } else { 0 };
    vec![
        value(task_no),
        value(version),
        value(last_seq),
        value(*prev_story),
        value(*prev_artifact),
        value(at),
        value(nonce),
        value(signed(commit.content_bytes() as u64 + around)),
        value(columns.checksum(ContentHash::of(record.as_bytes()))),
        value(i32::try_from(*visible).unwrap_or(i32::MAX)),
        value(record.clone()),
    ]
}

fn chunk_values(commit: &CommitRow) -> impl Iterator<Item = Vec<Value>> {
    let (task_no, version) = (commit.task_no, commit.version);
    (1_i32..).zip(&commit.pieces).map(move |(number, piece)| {
        vec![
            value(task_no),
            value(version),
            value(number),
            value(piece.part),
            value(piece.start),
            value(of_chunk(task_no, version, number.into(), ContentHash::of(&piece.bytes))),
            value(piece.artifact_id.as_deref().map(|id| stored(id).into_owned())),
            value(piece.bytes.clone()),
        ]
    })
}

const WEBHOOKS: Copied = Copied {
    table: "push",
    columns: &[
        ("push_no", Type::INT8),
        ("task_no", Type::INT8),
        ("delivered_seq", Type::INT8),
        ("failures", Type::INT8),
        ("due_at", Type::INT8),
        ("last_attempt_at", Type::INT8),
        ("created_at", Type::INT8),
        ("checksum", Type::INT8),
        ("parked", Type::BOOL),
        ("config_id", Type::TEXT),
        ("url", Type::TEXT),
        ("token", Type::TEXT),
        ("auth_scheme", Type::TEXT),
        ("auth_credentials", Type::TEXT),
        ("dialect", Type::TEXT),
        ("last_error", Type::TEXT),
    ],
};

async fn webhooks(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    let webhooks = rows.iter().filter_map(|row| if let Row::Webhook(webhook) = row { Some(&**webhook) } else { None });
    WEBHOOKS.rows(client, webhooks.map(webhook_values)).await
}

fn webhook_values(webhook: &WebhookRow) -> Vec<Value> {
    let columns = PushColumns {
        task_no: webhook.task_no,
        config_id: stored(&webhook.config_id).into_owned(),
        url: stored(&webhook.url).into_owned(),
        token: webhook.token.clone(),
        auth_scheme: webhook.auth_scheme.as_deref().map(|scheme| stored(scheme).into_owned()),
        auth_credentials: webhook.auth_credentials.clone(),
        dialect: webhook.dialect.clone(),
    };
    let checksum = columns.checksum();
    vec![
        value(webhook.push_no),
        value(webhook.task_no),
        value(webhook.delivered_seq),
        value(webhook.failures),
        value(webhook.due_at),
        value(webhook.last_attempt_at),
        value(webhook.created_at),
        value(checksum),
        value(webhook.parked),
        value(columns.config_id),
        value(columns.url),
        value(columns.token),
        value(columns.auth_scheme),
        value(columns.auth_credentials),
        value(columns.dialect),
        value(webhook.last_error.as_deref().map(|error| stored(error).into_owned())),
    ]
}

const KEYS: Copied = Copied {
    table: "accepted",
    columns: &[
        ("key", Type::BYTEA),
        ("digest", Type::BYTEA),
        ("task_no", Type::INT8),
        ("version", Type::INT8),
        ("turn", Type::INT8),
        ("after_seq", Type::INT8),
        ("expires", Type::INT8),
        ("checksum", Type::INT8),
    ],
};

async fn keys(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    let wrong = |row: &Row| PostgresError(format!("{} cannot be read", row.place()));
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        let Row::Key(KeyRow { key, digest, task_no, version, turn, after_seq, expires, .. }) = row else { continue };
        let accept = Accept {
            key: key[..].try_into().map_err(|_| wrong(row))?,
            digest: digest[..].try_into().map_err(|_| wrong(row))?,
            turn: u32::try_from(*turn).map_err(|_| wrong(row))?,
            after_seq: unsigned(*after_seq),
            expires: Timestamp::from_ms(*expires),
        };
        values.push(vec![
            value(key.clone()),
            value(digest.clone()),
            value(*task_no),
            value(*version),
            value(*turn),
            value(*after_seq),
            value(*expires),
            value(of_accept(*task_no, &accept)),
        ]);
    }
    KEYS.rows(client, values.into_iter()).await
}

const CALLS: Copied = Copied {
    table: "call",
    columns: &[
        ("call_no", Type::INT8),
        ("task_no", Type::INT8),
        ("due_at", Type::INT8),
        ("checksum", Type::INT8),
        ("id", Type::TEXT),
        ("status", Type::TEXT),
        ("record", Type::TEXT),
    ],
};

async fn calls(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    let values = rows.iter().filter_map(|row| {
        let Row::Call { call_no, call } = row else { return None };
        let (record, status) = (stored(&encode_call(call)).into_owned(), call.status.word());
        Some(vec![
            value(*call_no),
            value(call.parent.0),
            value(call.due_at.map(Timestamp::as_ms)),
            value(of_call(call.parent.0, &call.id, status, &record)),
            value(stored(&call.id).into_owned()),
            value(status),
            value(record),
        ])
    });
    CALLS.rows(client, values).await
}

const ENTRIES: Copied = Copied {
    table: "audit",
    columns: &[
        ("chain_no", Type::INT4),
        ("entry_no", Type::INT8),
        ("at", Type::INT8),
        ("record", Type::TEXT),
        ("hash", Type::BYTEA),
    ],
};

async fn entries(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    let values = rows.iter().filter_map(|row| {
        let Row::Entry { chain_no, entry } = row else { return None };
        Some(vec![
            value(i32::try_from(*chain_no).unwrap_or(i32::MAX)),
            value(signed(entry.no)),
            value(entry.at.as_ms()),
            value(entry.record.clone()),
            value(entry.hash.0.to_vec()),
        ])
    });
    ENTRIES.rows(client, values).await
}

/// The entries are there already, and the last of them has the hash that the next one follows.
async fn chains(client: &Client, rows: &[Row]) -> Result<(), PostgresError> {
    const CHAIN: &str =
        "insert into audit_chain (chain_no, id, anchor_no, anchor_hash, last_no, last_hash) overriding system value
                         values ($1, $2, $3, $4, $5,
                                 coalesce((select hash from audit where chain_no = $1 and entry_no = $5), $4))";
    for row in rows {
        let Row::Chain(ChainRow { chain_no, id, anchor, last_no }) = row else { continue };
        let chain_no = i32::try_from(*chain_no).unwrap_or(i32::MAX);
        let (anchor_no, anchor_hash, last_no) = (signed(anchor.no), &anchor.hash.0[..], signed(*last_no));
        client.execute(CHAIN, &[&chain_no, id, &anchor_no, &anchor_hash, &last_no]).await.map_err(failed)?;
    }
    Ok(())
}
