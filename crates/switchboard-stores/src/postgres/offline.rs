//! What commands do to a database that no server uses: they find out whether one does, and add to the audit log.

use std::time::Duration;

use switchboard_engine::ports::audit::{AuditEntry, AuditHash, ChainPosition};
use tokio_postgres::Client;

use super::error::{Failure, PostgresError};
use super::text;
use crate::record::{signed, unsigned};

/// How often, and after which pause, it is asked whether a server has ended.
const GONE_TRIES: u32 = 20;
const GONE_PAUSE: Duration = Duration::from_millis(100);

/// The chain of the audit log that commands write to. Servers have chains of their own.
const COMMANDS_CHAIN: &str = "switchboard db";

pub(super) fn failed(error: tokio_postgres::Error) -> PostgresError {
    PostgresError::from(Failure::from(error))
}

/// Refuses a database that servers use. Each server holds a lock by its name, which is in the table of replicas.
pub(super) async fn refuse_if_running(client: &Client, schema: &str) -> Result<(), PostgresError> {
    const RUNNING: &str = "
        select string_agg(name, ', ') from replica
         where not pg_try_advisory_xact_lock(hashtextextended('switchboard replica ' || $1 || ' ' || name, 0))";
    let mut in_use = String::new();
    for _ in 0..GONE_TRIES {
        let row = client.query_one(RUNNING, &[&schema]).await.map_err(failed)?;
        let Some(running) = row.try_get::<_, Option<String>>(0).map_err(failed)? else { return Ok(()) };
        in_use = running;
        // PostgreSQL may not have noticed yet that a server has just ended.
        tokio::time::sleep(GONE_PAUSE).await;
    }
    Err(PostgresError(format!("servers use the database ({}); stop them first", text::read(&in_use))))
}

/// Adds an entry to the chain of commands.
pub(super) async fn append_audit(client: &Client, entry: &AuditEntry) -> Result<(), PostgresError> {
    const MAKE: &str = "insert into audit_chain (id, anchor_no, anchor_hash, last_no, last_hash)
                        values ($1, 0, $2, 0, $2) on conflict (id) do nothing";
    const FIND: &str = "select chain_no, last_no, last_hash from audit_chain where id = $1 for update";
    const INSERT: &str = "insert into audit (chain_no, entry_no, at, record, hash) values ($1, $2, $3, $4, $5)";
    const MOVE: &str = "update audit_chain set last_no = $2, last_hash = $3 where chain_no = $1";
    client.batch_execute("begin").await.map_err(failed)?;
    client.execute(MAKE, &[&COMMANDS_CHAIN, &&AuditHash::BEGIN.0[..]]).await.map_err(failed)?;
    let row = client.query_one(FIND, &[&COMMANDS_CHAIN]).await.map_err(failed)?;
    let (chain_no, no): (i32, i64) = (row.try_get(0).map_err(failed)?, row.try_get(1).map_err(failed)?);
    let hash: &[u8] = row.try_get(2).map_err(failed)?;
    let wrong = |_| PostgresError("a hash of the audit log has the wrong length".to_owned());
    let before = ChainPosition { no: unsigned(no), hash: AuditHash(hash.try_into().map_err(wrong)?) };
    let record = entry.record(COMMANDS_CHAIN, before.no + 1);
    let after = before.after(&record);
    let (no, hash) = (signed(after.no), &after.hash.0[..]);
    client.execute(INSERT, &[&chain_no, &no, &entry.at.as_ms(), &record, &hash]).await.map_err(failed)?;
    client.execute(MOVE, &[&chain_no, &no, &hash]).await.map_err(failed)?;
    client.batch_execute("commit").await.map_err(failed)
}
