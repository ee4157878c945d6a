//! The tables of the memory store, and its only write path: a commit is checked completely before anything is changed.
//! Ordered sets beside the records let listing, claiming and evicting read only the entries they return.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::lifecycle::{Folded, Head, Phase};
use switchboard_core::model::{ArtifactId, Dialect, PushConfig, TaskId, TaskState, Timestamp};

use super::audit::AuditTable;
use super::calls::CallTable;
use super::due::DueDeliveries;
use crate::id_hash::{IdHash, SeededHash};
use crate::ports::calls::{CallRow, CallStep};
use crate::ports::storage::event_bytes;
use crate::ports::store::{
    Accept, Accepted, Commit, CommitError, DeliveryKey, LogPage, LoggedCommit, OverStorage, Scope, StoreError,
    StoreStats, StoredBytes, StoredHead, StoredTask, Target, TaskKey,
};
use crate::ports::system::SET_BACK_MS_MIN;

pub(super) struct Tables {
    pub(super) tasks_max: usize,
    /// In boxes: the table is small then, and a new record gets the memory of the one that was evicted for it. With the records in the table
    /// itself a send took 9 % more CPU.
    pub(super) records: HashMap<TaskKey, Box<Record>, IdHash>,
    /// Seeded: in some dialects clients choose ids.
    by_id: HashMap<TaskId, TaskKey, SeededHash>,
    /// Which record has accepted the message of an idempotency key. The rest of what is known of the key is in the record, so that this
    /// table stays small: every send of a named caller reads and writes it at a place of its own.
    accepted: HashMap<[u8; 32], TaskKey, IdHash>,
    /// The tasks of each scope, by status time, without records that are not tasks yet.
    pub(super) listed: HashMap<Arc<Scope>, BTreeSet<(Timestamp, TaskKey)>, IdHash>,
    /// Runs at work or waiting to be resumed, by the time at which they may be claimed.
    pub(super) runs: BTreeSet<(Timestamp, TaskKey)>,
    /// Closed records that no delivery needs any more, by the time at which they closed.
    pub(super) evictable: BTreeSet<(Timestamp, TaskKey)>,
    pub(super) webhooks: BTreeMap<DeliveryKey, TaskKey>,
    /// Deliveries that wait or are under way, by the time at which they may be claimed.
    pub(super) due: DueDeliveries,
    pub(super) stats: StoreStats,
    /// Tasks by state, in the order of `TaskState::ALL`.
    pub(super) tasks: [u64; TaskState::ALL.len()],
    /// The bytes of all records, and of those of each owner that has any.
    pub(super) bytes: u64,
    owner_bytes: HashMap<Owner, u64, SeededHash>,
    last_key: i64,
    pub(super) last_delivery: i64,
    /// The time of the newest call.
    seen: Timestamp,
    /// Ages are ignored until this time.
    pub(super) held_until: Timestamp,
    pub(super) audit: AuditTable,
    pub(super) calls: CallTable,
}

pub(super) struct Record {
    pub(super) scope: Arc<Scope>,
    pub(super) head: Arc<Head>,
    pub(super) folded: Arc<Folded>,
    pub(super) log: Vec<LogEntry>,
    /// What it counts of the limits of stored bytes.
    pub(super) bytes: u64,
    /// Visible events up to here are no longer kept one by one.
    pub(super) floor_seq: u64,
    /// Set while a run is at work or waits to be resumed.
    pub(super) lease: Option<Lease>,
    pub(super) webhooks: Vec<Webhook>,
    accepts: Vec<Accept>,
    /// The commit that began or last replaced each artifact. Most artifacts begin in the first commit, and those are
    /// left out.
    pub(super) begun: BTreeMap<ArtifactId, u64>,
    pub(super) closed_at: Option<Timestamp>,
}

/// A push config, and the delivery cursor of its receiver.
pub(super) struct Webhook {
    pub(super) key: DeliveryKey,
    /// Of its task.
    pub(super) scope: Arc<Scope>,
    pub(super) config: PushConfig,
    pub(super) dialect: Dialect,
    pub(super) delivered_seq: u64,
    pub(super) failures: u32,
    /// When the delivery may be claimed. Set while something waits or is under way.
    pub(super) claimable_at: Option<Timestamp>,
    /// Set while a delivery is under way.
    pub(super) claimed_until: Option<Timestamp>,
    pub(super) parked: bool,
    pub(super) last_error: Option<String>,
    pub(super) last_attempt_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
}

pub(super) struct LogEntry {
    pub(super) last_seq: u64,
    visible: bool,
    pub(super) commit: LoggedCommit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) hold: Hold,
    /// Whether the run has begun. If its holder dies before that, the run does not count as interrupted.
    pub(super) begun: bool,
    /// When the run may be claimed: the end of a held lease, or the time at which a released run is due.
    pub(super) claimable_at: Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Held,
    /// The lease was released by its holder, or never taken.
    Released,
    /// Its holder is known to be dead.
    Void,
}

impl Tables {
    pub(super) fn new(tasks_max: usize) -> Self {
        Self {
            tasks_max,
            records: HashMap::default(),
            by_id: HashMap::default(),
            accepted: HashMap::default(),
            listed: HashMap::default(),
            runs: BTreeSet::new(),
            evictable: BTreeSet::new(),
            webhooks: BTreeMap::new(),
            due: DueDeliveries::default(),
            stats: StoreStats::default(),
            tasks: Default::default(),
            bytes: 0,
            owner_bytes: HashMap::default(),
            last_key: 0,
            last_delivery: 0,
            seen: Timestamp::default(),
            held_until: Timestamp::default(),
            audit: AuditTable::default(),
            calls: CallTable::default(),
        }
    }

    /// Records the time of a call. If the clock was set back, all waiting times are shifted, so that each keeps its
    /// length.
    pub(super) fn record_time(&mut self, now: Timestamp) {
        let back_ms = self.seen.ms_since(now);
        self.seen = now;
        if back_ms >= SET_BACK_MS_MIN {
            self.set_back_runs(back_ms);
            self.set_back_deliveries(back_ms);
            self.calls.set_back(back_ms);
        }
    }

    pub(super) fn commit(&mut self, commit: Commit, now: Timestamp) -> Result<TaskKey, CommitError> {
        let checked = self.check(&commit, now);
        match &checked {
            Ok(_) => self.stats.commits += 1,
            Err(CommitError::Conflict | CommitError::Fenced | CommitError::Duplicate(_)) => self.stats.conflicts += 1,
            // The engine counts these.
            Err(CommitError::OverStorage(_)) => {}
            Err(CommitError::Full | CommitError::Store(_)) => self.stats.failures += 1,
        }
        let (key, bytes) = checked?;
        if let Some(entry) = &commit.audit {
            self.audit.append(entry);
        }
        self.apply(key, commit, now);
        self.count_bytes(key, bytes);
        Ok(key)
    }

    /// Looks for a reason to refuse the commit, and returns the record's key and how many bytes more it will have. If the store is
    /// full, a new record evicts the oldest closed one here.
    fn check(&mut self, commit: &Commit, now: Timestamp) -> Result<(TaskKey, i64), CommitError> {
        let existing = match &commit.target {
            Target::New { .. } => None,
            Target::Existing { key, expected_version } => {
                let record = self.records.get(key).ok_or(CommitError::Conflict)?;
                if commit.fence.is_some_and(|fence| fence != record.head.fence) {
                    return Err(CommitError::Fenced);
                }
                if *expected_version != record.head.version {
                    return Err(CommitError::Conflict);
                }
                Self::check_lease(record, commit.lease, now)?;
                Some(*key)
            }
        };
        if let Some(accepted) = commit.accept.as_ref().and_then(|accept| self.find_accepted(&accept.key, now)) {
            return Err(CommitError::Duplicate(accepted));
        }
        if existing.is_none() && self.by_id.contains_key(&commit.head.id) {
            return Err(CommitError::Conflict);
        }
        let more = self.check_storage(commit, existing)?;
        match existing {
            Some(key) => Ok((key, more)),
            None if self.records.len() >= self.tasks_max && !self.evict_oldest() => Err(CommitError::Full),
            None => {
                self.last_key += 1;
                Ok((TaskKey(self.last_key), more))
            }
        }
    }

    /// How many bytes the commit adds, if there is room for them. If all records together have too many, the oldest closed ones are
    /// evicted, as when there are too many of them.
    fn check_storage(&mut self, commit: &Commit, existing: Option<TaskKey>) -> Result<i64, CommitError> {
        loop {
            match self.find_room(commit, existing) {
                Err(OverStorage::All(_)) if Self::can_make_room(commit) && self.evict_oldest_but(existing) => {}
                found => return found.map_err(CommitError::OverStorage),
            }
        }
    }

    fn find_room(&self, commit: &Commit, existing: Option<TaskKey>) -> Result<i64, OverStorage> {
        let record = existing.and_then(|key| self.records.get(&key));
        let webhooks = record.map_or(0, |record| record.head.push_configs);
        let more = event_bytes(&commit.events).cast_signed() + commit.bytes_around(webhooks);
        let owner = match (&commit.target, record) {
            (Target::New { scope }, _) => Some(&scope.owner),
            (Target::Existing { .. }, record) => record.map(|record| &record.scope.owner),
        };
        let stored = StoredBytes {
            task: record.map_or(0, |record| record.bytes),
            owner: owner.and_then(|owner| self.owner_bytes.get(owner)).copied().unwrap_or_default(),
            all: self.bytes,
        };
        let taken = u64::try_from(more).unwrap_or_default();
        match commit.storage.check(stored, taken) {
            Err(over) if commit.needs_room(taken) => Err(over),
            Ok(()) | Err(_) => Ok(more),
        }
    }

    /// Counts bytes that a record has more, or fewer, than before.
    pub(super) fn count_bytes(&mut self, key: TaskKey, change: i64) {
        let Some(record) = self.records.get_mut(&key) else { return };
        record.bytes = record.bytes.saturating_add_signed(change);
        self.bytes = self.bytes.saturating_add_signed(change);
        match self.owner_bytes.get_mut(&record.scope.owner) {
            Some(bytes) => *bytes = bytes.saturating_add_signed(change),
            None => {
                self.owner_bytes.insert(record.scope.owner.clone(), 0u64.saturating_add_signed(change));
            }
        }
    }

    pub(super) fn open_call(&mut self, call: CallRow) -> CallRow {
        let (key, is_new) = (call.parent, self.calls.get(&call.id).is_none());
        let opened = self.calls.open(call);
        if is_new {
            self.count_bytes(key, opened.stored_bytes().cast_signed());
        }
        opened
    }

    pub(super) fn change_call(&mut self, id: &str, step: &CallStep, now: Timestamp) -> Option<CallRow> {
        let before = self.calls.get(id)?.stored_bytes();
        let changed = self.calls.change(id, step, now)?;
        self.count_bytes(changed.parent, changed.stored_bytes().cast_signed() - before.cast_signed());
        Some(changed)
    }

    fn apply(&mut self, key: TaskKey, commit: Commit, now: Timestamp) {
        let first_seq = commit.first_seq();
        let visible = commit.visible() > 0;
        let pushes = !commit.push.is_empty() || (visible && commit.head.push_configs > 0);
        let logged = LoggedCommit { version: commit.head.version, first_seq, events: commit.events };
        let entry = LogEntry { last_seq: commit.head.seq, visible, commit: logged };
        let before = match commit.target {
            Target::New { scope } => {
                self.open(key, scope, commit.head, commit.folded, entry);
                None
            }
            Target::Existing { .. } => {
                let Some(record) = self.records.get_mut(&key) else { return };
                let before = Before::of(record);
                record.head = commit.head;
                match commit.folded {
                    Some(folded) => record.folded = folded,
                    None => Arc::make_mut(&mut record.folded).apply_all(&entry.commit.events),
                }
                record.note_begun(record.head.version, &entry.commit.events);
                record.log.push(entry);
                Some(before)
            }
        };
        if let Some(accept) = commit.accept {
            self.accepted.insert(accept.key, key);
            if let Some(record) = self.records.get_mut(&key) {
                // A key may be used again when its window has passed.
                record.accepts.retain(|before| before.key != accept.key);
                // Most records accept one message.
                record.accepts.reserve_exact(1);
                record.accepts.push(accept);
            }
            self.stats.rows_written += 1;
        }
        self.stats.rows_written += 2;
        self.lease_after_commit(key, commit.lease, now);
        if pushes {
            self.change_push(key, commit.push, now);
        }
        self.index(key, before, commit.at);
    }

    fn open(&mut self, key: TaskKey, scope: Scope, head: Arc<Head>, folded: Option<Arc<Folded>>, entry: LogEntry) {
        let scope = self.listed.get_key_value(&scope).map_or_else(|| Arc::new(scope), |(known, _)| known.clone());
        self.by_id.insert(head.id.clone(), key);
        let folded = folded.unwrap_or_else(|| {
            let mut folded = Folded::empty(head.id.clone(), head.context_id.clone());
            folded.apply_all(&entry.commit.events);
            Arc::new(folded)
        });
        let record = Record {
            scope,
            head,
            folded,
            log: vec![entry],
            bytes: 0,
            floor_seq: 0,
            lease: None,
            webhooks: Vec::new(),
            accepts: Vec::new(),
            begun: BTreeMap::new(),
            closed_at: None,
        };
        self.records.insert(key, Box::new(record));
    }

    /// Updates the ordered sets after a record has changed.
    fn index(&mut self, key: TaskKey, before: Option<Before>, at: Timestamp) {
        let Some(record) = self.records.get_mut(&key) else { return };
        let is_live = record.head.phase == Phase::Live;
        let status_at = is_live.then_some(record.head.status_at);
        if let Some(state) = before.and_then(|before| before.listed_under) {
            self.tasks[state as usize] -= 1;
        }
        if is_live {
            self.tasks[record.head.state as usize] += 1;
        }
        if record.head.is_closed() && record.closed_at.is_none() {
            record.closed_at = Some(at);
        }
        let is_closed = record.closed_at.is_some();
        let listed_at = before.and_then(|before| before.listed_at);
        if listed_at != status_at {
            let listed = match self.listed.get_mut(&record.scope) {
                Some(listed) => listed,
                None => self.listed.entry(record.scope.clone()).or_default(),
            };
            if let Some(listed_at) = listed_at {
                listed.remove(&(listed_at, key));
            }
            if let Some(status_at) = status_at {
                listed.insert((status_at, key));
            }
        }
        if is_closed {
            self.index_evictable(key);
        }
    }

    /// Notes whether a record may be evicted: it is closed, and none of its updates waits to be delivered.
    pub(super) fn index_evictable(&mut self, key: TaskKey) {
        let Some(record) = self.records.get(&key) else { return };
        let Some(closed_at) = record.closed_at else { return };
        if record.webhooks.iter().any(|webhook| webhook.claimable_at.is_some()) {
            self.evictable.remove(&(closed_at, key));
        } else {
            self.evictable.insert((closed_at, key));
        }
    }

    /// Whether a commit would fit into an empty store.
    fn can_make_room(commit: &Commit) -> bool {
        event_bytes(&commit.events) < commit.storage.bytes_max
    }

    /// Evicts the oldest closed record, unless it is this one.
    fn evict_oldest_but(&mut self, kept: Option<TaskKey>) -> bool {
        self.evictable.first().is_some_and(|(_, key)| Some(*key) != kept) && self.evict_oldest()
    }

    pub(super) fn evict_oldest(&mut self) -> bool {
        let oldest = self.evictable.first().copied();
        oldest.is_some_and(|(_, key)| self.remove(key))
    }

    /// Removes a record and all index entries that refer to it.
    pub(super) fn remove(&mut self, key: TaskKey) -> bool {
        let Some(record) = self.records.remove(&key) else { return false };
        self.calls.remove(key);
        self.bytes = self.bytes.saturating_sub(record.bytes);
        if let Some(bytes) = self.owner_bytes.get_mut(&record.scope.owner) {
            *bytes = bytes.saturating_sub(record.bytes);
            if *bytes == 0 {
                self.owner_bytes.remove(&record.scope.owner);
            }
        }
        self.by_id.remove(&record.head.id);
        if let Some(listed) = self.listed.get_mut(&record.scope) {
            listed.remove(&(record.head.status_at, key));
            if listed.is_empty() {
                self.listed.remove(&record.scope);
            }
        }
        if record.head.phase == Phase::Live {
            self.tasks[record.head.state as usize] -= 1;
        }
        if let Some(lease) = record.lease {
            self.runs.remove(&(lease.claimable_at, key));
        }
        if let Some(closed_at) = record.closed_at {
            self.evictable.remove(&(closed_at, key));
        }
        for webhook in &record.webhooks {
            self.drop_webhook(webhook);
        }
        for accept in &record.accepts {
            forget(&mut self.accepted, &accept.key, key);
        }
        true
    }

    pub(super) fn find(&self, scope: &Scope, id: &TaskId) -> Option<(TaskKey, &Record)> {
        let key = *self.by_id.get(id)?;
        let record = self.records.get(&key)?;
        (*record.scope == *scope).then_some((key, record))
    }

    pub(super) fn head(&self, scope: &Scope, id: &TaskId) -> Option<StoredHead> {
        let (key, record) = self.find(scope, id)?;
        Some(StoredHead { key, scope: scope.clone(), head: record.head.clone() })
    }

    pub(super) fn task(&self, scope: &Scope, id: &TaskId, bytes_max: u64) -> Option<StoredTask> {
        let (key, record) = self.find(scope, id)?;
        Some(record.stored_within(key, bytes_max))
    }

    pub(super) fn log(&self, key: TaskKey, after_seq: u64, limit: usize) -> Result<LogPage, StoreError> {
        let record = self.records.get(&key).ok_or(StoreError::Pruned)?;
        if after_seq < record.floor_seq {
            return Err(StoreError::Pruned);
        }
        let from = record.log.partition_point(|entry| entry.last_seq <= after_seq);
        let visible = record.log[from..].iter().filter(|entry| entry.visible);
        Ok(LogPage { commits: visible.take(limit).map(|entry| entry.commit.clone()).collect() })
    }

    pub(super) fn find_accepted(&self, key: &[u8; 32], now: Timestamp) -> Option<Accepted> {
        let record = self.records.get(self.accepted.get(key)?)?;
        let Accept { digest, turn, after_seq, expires, .. } =
            *record.accepts.iter().find(|accept| accept.key == *key)?;
        let task_id = record.head.id.clone();
        (expires > now || now < self.held_until).then_some(Accepted { task_id, digest, turn, after_seq })
    }

    /// Forgets idempotency keys whose window has passed, at most `limit`.
    pub(super) fn forget_accepted(&mut self, now: Timestamp, limit: usize) -> usize {
        if self.accepted.is_empty() {
            return 0;
        }
        let mut forgotten = 0;
        for (key, record) in &mut self.records {
            record.accepts.retain(|accept| {
                let is_kept = accept.expires > now || forgotten >= limit;
                if !is_kept {
                    forget(&mut self.accepted, &accept.key, *key);
                    forgotten += 1;
                }
                is_kept
            });
            if forgotten >= limit {
                break;
            }
        }
        forgotten
    }
}

/// Forgets an idempotency key of a record, unless another one has it by now.
fn forget(accepted: &mut HashMap<[u8; 32], TaskKey, IdHash>, key: &[u8; 32], of: TaskKey) {
    if let Entry::Occupied(known) = accepted.entry(*key)
        && *known.get() == of
    {
        known.remove();
    }
}

impl Record {
    pub(super) fn stored(&self, key: TaskKey) -> StoredTask {
        StoredTask { key, head: self.head.clone(), folded: self.folded.clone(), outlined: Vec::new() }
    }
}

/// The keys under which the ordered sets hold a record before a commit changes it.
#[derive(Clone, Copy)]
struct Before {
    listed_at: Option<Timestamp>,
    listed_under: Option<TaskState>,
}

impl Before {
    fn of(record: &Record) -> Self {
        let is_live = record.head.phase == Phase::Live;
        Self { listed_at: is_live.then_some(record.head.status_at), listed_under: is_live.then_some(record.head.state) }
    }
}
