//! The answers to a batch. All answers are stored before any waiter is woken, and each runtime is woken once: one task
//! in the runtime wakes its waiters, where waking is cheap. If the writer thread woke each waiter, that would be a
//! system call, and often a thread switch, for every commit of a batch.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use switchboard_engine::ports::store::StoreError;
use tokio::runtime::Handle;

use super::error::stopped;

/// The slot that holds one answer, shared by the writer and the waiter.
pub(super) fn answer<T>() -> (Reply<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None, closed: false }));
    (Reply { slot: slot.clone(), runtime: Handle::try_current().ok() }, Answer(slot))
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    /// The writer is done with this slot, with or without an answer.
    closed: bool,
}

/// The writer's side.
pub(super) struct Reply<T> {
    slot: Arc<Mutex<Slot<T>>>,
    /// Where the waiter runs.
    runtime: Option<Handle>,
}

impl<T> Reply<T> {
    /// Stores the answer. Its waiter is woken with the others of the batch.
    pub(super) fn leave(mut self, value: T, wake_list: &mut WakeList) {
        let mut slot = lock(&self.slot);
        slot.value = Some(value);
        slot.closed = true;
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            wake_list.add(self.runtime.take(), waker);
        }
    }
}

impl<T> Drop for Reply<T> {
    /// If the writer stops without an answer, the waiter gets an error.
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        slot.closed = true;
        let waker = slot.waker.take();
        drop(slot);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The waiter's side.
pub(super) struct Answer<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Answer<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = lock(&self.0);
        match slot.value.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None if slot.closed => Poll::Ready(Err(stopped())),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The wakers of a batch, by runtime; nearly always there is one runtime.
#[derive(Default)]
pub(super) struct WakeList(Vec<RuntimeWakers>);

struct RuntimeWakers {
    runtime: Option<Handle>,
    wakers: Vec<Waker>,
}

impl WakeList {
    fn add(&mut self, runtime: Option<Handle>, waker: Waker) {
        let id = |runtime: &Option<Handle>| runtime.as_ref().map(Handle::id);
        match self.0.iter_mut().find(|asleep| id(&asleep.runtime) == id(&runtime)) {
            Some(asleep) => asleep.wakers.push(waker),
            None => self.0.push(RuntimeWakers { runtime, wakers: vec![waker] }),
        }
    }

    pub(super) fn wake(self) {
        for RuntimeWakers { runtime, wakers } in self.0 {
            let wakers = Wakers(wakers);
            match runtime {
                #[expect(clippy::disallowed_methods, reason = "it only wakes; dropped unrun, it still does")]
                Some(runtime) if wakers.0.len() > 1 => drop(runtime.spawn(async move { drop(wakers) })),
                Some(_) | None => drop(wakers),
            }
        }
    }
}

/// Wakes its wakers when it is dropped, also if the runtime ends before the task ran.
struct Wakers(Vec<Waker>);

impl Drop for Wakers {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;
