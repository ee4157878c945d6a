//! Checks a database, with its servers running or not, as it was at one moment: every row against its checksum, every task against its
//! log, the messages accepted, and the chains of the audit log. It reads one commit at a time. Also what removes a schema.

use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::{AuditHash, ChainPosition, StoredEntry};
use switchboard_engine::ports::storage::{COMMIT_BYTES, KEY_BYTES, PIECE_BYTES, TASK_BYTES, WEBHOOK_BYTES};
use switchboard_engine::ports::store::{Accept, StoreError};
use tokio::runtime::Handle;
use tokio_postgres::{Client, Row};

use super::calls::{AFTER as CALLS_AFTER, Found};
use super::deliveries::{push_columns, read_push};
use super::error::PostgresError;
use super::migrate;
use super::offline::{failed, refuse_if_running};
use super::options::PostgresOptions;
use super::rows::{AFTER_TASK, LogRow, TaskRow, get, log_columns, of_accept, of_chunk, read_scope, task_columns};
use super::text;
use super::thread::{alone, connector, single_client};
use crate::checked::{AuditChain, Checked, Fault, told};
use crate::checksum::ContentHash;
use crate::record::{ChunkSource, Contents, ParsedCommit, Want, signed, unsigned};

/// How many rows are read at once.
const ROWS_PAGE: i64 = 256;

/// Checks a database and reports each fault as it is found.
///
/// # Errors
/// When it cannot be reached, or its schema is not that of this build. Damage is reported as a fault, not as an error.
pub fn verify(options: &PostgresOptions, tell: &mut dyn FnMut(Fault)) -> Result<Checked, PostgresError> {
    alone(verify_at_once(options, tell))
}

/// As [`verify`], on the runtime of the caller.
pub(super) async fn verify_at_once(
    options: &PostgresOptions,
    tell: &mut dyn FnMut(Fault),
) -> Result<Checked, PostgresError> {
    let client = at_one_moment(options).await?;
    let mut inspection = Inspection { client: &client, checked: Checked::default(), tell };
    inspection.tasks().await?;
    inspection.strays().await?;
    inspection.webhooks().await?;
    inspection.accepted().await?;
    inspection.calls().await?;
    for chain in chains(&client, &mut |_, _| inspection.checked.audit_entries += 1).await? {
        if let Some(why) = chain.broken {
            inspection.fault(None, format!("the audit log is broken: {why} (chain {})", chain.id));
        }
    }
    Ok(inspection.checked)
}

/// Checks every chain of the audit log, one for each server, and shows each entry that follows the one before it, with that one's position.
///
/// # Errors
/// When the database cannot be reached, or its schema is not that of this build.
pub fn read_audit(
    options: &PostgresOptions,
    show: &mut dyn FnMut(&ChainPosition, &StoredEntry),
) -> Result<Vec<AuditChain>, PostgresError> {
    alone(async {
        let client = at_one_moment(options).await?;
        chains(&client, show).await
    })
}

/// Removes the schema with everything in it; false if there is none. Servers must not run.
///
/// # Errors
/// When the database cannot be reached or changed, or a server has it open.
pub fn remove(options: &PostgresOptions) -> Result<bool, PostgresError> {
    alone(async {
        let client = single_client(&connector(options, Handle::current())?).await?;
        let status = migrate::status(&client, &options.schema).await?;
        if status.found == 0 {
            return Ok(false);
        }
        refuse_if_running(&client, &options.schema).await?;
        let sql = format!("drop schema \"{}\" cascade", options.schema);
        client.batch_execute(&sql).await.map(|()| true).map_err(failed)
    })
}

/// A connection in a transaction that sees one state of the database.
async fn at_one_moment(options: &PostgresOptions) -> Result<Client, PostgresError> {
    let client = single_client(&connector(options, Handle::current())?).await?;
    let status = migrate::status(&client, &options.schema).await?;
    if !status.is_usable() {
        return Err(PostgresError(status.to_string()));
    }
    client.batch_execute("begin isolation level repeatable read read only").await.map_err(failed)?;
    Ok(client)
}

fn unreadable(error: StoreError) -> PostgresError {
    PostgresError(told(&error))
}

struct Inspection<'a> {
    client: &'a Client,
    checked: Checked,
    tell: &'a mut dyn FnMut(Fault),
}

impl Inspection<'_> {
    fn fault(&mut self, task: Option<&str>, what: impl Into<String>) {
        self.checked.faults += 1;
        (self.tell)(Fault { task: task.map(str::to_owned), what: what.into() });
    }

    async fn tasks(&mut self) -> Result<(), PostgresError> {
        const TASKS: &str = concat!(
            "select ",
            task_columns!(),
            ", s.tenant, s.principal, s.agent, t.bytes from task t join scope s using (scope_no)
              where t.task_no > $1::bigint order by t.task_no limit $2::bigint"
        );
        let mut after = 0_i64;
        loop {
            let page = self.client.query(TASKS, &[&after, &ROWS_PAGE]).await.map_err(failed)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = get(last, 0).map_err(unreadable)?;
            for row in &page {
                self.checked.tasks += 1;
                let id = text::read(get(row, 1).map_err(unreadable)?).into_owned();
                let scope = read_scope(row, AFTER_TASK).map_err(unreadable)?;
                match TaskRow::read(row, &scope.agent) {
                    Err(error) => self.fault(Some(&id), told(&error)),
                    Ok(task) => {
                        let faults = self.checked.faults;
                        self.log(&id, &task).await?;
                        // A row that is missing is a fault already, and it is why the bytes differ.
                        if self.checked.faults == faults {
                            self.bytes(&id, &task, get(row, AFTER_TASK + 3).map_err(unreadable)?).await?;
                        }
                    }
                }
            }
        }
    }

    /// Compares what a task says it counts of the limits of storage with its rows. A commit counts 192 bytes more if it came with an idempotency
    /// key, which may be forgotten by now.
    async fn bytes(&mut self, id: &str, task: &TaskRow, said: i64) -> Result<(), PostgresError> {
        const WEIGHTS: &str = "
            select coalesce(sum(l.weight), 0)::bigint,
                   count(*) filter (where l.weight not in (own.bytes, own.bytes + $3::bigint))
              from log l cross join lateral
                   (select octet_length(l.record) + $2::bigint
                           + (select coalesce(sum(octet_length(c.bytes) + $4::bigint), 0) from chunk c
                               where c.task_no = l.task_no and c.version = l.version)::bigint as bytes) as own
             where l.task_no = $1::bigint";
        let rates = [COMMIT_BYTES, KEY_BYTES, PIECE_BYTES].map(signed);
        let rows =
            self.client.query(WEIGHTS, &[&task.task_no, &rates[0], &rates[1], &rates[2]]).await.map_err(failed)?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (weights, wrong): (i64, i64) = (get(row, 0).map_err(unreadable)?, get(row, 1).map_err(unreadable)?);
        if wrong > 0 {
            self.fault(Some(id), format!("{wrong} of its commits count other bytes than they have"));
            return Ok(());
        }
        let webhooks = i64::from(task.head.push_configs) * signed(WEBHOOK_BYTES);
        let counted = signed(TASK_BYTES) + weights + webhooks;
        if said != counted {
            self.fault(Some(id), format!("it counts {said} bytes stored, and has {counted}"));
        }
        Ok(())
    }

    /// Replays the log of a task. Of one that was compacted only what is left is compared with checksums.
    async fn log(&mut self, id: &str, task: &TaskRow) -> Result<(), PostgresError> {
        const LOG: &str = concat!(
            "select ",
            log_columns!(),
            " from log l where l.task_no = $1::bigint and l.version > $2::bigint order by l.version limit $3::bigint"
        );
        let is_whole = task.floor_version == 0;
        self.checked.tasks_compacted += u64::from(!is_whole);
        let stored = &task.head;
        let mut head = Head::unopened(stored.id.clone(), stored.context_id.clone(), stored.agent.clone());
        let mut version = 0_i64;
        loop {
            let page = self.client.query(LOG, &[&task.task_no, &version, &ROWS_PAGE]).await.map_err(failed)?;
            if page.is_empty() {
                break;
            }
            for row in &page {
                self.checked.commits += 1;
                let found: i64 = get(row, 1).map_err(unreadable)?;
                if is_whole && found != version + 1 {
                    self.fault(Some(id), format!("commits {} to {} are missing", version + 1, found - 1));
                    return Ok(());
                }
                version = found;
                if let Err(what) = self.commit(row, is_whole.then_some(&mut head)).await? {
                    // What is wrong with the row itself names the commit already.
                    let named = if what.starts_with("commit ") { what } else { format!("commit {version}: {what}") };
                    self.fault(Some(id), named);
                    return Ok(());
                }
            }
        }
        if is_whole && version != signed(stored.version) {
            self.fault(Some(id), format!("its log ends at commit {version}, and it is at {}", stored.version));
        } else if is_whole {
            // What no event says: webhooks and the time that is left.
            (head.push_configs, head.deadline) = (stored.push_configs, stored.deadline);
            if head != *stored {
                self.fault(Some(id), "its row is not what its log makes it");
            }
        }
        Ok(())
    }

    /// Checks one commit, and applies it to what the commits before it made of the task.
    async fn commit(&mut self, row: &Row, head: Option<&mut Head>) -> Result<Result<(), String>, PostgresError> {
        let read = match LogRow::read(row) {
            Ok(read) => read,
            Err(error) => return Ok(Err(told(&error))),
        };
        let chunks = match self.chunks(&read).await? {
            Ok(chunks) => chunks,
            Err(what) => return Ok(Err(what)),
        };
        let parsed = ParsedCommit::of(&read.record);
        let events = match parsed.and_then(|parsed| parsed.into_events(Want::Everything, Contents::All, &chunks)) {
            Ok(events) => events,
            Err(error) => return Ok(Err(told(&error))),
        };
        let visible = events.iter().filter(|event| event.is_visible()).count() as u64;
        self.checked.events += visible;
        if unsigned(read.columns.visible) != visible {
            return Ok(Err(format!("it says that it has {} events, and has {visible}", read.columns.visible)));
        }
        Ok(head.map_or(Ok(()), |head| follow(head, &events, read.columns.last_seq)))
    }

    /// The pieces of content of a commit.
    async fn chunks(&mut self, commit: &LogRow) -> Result<Result<Pieces, String>, PostgresError> {
        const CHUNKS: &str = "select chunk_no, checksum, bytes from chunk
                               where task_no = $1::bigint and version = $2::bigint order by chunk_no";
        let is_without = ParsedCommit::of(&commit.record).is_ok_and(|parsed| parsed.chunk_ranges().is_empty());
        if is_without {
            return Ok(Ok(Pieces(Vec::new())));
        }
        let (task_no, version) = (commit.columns.task_no, commit.version());
        let mut pieces = Vec::new();
        for row in &self.client.query(CHUNKS, &[&task_no, &version]).await.map_err(failed)? {
            let (number, bytes): (i32, Vec<u8>) = (get(row, 0).map_err(unreadable)?, get(row, 2).map_err(unreadable)?);
            self.checked.chunks += 1;
            self.checked.chunk_bytes += bytes.len() as u64;
            let checksum: i64 = get(row, 1).map_err(unreadable)?;
            if checksum != of_chunk(task_no, version, number.into(), ContentHash::of(&bytes)) {
                return Ok(Err(format!("piece {number} does not match its checksum")));
            }
            pieces.push((i64::from(number), bytes));
        }
        Ok(Ok(Pieces(pieces)))
    }

    /// Rows whose task neither exists nor is being removed.
    async fn strays(&mut self) -> Result<(), PostgresError> {
        const STRAYS: &str = "
            select 'commits', l.task_no from log l where not exists (select 1 from task t where t.task_no = l.task_no)
               and not exists (select 1 from removal r where r.task_no = l.task_no) group by l.task_no
            union all
            select 'pieces of content', c.task_no from chunk c where not exists (select 1 from task t where t.task_no = c.task_no)
               and not exists (select 1 from removal r where r.task_no = c.task_no) group by c.task_no
            union all
            select 'webhooks', p.task_no from push p where not exists (select 1 from task t where t.task_no = p.task_no)
               and not exists (select 1 from removal r where r.task_no = p.task_no) group by p.task_no";
        for row in &self.client.query(STRAYS, &[]).await.map_err(failed)? {
            let (what, task_no): (&str, i64) = (get(row, 0).map_err(unreadable)?, get(row, 1).map_err(unreadable)?);
            self.fault(None, format!("{what} of task number {task_no}, which is not there"));
        }
        Ok(())
    }

    async fn webhooks(&mut self) -> Result<(), PostgresError> {
        const PUSH: &str = concat!(
            "select ",
            push_columns!(),
            " from push p where p.push_no > $1::bigint order by p.push_no limit $2::bigint"
        );
        let mut after = 0_i64;
        loop {
            let page = self.client.query(PUSH, &[&after, &ROWS_PAGE]).await.map_err(failed)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = get(last, 0).map_err(unreadable)?;
            for row in &page {
                self.checked.webhooks += 1;
                if let Err(error) = read_push(row) {
                    let task_no: i64 = get(row, 1).map_err(unreadable)?;
                    self.fault(None, format!("task number {task_no}: {}", told(&error)));
                }
            }
        }
    }

    async fn calls(&mut self) -> Result<(), PostgresError> {
        let mut after = String::new();
        loop {
            let page = self.client.query(CALLS_AFTER, &[&None::<i64>, &after, &ROWS_PAGE]).await.map_err(failed)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = get(last, 0).map_err(unreadable)?;
            for row in &page {
                self.checked.calls += 1;
                if let Err(error) = Found::read(row) {
                    self.fault(None, told(&error));
                }
            }
        }
    }

    async fn accepted(&mut self) -> Result<(), PostgresError> {
        const ACCEPTED: &str = "select key, digest, task_no, turn, after_seq, expires, checksum from accepted
                                 where key > $1 order by key limit $2::bigint";
        let mut after: Vec<u8> = Vec::new();
        loop {
            let page = self.client.query(ACCEPTED, &[&after, &ROWS_PAGE]).await.map_err(failed)?;
            let Some(last) = page.last() else { return Ok(()) };
            after = get(last, 0).map_err(unreadable)?;
            for row in &page {
                self.checked.accepted += 1;
                if !is_accept_whole(row).map_err(unreadable)? {
                    let task_no: i64 = get(row, 2).map_err(unreadable)?;
                    self.fault(
                        None,
                        format!("an idempotency key of task number {task_no} does not match its checksum"),
                    );
                }
            }
        }
    }
}

/// Applies the events of a commit, or says why they cannot follow those before.
fn follow(head: &mut Head, events: &[Event], last_seq: i64) -> Result<(), String> {
    let (fence, is_closed) = (head.fence, head.is_closed());
    head.apply_commit(events);
    if unsigned(last_seq) != head.seq {
        return Err(format!("it ends with event {last_seq}, and should with {}", head.seq));
    }
    if head.fence < fence {
        return Err(format!("its fence {} is below {fence}", head.fence));
    }
    if is_closed && events.iter().any(Event::is_visible) {
        return Err("something happened after the end".to_owned());
    }
    Ok(())
}

/// The pieces of content of one commit, by their numbers.
struct Pieces(Vec<(i64, Vec<u8>)>);

impl ChunkSource for Pieces {
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        for number in first..first.saturating_add(count) {
            let found = self.0.iter().find(|(known, _)| *known == number);
            let absent = || StoreError::Corrupt(format!("piece {number} is missing"));
            bytes.extend_from_slice(&found.ok_or_else(absent)?.1);
        }
        Ok(bytes)
    }
}

pub(super) fn is_accept_whole(row: &Row) -> Result<bool, StoreError> {
    let (key, digest): (&[u8], &[u8]) = (get(row, 0)?, get(row, 1)?);
    let (Ok(key), Ok(digest)) = (key.try_into(), digest.try_into()) else { return Ok(false) };
    let Ok(turn) = u32::try_from(get::<i64>(row, 3)?) else { return Ok(false) };
    let (after_seq, expires) = (unsigned(get(row, 4)?), Timestamp::from_ms(get(row, 5)?));
    let accept = Accept { key, digest, turn, after_seq, expires };
    Ok(of_accept(get(row, 2)?, &accept) == get::<i64>(row, 6)?)
}

/// Follows each chain of the audit log to its end or to its first break.
async fn chains(
    client: &Client,
    show: &mut dyn FnMut(&ChainPosition, &StoredEntry),
) -> Result<Vec<AuditChain>, PostgresError> {
    const CHAINS: &str = "select chain_no, id, anchor_no, anchor_hash, last_no from audit_chain order by chain_no";
    let mut checked = Vec::new();
    for row in &client.query(CHAINS, &[]).await.map_err(failed)? {
        let chain_no: i32 = get(row, 0).map_err(unreadable)?;
        let anchor = ChainPosition {
            no: unsigned(get(row, 2).map_err(unreadable)?),
            hash: hash(get(row, 3).map_err(unreadable)?)?,
        };
        let id: String = get(row, 1).map_err(unreadable)?;
        let mut chain = AuditChain { id, anchor, last: anchor, broken: None };
        follow_chain(client, chain_no, &mut chain, show).await?;
        let last_no = unsigned(get(row, 4).map_err(unreadable)?);
        if chain.broken.is_none() && chain.last.no != last_no {
            let missing = chain.last.no + 1;
            chain.broken = Some(format!("entry {missing} is missing; the chain ends at entry {last_no}"));
        }
        checked.push(chain);
    }
    Ok(checked)
}

async fn follow_chain(
    client: &Client,
    chain_no: i32,
    chain: &mut AuditChain,
    show: &mut dyn FnMut(&ChainPosition, &StoredEntry),
) -> Result<(), PostgresError> {
    const ENTRIES: &str = "select entry_no, at, record, hash from audit
                            where chain_no = $1 and entry_no > $2::bigint order by entry_no limit $3::bigint";
    loop {
        let page = client.query(ENTRIES, &[&chain_no, &signed(chain.last.no), &ROWS_PAGE]).await.map_err(failed)?;
        if page.is_empty() {
            return Ok(());
        }
        for row in &page {
            let entry = StoredEntry {
                no: unsigned(get(row, 0).map_err(unreadable)?),
                at: Timestamp::from_ms(get(row, 1).map_err(unreadable)?),
                record: get(row, 2).map_err(unreadable)?,
                hash: hash(get(row, 3).map_err(unreadable)?)?,
            };
            match chain.last.follow(&chain.id, &entry) {
                Ok(next) => {
                    show(&chain.last, &entry);
                    chain.last = next;
                }
                Err(why) => {
                    chain.broken = Some(why);
                    return Ok(());
                }
            }
        }
    }
}

fn hash(bytes: &[u8]) -> Result<AuditHash, PostgresError> {
    let wrong = |_| PostgresError("a hash of the audit log has the wrong length".to_owned());
    bytes.try_into().map(AuditHash).map_err(wrong)
}
