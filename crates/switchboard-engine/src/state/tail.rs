//! The shared tail of a followed task: a bounded ring of its newest updates, each encoded at most once per dialect, however
//! many readers there are. A tail exists while the task is followed and costs nothing otherwise. An update stays in the ring
//! until every reader has it, so the tail of a task with one reader that keeps up is empty.
//!
//! What this process commits is fed into the ring, which saves its followers a read. A hint from another process brings
//! no events: it carries the number of the newest event, and [`catch_up_forever`](crate::watching::catch_up_forever) reads the store once for all
//! followers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use switchboard_core::call::SharedUpdate;
use switchboard_core::lifecycle::{Event, updates};
use switchboard_core::model::{ContextId, Measure, TaskId};
use tokio::sync::Notify;

use crate::id_hash::{IdHash, SeededHash};
use crate::ports::store::{Scope, TaskKey};

const SHARDS: usize = 16;

/// Seeded: in some dialects clients choose ids.
type Shard = HashMap<TaskId, Weak<Tail>, SeededHash>;

/// All tails of this process.
pub(crate) struct Tails {
    shards: [Mutex<Shard>; SHARDS],
    updates_max: usize,
    bytes_max: u64,
    /// Tasks with events that their tails have not got yet; in order of ids, so that a simulation takes the same steps every time.
    overtaken: Mutex<BTreeMap<TaskId, Weak<Tail>>>,
    is_overtaken: Notify,
}

impl Tails {
    pub(crate) fn new(updates_max: usize, bytes_max: usize) -> Arc<Self> {
        let shards = std::array::from_fn(|_| Mutex::default());
        let (overtaken, is_overtaken) = (Mutex::default(), Notify::new());
        Arc::new(Self { shards, updates_max, bytes_max: bytes_max as u64, overtaken, is_overtaken })
    }

    /// The tail of a task. It is created with the cursor `seq` if the task has no followers yet.
    pub(crate) fn follow(self: &Arc<Self>, scope: &Scope, id: &TaskId, seq: u64) -> Arc<Tail> {
        let mut shard = self.shard(id);
        if let Some(tail) = shard.get(id).and_then(Weak::upgrade) {
            return tail;
        }
        let ring = Ring { floor: seq, last: seq, ..Ring::default() };
        let tail = Arc::new(Tail {
            scope: scope.clone(),
            id: id.clone(),
            place: OnceLock::new(),
            ring: Mutex::new(ring),
            tails: Arc::downgrade(self),
        });
        shard.insert(id.clone(), Arc::downgrade(&tail));
        tail
    }

    pub(crate) fn find(&self, id: &TaskId) -> Option<Arc<Tail>> {
        self.shard(id).get(id).and_then(Weak::upgrade)
    }

    /// Waits for a tail that has been overtaken. It is given to one caller, who ends with [`Tail::lag`] or [`Tail::leave_behind`].
    pub(crate) async fn next_overtaken(&self) -> Arc<Tail> {
        loop {
            let next = self.overtaken.lock().unwrap_or_else(PoisonError::into_inner).pop_first();
            match next {
                Some((_, tail)) => {
                    if let Some(tail) = tail.upgrade() {
                        return tail;
                    }
                }
                None => self.is_overtaken.notified().await,
            }
        }
    }

    /// All tails that have followers now.
    pub(crate) fn all(&self) -> Vec<Arc<Tail>> {
        let lock = |shard: &Mutex<Shard>| -> Vec<Arc<Tail>> {
            shard.lock().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
        };
        let mut tails: Vec<_> = self.shards.iter().flat_map(lock).collect();
        // In order of ids, so that a simulation takes the same steps every time.
        tails.sort_by(|a, b| a.id.cmp(&b.id));
        tails
    }

    /// Ends every stream of this process; clients resume elsewhere or later.
    pub(crate) fn close_all(&self) {
        for tail in self.all() {
            tail.close();
        }
    }

    fn shard(&self, id: &TaskId) -> MutexGuard<'_, Shard> {
        let index = usize::try_from((IdHash::default().hash_one(id) >> 40) % SHARDS as u64).unwrap_or(0);
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest updates of one task.
pub(crate) struct Tail {
    scope: Scope,
    id: TaskId,
    /// Where the log is, once that was read.
    pub(crate) place: OnceLock<(TaskKey, ContextId)>,
    ring: Mutex<Ring>,
    tails: Weak<Tails>,
}

#[derive(Default)]
struct Ring {
    updates: VecDeque<(u64, Arc<SharedUpdate>)>,
    bytes: u64,
    /// Everything above this number is in `updates`.
    floor: u64,
    last: u64,
    /// The newest event that this process has heard of.
    heard_of: u64,
    /// Whether the tail waits to be brought up to that event, or is.
    is_catching_up: bool,
    closing: bool,
    /// How often the record was reported closed without an update. A reader that waits for that reads the store again.
    replies: u64,
    readers: Readers,
}

/// When the ring holds more updates than this, those that every reader has are dropped.
const UNREAD_MIN: usize = 32;

/// The result of reading the ring.
pub(crate) enum TailRead {
    /// There were updates, and they were handed over.
    Updates,
    /// The ring does not hold the next update: read the store.
    Behind,
    /// The process is shutting down.
    Closing,
}

impl Tail {
    /// Adds a reader that already has the updates up to `cursor`, and returns its number.
    pub(crate) fn reader(&self, cursor: u64) -> u64 {
        self.update_quietly(|ring| ring.readers.add(cursor))
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn task_id(&self) -> &TaskId {
        &self.id
    }

    /// How often the record was reported closed without an update, for [`Tail::poll_answer`].
    pub(crate) fn replies(&self) -> u64 {
        self.update_quietly(|ring| ring.replies)
    }

    /// As [`Tail::poll_after`], for a waiter that must also read the store if the record has closed without an update
    /// since it last did.
    pub(crate) fn poll_answer(
        &self,
        cursor: u64,
        replies: u64,
        reader: u64,
        cx: &mut Context<'_>,
        give: impl FnMut(u64, Arc<SharedUpdate>),
    ) -> Poll<TailRead> {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        match ring.replies == replies {
            true => ring.poll_after(cursor, reader, cx, give),
            false => Poll::Ready(TailRead::Behind),
        }
    }

    /// Gives a reader every update after `cursor`; it sleeps while there are none.
    pub(crate) fn poll_after(
        &self,
        cursor: u64,
        reader: u64,
        cx: &mut Context<'_>,
        give: impl FnMut(u64, Arc<SharedUpdate>),
    ) -> Poll<TailRead> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner).poll_after(cursor, reader, cx, give)
    }

    /// Called when a reader is awake: it reads on without being woken.
    pub(crate) fn awake(&self, reader: u64) {
        self.update_quietly(|ring| {
            if let Some(reader) = ring.readers.get_mut(reader) {
                reader.waker = None;
            }
        });
    }

    pub(crate) fn forget(&self, reader: u64) {
        self.update_quietly(|ring| ring.readers.remove(reader));
    }

    /// Ends the streams that follow this tail, once they have shown what is there.
    pub(crate) fn close(&self) {
        self.update(|ring| ring.closing = true);
    }

    /// Called by a new follower with the number of the task's newest event, which it has read from the store. A tail without readers
    /// begins after that event; one that others read is brought up to it.
    pub(crate) fn joins(self: &Arc<Self>, seq: u64) {
        let is_first = self.update_quietly(|ring| {
            let is_first = ring.readers.is_empty();
            if is_first {
                ring.skip_to(seq);
            }
            is_first
        });
        if !is_first {
            self.overtaken(seq);
        }
    }

    /// Called with the number of the task's newest event. If the ring does not have it, the store is read soon.
    pub(crate) fn overtaken(self: &Arc<Self>, seq: u64) {
        let begins = self.update_quietly(|ring| {
            ring.heard_of = ring.heard_of.max(seq);
            let begins = seq > ring.last && !ring.is_catching_up;
            ring.is_catching_up |= begins;
            begins
        });
        let Some(tails) = self.tails.upgrade().filter(|_| begins) else { return };
        let mut overtaken = tails.overtaken.lock().unwrap_or_else(PoisonError::into_inner);
        overtaken.insert(self.id.clone(), Arc::downgrade(self));
        drop(overtaken);
        tails.is_overtaken.notify_one();
    }

    /// The last update in the ring and the newest that was heard of, if they differ. If they do not, catching up has ended.
    pub(crate) fn lag(&self) -> Option<(u64, u64)> {
        self.update_quietly(|ring| {
            ring.is_catching_up = ring.last < ring.heard_of;
            ring.is_catching_up.then_some((ring.last, ring.heard_of))
        })
    }

    /// Called if the store does not have what was heard of: true if this process has heard of something newer meanwhile. Otherwise
    /// catching up has ended.
    pub(crate) fn leave_behind(&self, heard_of: u64) -> bool {
        self.update_quietly(|ring| {
            ring.is_catching_up = ring.heard_of > heard_of;
            if !ring.is_catching_up {
                ring.heard_of = ring.last;
            }
            ring.is_catching_up
        })
    }

    /// Leaves out the updates up to this one, which are no longer kept one by one. Readers that have not seen them read the store.
    pub(crate) fn skip_to(&self, seq: u64) {
        self.update(|ring| ring.skip_to(seq));
    }

    /// Gives the readers the events of a commit, of which the first visible one has this number.
    pub(crate) fn take_commit(&self, context_id: &ContextId, first_seq: u64, events: &[Event]) {
        let Some(tails) = self.tails.upgrade() else { return };
        self.update(|ring| {
            if events.iter().any(|event| matches!(event, Event::Replied { .. })) {
                ring.replies += 1;
            }
            for (seq, update) in updates(&self.id, context_id, first_seq, events) {
                if seq <= ring.last {
                    continue;
                }
                if seq > ring.last + 1 {
                    ring.skip_to(seq - 1);
                }
                ring.bytes += Measure::ABOUT.update(&update);
                ring.updates.push_back((seq, SharedUpdate::new(update)));
                ring.last = seq;
            }
            if ring.updates.len() > UNREAD_MIN {
                let shown = ring.readers.slowest_cursor();
                ring.let_go(shown);
            }
            while ring.updates.len() > tails.updates_max || (ring.bytes > tails.bytes_max && ring.updates.len() > 1) {
                let oldest = ring.floor + 1;
                ring.let_go(oldest);
            }
        });
    }

    /// Called when the record was closed by a direct reply, which is no update: readers that wait for it must read the
    /// store.
    pub(crate) fn replied(&self) {
        self.update(|ring| ring.replies += 1);
    }

    /// Changes the ring and wakes the readers that sleep.
    fn update(&self, change: impl FnOnce(&mut Ring)) {
        let (first, others) = self.update_quietly(|ring| {
            change(ring);
            let mut sleepers = ring.readers.all_mut().filter_map(|reader| reader.waker.take());
            (sleepers.next(), sleepers.collect::<Vec<_>>())
        });
        for waker in first.into_iter().chain(others) {
            waker.wake();
        }
    }

    fn update_quietly<T>(&self, change: impl FnOnce(&mut Ring) -> T) -> T {
        change(&mut self.ring.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ring {
    fn poll_after(
        &mut self,
        cursor: u64,
        reader: u64,
        cx: &mut Context<'_>,
        mut give: impl FnMut(u64, Arc<SharedUpdate>),
    ) -> Poll<TailRead> {
        if cursor < self.floor {
            return Poll::Ready(TailRead::Behind);
        }
        let is_alone = self.readers.is_one();
        let Some(own) = self.readers.get_mut(reader) else { return Poll::Ready(TailRead::Behind) };
        if cursor < self.last {
            own.cursor = self.last;
            if is_alone {
                self.bytes = 0;
                self.floor = self.last;
                self.updates.drain(..).filter(|(seq, _)| *seq > cursor).for_each(|(seq, update)| give(seq, update));
            } else {
                let unread = usize::try_from(cursor - self.floor).unwrap_or(usize::MAX);
                self.updates.iter().skip(unread).for_each(|(seq, update)| give(*seq, update.clone()));
            }
            return Poll::Ready(TailRead::Updates);
        }
        if self.closing {
            return Poll::Ready(TailRead::Closing);
        }
        match &mut own.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => own.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Drops the updates up to this one.
    fn let_go(&mut self, seq: u64) {
        while let Some((oldest, update)) = self.updates.front().filter(|(oldest, _)| *oldest <= seq) {
            self.bytes -= Measure::ABOUT.update(&update.update);
            self.floor = *oldest;
            self.updates.pop_front();
        }
    }

    fn skip_to(&mut self, seq: u64) {
        if seq > self.last {
            self.updates.clear();
            self.bytes = 0;
            self.floor = seq;
            self.last = seq;
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(tails) = self.tails.upgrade() {
            let mut shard = tails.shard(&self.id);
            // A new tail may have been registered under this id meanwhile.
            if shard.get(&self.id).is_some_and(|tail| tail.strong_count() == 0) {
                shard.remove(&self.id);
            }
        }
    }
}

/// A reader of the ring.
struct Reader {
    /// The last update it was given.
    cursor: u64,
    /// Set while it sleeps.
    waker: Option<Waker>,
}

/// The readers of one tail. They have numbers, so that adding and waking one does not depend on how many there are, and the order is
/// fixed. Nearly every task has one reader, which needs no memory of its own.
#[derive(Default)]
struct Readers {
    /// The one with the least number, unless it has gone before others.
    first: Option<(u64, Reader)>,
    others: BTreeMap<u64, Reader>,
    last_number: u64,
}

impl Readers {
    /// Adds a reader that has the updates up to `cursor`, and returns its number.
    fn add(&mut self, cursor: u64) -> u64 {
        self.last_number += 1;
        let reader = Reader { cursor, waker: None };
        if self.is_empty() {
            self.first = Some((self.last_number, reader));
        } else {
            self.others.insert(self.last_number, reader);
        }
        self.last_number
    }

    fn remove(&mut self, number: u64) {
        if self.first.take_if(|(first, _)| *first == number).is_none() {
            self.others.remove(&number);
        }
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Reader> {
        match &mut self.first {
            Some((first, reader)) if *first == number => Some(reader),
            _ => self.others.get_mut(&number),
        }
    }

    /// All of them, in the order of their numbers.
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.first.iter_mut().map(|(_, reader)| reader).chain(self.others.values_mut())
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_empty()
    }

    /// Whether there is one reader and no more.
    fn is_one(&self) -> bool {
        usize::from(self.first.is_some()) + self.others.len() == 1
    }

    /// What every reader has been given; zero if there is none.
    fn slowest_cursor(&self) -> u64 {
        let first = self.first.iter().map(|(_, reader)| reader.cursor);
        first.chain(self.others.values().map(|reader| reader.cursor)).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Readers;

    fn cursors(readers: &mut Readers) -> Vec<u64> {
        readers.all_mut().map(|reader| reader.cursor).collect()
    }

    #[test]
    fn readers_stay_in_the_order_in_which_they_came() {
        let mut readers = Readers::default();
        assert!(readers.is_empty() && !readers.is_one() && readers.slowest_cursor() == 0);
        let [first, second, third] = [7, 5, 6].map(|cursor| readers.add(cursor));
        assert_eq!((cursors(&mut readers), readers.slowest_cursor()), (vec![7, 5, 6], 5));
        readers.remove(first);
        let fourth = readers.add(9);
        assert_eq!(cursors(&mut readers), [5, 6, 9], "a place that became free is not before those who wait longer");
        assert!(readers.get_mut(first).is_none() && readers.get_mut(third).is_some_and(|reader| reader.cursor == 6));
        readers.remove(second);
        readers.remove(fourth);
        assert!(readers.is_one() && !readers.is_empty());
        readers.remove(third);
        assert!(readers.is_empty());
        let fifth = readers.add(1);
        assert!(readers.is_one() && readers.get_mut(fifth).is_some());
    }
}
