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

use super::connect::Connection;
use super::error::{Failure, FailureKind, corrupt};
use super::rows::get;
use super::store::Shared;
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
    pub(super) async fn flush(&self, shared: &Shared) -> Result<(), StoreError> {
        let mut chain = self.chain.lock().await;
        for attempt in 0.. {
            if chain.unresolved.is_none() && !self.is_waiting() {
                return Ok(());
            }
            let slot = &shared.upkeep;
            let connection = slot.get(&shared.connector).await?;
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

    pub(super) async fn page(&self, shared: &Shared, after_no: u64, limit: usize) -> Result<AuditPage, StoreError> {
        const CHAIN: &str = "select chain_no, anchor_no, anchor_hash from audit_chain where id = $1";
        const PAGE: &str = "select entry_no, at, record, hash from audit where chain_no = $1 and entry_no > $2
                             order by entry_no limit $3";
        let mut page = AuditPage { chain: String::new(), anchor: ChainPosition::BEGIN, entries: Vec::new() };
        let found = shared.read(CHAIN, &[&self.chain_id]).await?;
        let Some(row) = found.first() else { return Ok(page) };
        let chain_no: i32 = get(row, 0)?;
        page.chain = self.chain_id.clone();
        page.anchor = ChainPosition { no: unsigned(get(row, 1)?), hash: hash(get(row, 2)?)? };
        for row in &shared.read(PAGE, &[&chain_no, &signed(after_no), &signed(limit as u64)]).await? {
            let (no, at) = (unsigned(get(row, 0)?), Timestamp::from_ms(get(row, 1)?));
            page.entries.push(StoredEntry { no, at, record: get(row, 2)?, hash: hash(get(row, 3)?)? });
        }
        Ok(page)
    }

    pub(super) async fn forget(
        &self,
        shared: &Shared,
        retention: AuditRetention,
        limit: usize,
    ) -> Result<usize, StoreError> {
        // Entries are forgotten from the oldest on, up to the first that is still kept.
        const FORGET: &str = "
            with chain as (select chain_no, anchor_no, last_no from audit_chain where id = $1 for update),
                 kept as (select min(a.entry_no) as no from audit a join chain using (chain_no)
                           where a.at > $2 and a.entry_no > chain.last_no - $3 and a.entry_no <= chain.anchor_no + $4),
                 gone as (delete from audit a using chain
                           where a.chain_no = chain.chain_no and a.entry_no <= chain.anchor_no + $4
                             and a.entry_no < coalesce((select no from kept), 9223372036854775807)
                          returning a.entry_no, a.hash),
                 newest as (select entry_no, hash from gone order by entry_no desc limit 1),
                 moved as (update audit_chain c set anchor_no = newest.entry_no, anchor_hash = newest.hash
                             from chain, newest where c.chain_no = chain.chain_no returning 1)
            select count(*) from gone";
        let before = retention.now.plus_ms(retention.entries_ms.saturating_neg()).as_ms();
        let kept_max = i64::try_from(retention.entries_max).unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX / 4);
        let found = shared.serve(FORGET, &[&self.chain_id, &before, &kept_max, &limit]).await?;
        let count: i64 = found.first().map_or(Ok(0), |row| get(row, 0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

fn hash(bytes: &[u8]) -> Result<AuditHash, StoreError> {
    bytes.try_into().map(AuditHash).map_err(|_| corrupt("a hash of the audit log has the wrong length"))
}
