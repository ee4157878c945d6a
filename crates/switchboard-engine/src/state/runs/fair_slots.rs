//! Slots that are shared out by owner. While there are free ones, whoever comes gets one, without a lock. When there are none,
//! each owner has a queue of its own, and a slot that becomes free goes to the owners in turn: the run of an owner with one
//! waits behind one run of each other owner, however many they have waiting.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::call::Owner;
use tokio::sync::oneshot;

#[derive(Clone, Debug)]
pub(crate) struct FairSlots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    free: AtomicUsize,
    /// How many wait. It is raised before a waiter looks for a free slot, and a slot that is given back is free before this is
    /// read, so a waiter never misses one.
    waiting: AtomicUsize,
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    of_owners: BTreeMap<Owner, VecDeque<oneshot::Sender<FairSlot>>>,
    /// The owner that was served last; the next in order is served next.
    served: Option<Owner>,
}

/// One slot, until it is dropped.
#[derive(Debug)]
pub(crate) struct FairSlot {
    /// None once the slot has been handed on.
    of: Option<Arc<Inner>>,
}

impl FairSlots {
    pub(crate) fn new(slots: usize) -> Self {
        let (free, waiting, queues) = (AtomicUsize::new(slots), AtomicUsize::new(0), Mutex::default());
        Self { inner: Arc::new(Inner { free, waiting, queues }) }
    }

    /// A slot, if one is free now. None while others wait, because they come first.
    pub(crate) fn try_take(&self) -> Option<FairSlot> {
        let is_free = self.inner.waiting.load(SeqCst) == 0 && self.inner.take_free();
        is_free.then(|| self.inner.slot())
    }

    /// Whether every slot is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.inner.free.load(SeqCst) == 0
    }

    /// Waits for a slot. A waiter that is dropped loses its place.
    pub(crate) async fn take(&self, owner: &Owner) -> FairSlot {
        loop {
            if let Some(slot) = self.try_take() {
                return slot;
            }
            let receiver = {
                let mut queues = self.inner.lock();
                self.inner.waiting.fetch_add(1, SeqCst);
                let (sender, receiver) = oneshot::channel();
                queues.of_owners.entry(owner.clone()).or_default().push_back(sender);
                receiver
            };
            // A slot may have been given back before this one waited.
            self.inner.hand_out();
            // Whoever serves this queue sends a slot; it is never dropped without one.
            if let Ok(slot) = receiver.await {
                return slot;
            }
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(self: &Arc<Self>) -> FairSlot {
        FairSlot { of: Some(self.clone()) }
    }

    fn take_free(&self) -> bool {
        self.free.fetch_update(SeqCst, SeqCst, |free| free.checked_sub(1)).is_ok()
    }

    /// Gives free slots to those who wait.
    fn hand_out(self: &Arc<Self>) {
        while self.waiting.load(SeqCst) > 0 {
            let mut queues = self.lock();
            if !self.take_free() {
                return;
            }
            let Some(waiter) = queues.next() else {
                self.free.fetch_add(1, SeqCst);
                return;
            };
            self.waiting.fetch_sub(1, SeqCst);
            drop(queues);
            // A waiter that has gone leaves the slot for the next one.
            if let Err(mut unused) = waiter.send(self.slot()) {
                unused.of = None;
                self.free.fetch_add(1, SeqCst);
            }
        }
    }
}

impl Queues {
    /// The first waiter of the owner whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<FairSlot>> {
        let after = self.served.as_ref().and_then(|served| {
            use std::ops::Bound::{Excluded, Unbounded};
            self.of_owners.range((Excluded(served), Unbounded)).next()
        });
        let owner = after.or_else(|| self.of_owners.iter().next()).map(|(owner, _)| owner.clone())?;
        let queue = self.of_owners.get_mut(&owner)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.of_owners.remove(&owner);
        }
        self.served = Some(owner);
        waiter
    }
}

impl Drop for FairSlot {
    fn drop(&mut self) {
        if let Some(of) = self.of.take() {
            of.free.fetch_add(1, SeqCst);
            of.hand_out();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use switchboard_core::call::Owner;

    use super::FairSlots;

    fn owner(name: &str) -> Owner {
        Owner { tenant: "".into(), principal: name.into() }
    }

    #[test]
    fn owners_take_turns_however_many_one_has_waiting() {
        let slots = FairSlots::new(1);
        let held = slots.try_take().unwrap();
        assert!(slots.is_full() && slots.try_take().is_none());
        let (a, b, c) = (owner("a"), owner("b"), owner("c"));
        let mut waiting: Vec<_> = [("a", &a), ("a", &a), ("a", &a), ("b", &b), ("c", &c), ("b", &b)]
            .map(|(name, owner)| (name, Box::pin(slots.take(owner))))
            .into();
        let mut cx = Context::from_waker(Waker::noop());
        for (_, waits) in &mut waiting {
            assert!(waits.as_mut().poll(&mut cx).is_pending());
        }
        let (mut order, mut slot) = (Vec::new(), Some(held));
        while !waiting.is_empty() {
            drop(slot.take());
            let ready = waiting.iter_mut().position(|(_, waits)| match waits.as_mut().poll(&mut cx) {
                Poll::Ready(taken) => slot.replace(taken).is_none(),
                Poll::Pending => false,
            });
            order.push(waiting.remove(ready.expect("the slot goes to a waiter")).0);
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
        drop(slot);
        assert!(slots.try_take().is_some());
    }

    #[test]
    fn a_waiter_that_goes_loses_no_slot() {
        let slots = FairSlots::new(1);
        let (a, b) = (owner("a"), owner("b"));
        let held = slots.try_take().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut gone = Box::pin(slots.take(&a));
        let mut stays = pin!(slots.take(&b));
        assert!(gone.as_mut().poll(&mut cx).is_pending() && stays.as_mut().poll(&mut cx).is_pending());
        drop(gone);
        drop(held);
        let Poll::Ready(slot) = stays.as_mut().poll(&mut cx) else { panic!("the slot is for who still waits") };
        // One that was given a slot and goes without taking it gives it back.
        let mut given = Box::pin(slots.take(&a));
        assert!(given.as_mut().poll(&mut cx).is_pending());
        drop(slot);
        drop(given);
        assert!(slots.try_take().is_some());
    }
}
