//! The audit log in the file. Entries wait in memory until the writer commits something else; they are written in the same
//! transaction, so they cost no disk write of their own. If nothing is committed for [`AUDIT_WAIT_MAX`], and when the
//! file is closed, the writer writes them alone.
//!
//! A file has one chain, which every process that opens it continues. If the chain cannot be read to its end, a new one
//! begins, and `verify` says what is wrong with the old one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::{
    AuditEntry, AuditEvent, AuditHash, AuditPage, AuditRetention, ChainPosition, Decision, StoredEntry,
};

use super::error::Failure;
use super::rows::{ChainColumns, mismatch};
use crate::record::{signed, unsigned};

/// How long an entry waits for a commit to be written with.
pub(super) const AUDIT_WAIT_MAX: Duration = Duration::from_secs(1);
/// Entries that wait to be written; more are counted and lost.
const AUDIT_WAITING_MAX: usize = 10_000;
/// Entries that are written with one transaction, so that no commit waits long for them.
const AUDIT_BATCH_MAX: usize = 1_000;

/// The entries that wait, shared by the store and its writer.
#[derive(Default)]
pub(super) struct AuditQueue {
    has_entries: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    entries: VecDeque<AuditEntry>,
    lost: u64,
}

impl AuditQueue {
    /// Adds an entry. Returns whether it is the first, so that the writer must be told.
    pub(super) fn push(&self, entry: AuditEntry) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.entries.len() < AUDIT_WAITING_MAX {
            true => waiting.entries.push_back(entry),
            false => waiting.lost += 1,
        }
        !self.has_entries.swap(true, Ordering::AcqRel)
    }

    fn take(&self, now: Timestamp, into: &mut VecDeque<AuditEntry>) {
        if !self.has_entries.load(Ordering::Acquire) {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { entries, lost } = std::mem::take(&mut *waiting);
        self.has_entries.store(false, Ordering::Release);
        drop(waiting);
        into.extend(entries);
        if lost > 0 {
            tracing::warn!(lost, "entries of the audit log came faster than they could be written");
            let entry = AuditEntry::new(now, AuditEvent::EntriesLost, Decision::Failed, "");
            into.push_back(AuditEntry { count: Some(lost), ..entry });
        }
    }
}

/// What the writer knows of the chain, and the entries that it has taken and not made durable yet.
pub(super) struct AuditWriter {
    queue: Arc<AuditQueue>,
    /// None before the first entry of the file, and if the chain cannot be continued.
    chain: Option<Chain>,
    /// Taken from the queue.
    taken: VecDeque<AuditEntry>,
    /// Those of the commits of this batch, which come again if the batch is repeated.
    of_commits: Vec<AuditEntry>,
    /// How the chain stands if the transaction becomes durable, and how many of `taken` are then written.
    pending: Option<Chain>,
    written: usize,
}

#[derive(Clone)]
struct Chain {
    chain_no: i64,
    id: String,
    anchor: ChainPosition,
    last: ChainPosition,
}

impl Chain {
    fn columns(&self) -> ChainColumns {
        ChainColumns { chain_no: self.chain_no, id: self.id.clone(), anchor: self.anchor, last_no: self.last.no }
    }
}

impl AuditWriter {
    pub(super) fn new(connection: &Connection, queue: Arc<AuditQueue>) -> rusqlite::Result<Self> {
        let chain = match newest_chain(connection) {
            Ok(chain) => chain,
            Err(failure) if failure.damage().is_some() => {
                tracing::error!(error = ?failure.0, "the audit log cannot be continued; it goes on with a new chain");
                None
            }
            Err(failure) => {
                tracing::error!(error = ?failure.0, "the audit log cannot be read");
                None
            }
        };
        Ok(Self { queue, chain, taken: VecDeque::new(), of_commits: Vec::new(), pending: None, written: 0 })
    }

    /// Whether entries wait.
    pub(super) fn has_entries(&self) -> bool {
        !self.taken.is_empty() || self.queue.has_entries.load(Ordering::Acquire)
    }

    /// Adds the entry of a commit of this batch.
    pub(super) fn add(&mut self, entry: &AuditEntry) {
        self.of_commits.push(entry.clone());
    }

    /// How many transactions the entries that wait will take.
    pub(super) fn batches(&self) -> usize {
        let waiting = self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner).entries.len();
        (self.taken.len() + waiting).div_ceil(AUDIT_BATCH_MAX)
    }

    pub(super) fn keep(&mut self) {
        if let Some(chain) = self.pending.take() {
            self.chain = Some(chain);
            self.taken.drain(..self.written);
        }
        self.written = 0;
        self.of_commits.clear();
    }

    pub(super) fn undo(&mut self) {
        self.pending = None;
        self.written = 0;
        self.of_commits.clear();
    }

    /// The chain as the transaction has it so far.
    fn current(&self) -> Option<&Chain> {
        self.pending.as_ref().or(self.chain.as_ref())
    }
}

impl AuditWriter {
    /// Writes the entries that wait into the transaction.
    pub(super) fn write(&mut self, connection: &Connection, now: Timestamp) -> Result<(), Failure> {
        if self.of_commits.is_empty() && !self.has_entries() {
            return Ok(());
        }
        self.queue.take(now, &mut self.taken);
        let mut chain = match self.current() {
            Some(chain) => chain.clone(),
            None => begin_chain(connection)?,
        };
        let mut insert = connection
            .prepare_cached("INSERT INTO audit (chain_no, entry_no, at, record, hash) VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let count = self.taken.len().min(AUDIT_BATCH_MAX);
        for entry in self.taken.iter().take(count).chain(&self.of_commits) {
            let record = entry.record(&chain.id, chain.last.no + 1);
            chain.last = chain.last.after(&record);
            let ChainPosition { no, hash } = chain.last;
            insert.execute(params![chain.chain_no, signed(no), entry.at.as_ms(), record, hash.0])?;
        }
        write_chain(connection, &chain)?;
        self.pending = Some(chain);
        self.written = count;
        Ok(())
    }

    /// Removes the oldest entries that are no longer kept: of the chain that is written to, and, by their age alone, of chains that
    /// nothing is added to any more.
    pub(super) fn forget(
        &mut self,
        connection: &Connection,
        retention: &AuditRetention,
        limit: usize,
    ) -> Result<usize, Failure> {
        let current = self.current().cloned();
        let mut forgotten = 0;
        if let Some(chain) = &current {
            let too_many = (chain.last.no - chain.anchor.no).saturating_sub(retention.entries_max);
            let old = old_entries(connection, &chain.columns(), retention, too_many, limit)?;
            if let Some(why) = old.broken {
                return Err(mismatch(format_args!("the audit log ({why})")));
            }
            if old.count > 0 {
                let shortened = Chain { anchor: old.last, ..chain.clone() };
                shorten(connection, &shortened.columns())?;
                self.pending = Some(shortened);
            }
            forgotten = old.count;
        }
        let without = current.map_or(0, |chain| chain.chain_no);
        for chain_no in ended_chains(connection, without)? {
            // `verify` tells of a row that cannot be read.
            let Ok(mut columns) = read_chains(connection, &format!("WHERE chain_no = {chain_no}")) else {
                continue;
            };
            let Some(columns) = columns.pop().filter(|_| forgotten < limit) else { continue };
            let old = old_entries(connection, &columns, retention, 0, limit - forgotten)?;
            if old.count > 0 {
                shorten(connection, &ChainColumns { anchor: old.last, ..columns })?;
            }
            forgotten += old.count;
        }
        Ok(forgotten)
    }
}

/// The entries at the beginning of a chain that are no longer kept.
struct OldEntries {
    count: usize,
    /// The last of them, or the anchor.
    last: ChainPosition,
    /// Why the next entry does not follow. It stays, and so does the proof that it does not.
    broken: Option<String>,
}

fn old_entries(
    connection: &Connection,
    chain: &ChainColumns,
    retention: &AuditRetention,
    too_many: u64,
    limit: usize,
) -> Result<OldEntries, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT entry_no, at, record, hash FROM audit WHERE chain_no = ?1 AND entry_no > ?2 ORDER BY entry_no LIMIT ?3",
    )?;
    let mut rows = select.query(params![chain.chain_no, signed(chain.anchor.no), signed(limit as u64)])?;
    let mut old = OldEntries { count: 0, last: chain.anchor, broken: None };
    while let Some(row) = rows.next()? {
        let entry = stored_entry(row)?;
        if entry.no > chain.anchor.no + too_many && retention.now.ms_since(entry.at) < retention.entries_ms {
            break;
        }
        match old.last.follow(&chain.id, &entry) {
            Ok(next) => old.last = next,
            Err(why) => {
                old.broken = Some(why);
                break;
            }
        }
        old.count += 1;
    }
    Ok(old)
}

/// Removes the entries up to the anchor.
fn shorten(connection: &Connection, chain: &ChainColumns) -> Result<(), Failure> {
    let mut delete = connection.prepare_cached("DELETE FROM audit WHERE chain_no = ?1 AND entry_no <= ?2")?;
    delete.execute([chain.chain_no, signed(chain.anchor.no)])?;
    insert_chain(connection, chain)
}

/// The numbers of chains with entries, without the one that is written to.
fn ended_chains(connection: &Connection, without: i64) -> Result<Vec<i64>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT chain_no FROM audit_chain WHERE chain_no <> ?1 AND anchor_no < last_no ORDER BY chain_no",
    )?;
    let numbers = select.query_map([without], |row| row.get(0))?.collect::<rusqlite::Result<_>>();
    Ok(numbers?)
}

fn newest_chain(connection: &Connection) -> Result<Option<Chain>, Failure> {
    let Some(columns) = read_chains(connection, "ORDER BY chain_no DESC LIMIT 1")?.pop() else { return Ok(None) };
    let hash = if columns.last_no == columns.anchor.no {
        columns.anchor.hash
    } else {
        let mut select =
            connection.prepare("SELECT entry_no, at, record, hash FROM audit WHERE chain_no = ?1 AND entry_no = ?2")?;
        let last = select.query_row([columns.chain_no, signed(columns.last_no)], |row| Ok(stored_entry(row)));
        match last.optional()?.transpose()? {
            Some(entry) => entry.hash,
            None => return Err(mismatch(format_args!("the end of the audit log, entry {},", columns.last_no))),
        }
    };
    let ChainColumns { chain_no, id, anchor, last_no } = columns;
    Ok(Some(Chain { chain_no, id, anchor, last: ChainPosition { no: last_no, hash } }))
}

fn begin_chain(connection: &Connection) -> Result<Chain, Failure> {
    let sql = "SELECT coalesce(max(chain_no), 0) + 1, lower(hex(randomblob(8))) FROM audit_chain";
    let (chain_no, id) = connection.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Chain { chain_no, id, anchor: ChainPosition::BEGIN, last: ChainPosition::BEGIN })
}

fn write_chain(connection: &Connection, chain: &Chain) -> Result<(), Failure> {
    insert_chain(connection, &chain.columns())
}

/// Writes the row of a chain, in the place of the one that is there.
pub(super) fn insert_chain(connection: &Connection, columns: &ChainColumns) -> Result<(), Failure> {
    let mut write = connection.prepare_cached(
        "INSERT INTO audit_chain (chain_no, id, anchor_no, anchor_hash, last_no, checksum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET anchor_no = excluded.anchor_no, anchor_hash = excluded.anchor_hash,
                                       last_no = excluded.last_no, checksum = excluded.checksum",
    )?;
    let ChainColumns { chain_no, id, anchor, last_no } = columns;
    let checksum = columns.checksum();
    write.execute(params![chain_no, id, signed(anchor.no), anchor.hash.0, signed(*last_no), checksum])?;
    Ok(())
}

/// The chains of a file; a row that does not match its checksum is an error.
pub(super) fn read_chains(connection: &Connection, order: &str) -> Result<Vec<ChainColumns>, Failure> {
    let sql = format!("SELECT chain_no, id, anchor_no, anchor_hash, last_no, checksum FROM audit_chain {order}");
    let mut select = connection.prepare(&sql)?;
    let mut rows = select.query([])?;
    let mut chains = Vec::new();
    while let Some(row) = rows.next()? {
        let anchor = ChainPosition { no: unsigned(row.get(2)?), hash: AuditHash(row.get(3)?) };
        let columns = ChainColumns { chain_no: row.get(0)?, id: row.get(1)?, anchor, last_no: unsigned(row.get(4)?) };
        if row.get::<_, i64>(5)? != columns.checksum() {
            return Err(mismatch(format_args!("chain {} of the audit log", columns.chain_no)));
        }
        chains.push(columns);
    }
    Ok(chains)
}

pub(super) fn stored_entry(row: &Row<'_>) -> Result<StoredEntry, Failure> {
    Ok(StoredEntry {
        no: unsigned(row.get(0)?),
        at: Timestamp::from_ms(row.get(1)?),
        record: row.get(2)?,
        hash: AuditHash(row.get(3)?),
    })
}

/// Entries of the newest chain.
pub(super) fn page(connection: &Connection, after_no: u64, limit: usize) -> Result<AuditPage, Failure> {
    let Some(chain) = read_chains(connection, "ORDER BY chain_no DESC LIMIT 1")?.pop() else {
        return Ok(AuditPage { chain: String::new(), anchor: ChainPosition::BEGIN, entries: Vec::new() });
    };
    let mut select = connection.prepare_cached(
        "SELECT entry_no, at, record, hash FROM audit WHERE chain_no = ?1 AND entry_no > ?2 ORDER BY entry_no LIMIT ?3",
    )?;
    let mut rows = select.query(params![chain.chain_no, signed(after_no), signed(limit as u64)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(stored_entry(row)?);
    }
    Ok(AuditPage { chain: chain.id, anchor: chain.anchor, entries })
}
