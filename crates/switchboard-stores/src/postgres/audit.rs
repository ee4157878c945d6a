//! The audit log in tables, with one chain for each replica. The number and hash of an entry depend on all entries before it, so
//! entries are numbered when they are written, by one transaction at a time. Entries without a commit wait and go with the next
//! batch that has entries of its own, or within a second.

use std::sync::{Mutex, PoisonError};

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::{
    AuditEntry, AuditEvent, AuditHash, AuditPage, AuditRetention, ChainPosition, Decision, StoredEntry,
};
use switchboard_engine::ports::store::StoreError;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};
use tokio_postgres::Row;

use super::connect::{Connection, Params};
use super::database::Database;
use super::error::{Failure, FailureKind, corrupt};
use super::hints::held_names;
use super::rows::get;
use crate::record::{signed, unsigned};

/// Entries that wait at most; more are counted, and an entry says how many were lost.
const AUDIT_WAITING_MAX: usize = 65_536;

pub(super) struct Audit {
    /// The name of the chain of this process.
    chain_id: String,
    waiting: Mutex<Waiting>,
    /// Locked by the transaction that adds entries, until it has ended.
    chain: AsyncMutex<Chain>,
}

#[derive(Default)]
struct Waiting {
    entries: Vec<AuditEntry>,
    lost: u64,
}

/// What is known about the chain.
#[derive(Default)]
pub(super) struct Chain {
    /// The number of the chain and its last entry; none if they have to be read.
    known: Option<(i32, ChainPosition)>,
    /// Entries of a transaction whose end is not known, and the last entry after it.
    unresolved: Option<(Vec<AuditEntry>, ChainPosition)>,
}

/// Entries of a transaction that has not ended yet.
pub(super) struct Added {
    chain_no: i32,
    entries: Vec<AuditEntry>,
    last: ChainPosition,
}

impl Audit {
    pub(super) fn new(chain_id: String) -> Self {
        Self { chain_id, waiting: Mutex::default(), chain: AsyncMutex::default() }
    }

    pub(super) fn record(&self, entry: AuditEntry) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.entries.len() < AUDIT_WAITING_MAX {
            waiting.entries.push(entry);
        } else {
            waiting.lost += 1;
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).entries.is_empty()
    }

    pub(super) async fn lock(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().await
    }

    /// Adds the waiting entries and those of commits, inside a transaction of the caller.
    pub(super) async fn add(
        &self,
        connection: &Connection,
        chain: &mut Chain,
        of_commits: &[&AuditEntry],
    ) -> Result<Option<Added>, Failure> {
        self.resolve(connection, chain).await?;
        let entries = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let mut entries = std::mem::take(&mut waiting.entries);
            let lost = std::mem::take(&mut waiting.lost);
            if let Some(at) = entries.last().map(|entry| entry.at).filter(|_| lost > 0) {
                let told = AuditEntry::new(at, AuditEvent::EntriesLost, Decision::Failed, "audit");
                entries.push(AuditEntry { count: Some(lost), ..told });
            }
            entries
        };
        if entries.is_empty() && of_commits.is_empty() {
            return Ok(None);
        }
        match self.insert(connection, chain, &entries, of_commits).await {
            Ok((chain_no, last)) => Ok(Some(Added { chain_no, entries, last })),
            Err(failure) => {
                chain.known = None;
                self.put_back(entries);
                Err(failure)
            }
        }
    }

    /// Puts entries back that were not written.
    fn put_back(&self, mut entries: Vec<AuditEntry>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        entries.append(&mut waiting.entries);
        waiting.entries = entries;
    }

    /// Notes how the transaction ended that added entries.
    pub(super) fn ended(&self, chain: &mut Chain, added: Option<Added>, outcome: &Result<(), Failure>) {
        let Some(Added { chain_no, entries, last }) = added else { return };
        match outcome {
            Ok(()) => chain.known = Some((chain_no, last)),
            Err(failure) => {
                chain.known = None;
                match failure.kind {
                    FailureKind::Connection => chain.unresolved = Some((entries, last)),
                    FailureKind::Contention | FailureKind::Other => self.put_back(entries),
                }
            }
        }
    }

    /// Finds out whether a transaction was committed whose end is not known.
    async fn resolve(&self, connection: &Connection, chain: &mut Chain) -> Result<(), Failure> {
        const FIND: &str =
            "select a.hash from audit a join audit_chain c using (chain_no) where c.id = $1 and a.entry_no = $2";
        let Some((_, last)) = &chain.unresolved else { return Ok(()) };
        let found = connection.query(FIND, &[&self.chain_id, &signed(last.no)]).await?;
        let is_written = found.first().is_some_and(|row| row.try_get(0).is_ok_and(|hash: &[u8]| hash == last.hash.0));
        if let Some((entries, _)) = chain.unresolved.take().filter(|_| !is_written) {
            self.put_back(entries);
        }
        Ok(())
    }

    async fn insert(
        &self,
        connection: &Connection,
        chain: &Chain,
        waiting: &[AuditEntry],
        of_commits: &[&AuditEntry],
    ) -> Result<(i32, ChainPosition), Failure> {
        const MAKE: &str = "insert into audit_chain (id, anchor_no, anchor_hash, last_no, last_hash)
                            values ($1, 0, $2, 0, $2) on conflict (id) do nothing";
        const FIND: &str = "select chain_no, last_no, last_hash from audit_chain where id = $1";
        const INSERT: &str = "insert into audit (chain_no, entry_no, at, record, hash)
                              select $1, e.no, e.at, e.record, e.hash
                                from unnest($2::bigint[], $3::bigint[], $4::text[], $5::bytea[]) as e(no, at, record, hash)";
        const MOVE: &str = "update audit_chain set last_no = $2, last_hash = $3 where chain_no = $1 and last_no = $4";
        let wrong = || Failure::other("the chain of the audit log cannot be read");
        let (chain_no, before) = match chain.known {
            Some(known) => known,
            None => {
                connection.execute(MAKE, &[&self.chain_id, &&AuditHash::BEGIN.0[..]]).await?;
                let found = connection.query(FIND, &[&self.chain_id]).await?;
                let row = found.first().ok_or_else(wrong)?;
                let hash: &[u8] = row.try_get(2).map_err(|_| wrong())?;
                let hash = AuditHash(hash.try_into().map_err(|_| wrong())?);
                let no: i64 = row.try_get(1).map_err(|_| wrong())?;
                (row.try_get(0).map_err(|_| wrong())?, ChainPosition { no: unsigned(no), hash })
            }
        };
        let mut last = before;
        let (mut numbers, mut times, mut records, mut hashes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in waiting.iter().chain(of_commits.iter().copied()) {
            let record = entry.record(&self.chain_id, last.no + 1);
            last = last.after(&record);
            numbers.push(signed(last.no));
            times.push(entry.at.as_ms());
            records.push(record);
            hashes.push(last.hash.0.to_vec());
        }
        connection.execute(INSERT, &[&chain_no, &numbers, &times, &records, &hashes]).await?;
        let moved =
            connection.execute(MOVE, &[&chain_no, &signed(last.no), &&last.hash.0[..], &signed(before.no)]).await?;
        if moved != 1 {
            return Err(Failure::other("another process writes to the audit log under the name of this replica"));
        }
        Ok((chain_no, last))
    }

    /// Writes what waits.
    pub(super) async fn flush(&self, database: &Database) -> Result<(), StoreError> {
        let mut chain = self.chain.lock().await;
        for attempt in 0.. {
            if chain.unresolved.is_none() && !self.is_waiting() {
                return Ok(());
            }
            let slot = &database.upkeep;
            let connection = slot.get(&database.connector).await?;
            match self.flush_once(&connection, &mut chain).await {
                Ok(()) => return Ok(()),
                Err(failure) => {
                    // The transaction may be open still, so the connection is not used again.
                    slot.discard(&connection).await;
                    if failure.kind == FailureKind::Other || attempt > 0 {
                        return Err(failure.into());
                    }
                }
            }
        }
        Ok(())
    }

    async fn flush_once(&self, connection: &Connection, chain: &mut Chain) -> Result<(), Failure> {
        connection.batch("BEGIN").await?;
        let added = self.add(connection, chain, &[]).await?;
        let ended = connection.batch("COMMIT").await;
        self.ended(chain, added, &ended);
        ended
    }

    pub(super) async fn page(&self, database: &Database, after_no: u64, limit: usize) -> Result<AuditPage, StoreError> {
        const CHAIN: &str = "select chain_no, anchor_no, anchor_hash from audit_chain where id = $1";
        let mut page = AuditPage { chain: String::new(), anchor: ChainPosition::BEGIN, entries: Vec::new() };
        let found = database.read(CHAIN, &[&self.chain_id]).await?;
        let Some(row) = found.first() else { return Ok(page) };
        let chain_no: i32 = get(row, 0)?;
        page.chain = self.chain_id.clone();
        page.anchor = ChainPosition { no: unsigned(get(row, 1)?), hash: hash(get(row, 2)?)? };
        for row in &database.read(PAGE, &[&chain_no, &signed(after_no), &signed(limit as u64)]).await? {
            page.entries.push(stored_entry(row)?);
        }
        Ok(page)
    }

    pub(super) async fn forget(
        &self,
        database: &Database,
        retention: AuditRetention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        // Chains whose oldest entry is no longer kept: that of this process, and by age those that no process writes to any more, which is one
        // whose name no connection holds.
        const OLD: &str = concat!(
            held_names!(),
            " select c.chain_no, c.id, c.anchor_no, c.anchor_hash, c.last_no from audit_chain c
                cross join lateral (select a.at from audit a where a.chain_no = c.chain_no and a.entry_no > c.anchor_no
                                     order by a.entry_no limit 1) as oldest
               where (oldest.at <= $3 and hashtextextended('switchboard replica ' || $1 || ' ' || c.id, 0) not in (select key from held))
                  or (c.id = $2 and (oldest.at <= $3 or c.last_no - c.anchor_no > $4))
               order by c.id <> $2, c.chain_no limit $5"
        );
        let before = retention.now.plus_ms(retention.entries_ms.saturating_neg()).as_ms();
        let kept_max = i64::try_from(retention.entries_max).unwrap_or(i64::MAX);
        let wanted = i64::try_from(limit).unwrap_or(i64::MAX);
        let schema = &database.connector.schema;
        let mut forgotten = 0;
        for row in &database.serve(OLD, &[schema, &self.chain_id, &before, &kept_max, &wanted]).await? {
            if forgotten >= limit {
                break;
            }
            let anchor = ChainPosition { no: unsigned(get(row, 2)?), hash: hash(get(row, 3)?)? };
            let chain = OldChain { chain_no: get(row, 0)?, id: get(row, 1)?, anchor };
            let too_many = match chain.id == self.chain_id {
                true => unsigned(get(row, 4)?).saturating_sub(anchor.no).saturating_sub(retention.entries_max),
                false => 0,
            };
            forgotten += chain.forget(database, before, too_many, limit - forgotten).await?;
        }
        Ok(forgotten)
    }
}

/// A chain of which entries are forgotten.
struct OldChain {
    chain_no: i32,
    id: String,
    anchor: ChainPosition,
}

impl OldChain {
    /// Forgets entries from the oldest on, up to the first that is still kept, or that does not follow the one before it: that one
    /// stays, and so does the proof that it does not.
    async fn forget(&self, database: &Database, before: i64, too_many: u64, limit: usize) -> Result<usize, StoreError> {
        // Another process may forget the same entries, so the anchor must still be where it was.
        const FORGET: &str = "
            with moved as (update audit_chain set anchor_no = $3, anchor_hash = $4
                            where chain_no = $1 and anchor_no = $2 returning chain_no)
            delete from audit a using moved where a.chain_no = moved.chain_no and a.entry_no <= $3 returning 1";
        let mut last = self.anchor;
        for row in &database.serve(PAGE, &[&self.chain_no, &signed(last.no), &signed(limit as u64)]).await? {
            let entry = stored_entry(row)?;
            if entry.no > self.anchor.no + too_many && entry.at.as_ms() > before {
                break;
            }
            match last.follow(&self.id, &entry) {
                Ok(next) => last = next,
                Err(why) => {
                    tracing::warn!(chain = self.id, why, "an entry of the audit log does not follow the one before it");
                    break;
                }
            }
        }
        if last.no == self.anchor.no {
            return Ok(0);
        }
        let moved: Params<'_> = &[&self.chain_no, &signed(self.anchor.no), &signed(last.no), &&last.hash.0[..]];
        Ok(database.serve(FORGET, moved).await?.len())
    }
}

/// A page of a chain.
const PAGE: &str = "select entry_no, at, record, hash from audit where chain_no = $1 and entry_no > $2
                     order by entry_no limit $3";

fn stored_entry(row: &Row) -> Result<StoredEntry, StoreError> {
    let (no, at) = (unsigned(get(row, 0)?), Timestamp::from_ms(get(row, 1)?));
    Ok(StoredEntry { no, at, record: get(row, 2)?, hash: hash(get(row, 3)?)? })
}

fn hash(bytes: &[u8]) -> Result<AuditHash, StoreError> {
    bytes.try_into().map(AuditHash).map_err(|_| corrupt("a hash of the audit log has the wrong length"))
}
