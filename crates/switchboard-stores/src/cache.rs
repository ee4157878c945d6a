//! A cache of whole records that were written or read lately. Every durable commit of this process is applied here before its
//! caller is answered. So an entry is correct where this process is the only writer. Where others write too, it is what the
//! record was at the entry's version, and a reader must know whether that is new enough.
//!
//! The cache is bounded by number and by estimated bytes; entries that were not used are evicted first. A closed record that
//! was read only to answer the caller who waited for its end is removed by that read, because it is rarely read again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::lifecycle::{Event, Folded, Head};
use switchboard_core::model::{Measure, TaskId};
use switchboard_engine::id_hash::SeededHash;
use switchboard_engine::ports::store::{Scope, StoredHead, StoredTask, TaskKey};

/// A larger record is read from the store each time.
const RECORD_BYTES_MAX: u64 = 64 * 1024;

pub(crate) struct Cache {
    state: Mutex<State>,
}

struct State {
    records_max: usize,
    bytes_max: u64,
    /// Seeded: in some dialects clients choose ids.
    records: HashMap<TaskId, Entry, SeededHash>,
    /// Entries in the order of insertion; an entry that was used since gets a second chance.
    queue: VecDeque<(TaskId, u64)>,
    bytes: u64,
    last_stamp: u64,
    /// Incremented with every batch of commits, so that a reader does not insert what it read before the batch.
    batch: u64,
}

struct Entry {
    key: TaskKey,
    scope: Scope,
    head: Arc<Head>,
    folded: Arc<Folded>,
    bytes: u64,
    stamp: u64,
    used: bool,
}

impl Entry {
    fn stored(&self) -> StoredTask {
        StoredTask { key: self.key, head: self.head.clone(), folded: self.folded.clone(), outlined: Vec::new() }
    }
}

/// The state of the cache when a reader began.
#[derive(Clone, Copy)]
pub(crate) struct CacheGeneration(u64);

/// One durable commit, for the cache.
pub(crate) struct Committed<'a> {
    pub(crate) key: TaskKey,
    /// Given for the first commit of a record.
    pub(crate) scope: Option<Scope>,
    pub(crate) head: Arc<Head>,
    pub(crate) events: &'a [Event],
    pub(crate) folded: Option<Arc<Folded>>,
}

impl Cache {
    pub(crate) fn new(records_max: usize, bytes_max: usize) -> Self {
        let state = State {
            records_max,
            bytes_max: bytes_max as u64,
            records: HashMap::default(),
            queue: VecDeque::new(),
            bytes: 0,
            last_stamp: 0,
            batch: 0,
        };
        Self { state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None if the record is not cached, or belongs to another owner. A caller then looks into the store in either case, so that
    /// the time of an answer does not tell whether a task of another owner is cached.
    pub(crate) fn head(&self, scope: &Scope, id: &TaskId) -> Option<StoredHead> {
        let mut state = self.lock();
        let entry = state.own_entry(scope, id)?;
        Some(StoredHead { key: entry.key, scope: scope.clone(), head: entry.head.clone() })
    }

    /// As [`Cache::head`], with the whole task.
    pub(crate) fn task(&self, scope: &Scope, id: &TaskId) -> Option<StoredTask> {
        let mut state = self.lock();
        Some(state.own_entry(scope, id)?.stored())
    }

    /// As [`Cache::task`], for a caller who waited for the commit of a version. None if the entry is older. If the record is
    /// closed and was not read before, this removes it.
    pub(crate) fn task_since(&self, scope: &Scope, id: &TaskId, version: u64) -> Option<StoredTask> {
        let mut state = self.lock();
        let is_known = |entry: &&mut Entry| entry.scope == *scope && entry.head.version >= version;
        let entry = state.records.get_mut(id).filter(is_known)?;
        let stored = entry.stored();
        if entry.head.is_closed() && !entry.used {
            state.remove(id);
        } else {
            entry.used = true;
        }
        Some(stored)
    }

    pub(crate) fn generation(&self) -> CacheGeneration {
        CacheGeneration(self.lock().batch)
    }

    /// Inserts what a reader found, unless something was committed since the reader began.
    pub(crate) fn fill(&self, generation: CacheGeneration, scope: &Scope, stored: &StoredTask) {
        let bytes = RECORD_BYTES_BASE + folded_bytes(&stored.folded);
        let mut state = self.lock();
        if state.batch == generation.0 && !state.records.contains_key(&stored.head.id) {
            let StoredTask { key, head, folded, .. } = stored.clone();
            state.insert(key, scope.clone(), head, folded, bytes);
        }
    }

    /// Applies a durable batch, before its callers are answered.
    pub(crate) fn update<T>(&self, apply: impl FnOnce(&mut Updates<'_>) -> T) -> T {
        let mut state = self.lock();
        state.batch += 1;
        apply(&mut Updates { state: &mut state })
    }
}

pub(crate) struct Updates<'a> {
    state: &'a mut State,
}

impl Updates<'_> {
    pub(crate) fn committed(&mut self, commit: Committed<'_>) {
        let Committed { key, scope, head, events, folded } = commit;
        match scope {
            Some(scope) => {
                let bytes = RECORD_BYTES_BASE + events_bytes(events);
                if bytes > RECORD_BYTES_MAX {
                    return;
                }
                let folded = folded.unwrap_or_else(|| {
                    let mut folded = Folded::empty(head.id.clone(), head.context_id.clone());
                    folded.apply_all(events);
                    Arc::new(folded)
                });
                self.state.insert(key, scope, head, folded, bytes);
            }
            None => self.state.advance(head, events, folded),
        }
    }

    pub(crate) fn removed(&mut self, id: &TaskId) {
        self.state.remove(id);
    }
}

impl State {
    /// The entry of a record for its owner, for whom it then stays longer. Reads by others change nothing.
    fn own_entry(&mut self, scope: &Scope, id: &TaskId) -> Option<&Entry> {
        let entry = self.records.get_mut(id).filter(|entry| entry.scope == *scope)?;
        entry.used = true;
        Some(entry)
    }

    fn insert(&mut self, key: TaskKey, scope: Scope, head: Arc<Head>, folded: Arc<Folded>, bytes: u64) {
        if bytes > RECORD_BYTES_MAX {
            return;
        }
        self.last_stamp += 1;
        let (id, stamp) = (head.id.clone(), self.last_stamp);
        let entry = Entry { key, scope, head, folded, bytes, stamp, used: false };
        if let Some(old) = self.records.insert(id.clone(), entry) {
            self.bytes -= old.bytes;
        }
        self.queue.push_back((id, stamp));
        self.bytes += bytes;
        self.shrink();
    }

    /// Applies a commit to an entry, or drops the entry if it is not at the version before it.
    fn advance(&mut self, head: Arc<Head>, events: &[Event], folded: Option<Arc<Folded>>) {
        let Some(entry) = self.records.get_mut(&head.id) else { return };
        let more = events_bytes(events);
        if entry.head.version + 1 != head.version || entry.bytes + more > RECORD_BYTES_MAX {
            self.remove(&head.id);
            return;
        }
        match folded.filter(|folded| !folded.is_shortened) {
            Some(folded) => entry.folded = folded,
            None => Arc::make_mut(&mut entry.folded).apply_all(events),
        }
        entry.head = head;
        entry.bytes += more;
        self.bytes += more;
        self.shrink();
    }

    fn remove(&mut self, id: &TaskId) {
        if let Some(entry) = self.records.remove(id) {
            self.bytes -= entry.bytes;
        }
    }

    fn shrink(&mut self) {
        while self.records.len() > self.records_max || self.bytes > self.bytes_max {
            let Some((id, stamp)) = self.queue.pop_front() else { return };
            match self.records.get_mut(&id) {
                Some(entry) if entry.stamp == stamp && entry.used => {
                    entry.used = false;
                    self.queue.push_back((id, stamp));
                }
                Some(entry) if entry.stamp == stamp => self.remove(&id),
                Some(_) | None => {}
            }
        }
        // Entries that were removed in other ways are still in the queue.
        if self.queue.len() > 2 * self.records.len() + 16 {
            let records = &self.records;
            self.queue.retain(|(id, stamp)| records.get(id).is_some_and(|entry| entry.stamp == *stamp));
        }
    }
}

/// The approximate size of a record without its contents.
const RECORD_BYTES_BASE: u64 = 1024;
const EVENT_BYTES_BASE: u64 = 128;

fn events_bytes(events: &[Event]) -> u64 {
    events.iter().map(|event| EVENT_BYTES_BASE + event_bytes(event)).sum()
}

fn event_bytes(event: &Event) -> u64 {
    let about = Measure::ABOUT;
    match event {
        Event::Received { inbound, .. } | Event::Opened { inbound, .. } | Event::MessageAdded { inbound } => {
            about.message(&inbound.message) + about.metadata(inbound.metadata.as_ref())
        }
        Event::StatusChanged { message, metadata, .. } => {
            message.as_deref().map_or(0, |said| about.message(said)) + about.metadata(metadata.as_ref())
        }
        Event::ArtifactWritten { artifact, .. } => about.artifact(artifact),
        Event::Noted { message } | Event::Replied { message } => about.message(message),
        Event::Checkpoint { value } => about.metadata(Some(value)),
        Event::TurnBegan { .. } | Event::TurnEnded | Event::CancelRequested { .. } | Event::Claimed { .. } => 0,
    }
}

fn folded_bytes(folded: &Folded) -> u64 {
    let about = Measure::ABOUT;
    about.task(&folded.task, true)
        + folded.reply.as_deref().map_or(0, |reply| about.message(reply))
        + about.metadata(folded.checkpoint.as_ref())
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
