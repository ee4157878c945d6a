//! Runs that are polled by the caller that waits for them: a blocking send, or the stream of the run's own message. That
//! saves a task, and a wake-up for every event. A run whose caller goes away continues as a background task. While the agent
//! of such a run waits for its own [writes](Writes) alone, its caller has nothing else to wait for.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;

use crate::supervisor::Unbroken;

/// A run that its caller polls: see [`Supervisor::attached`](crate::supervisor::Supervisor::attached).
pub(crate) struct AttachedRun {
    pub(crate) run: Unbroken<()>,
    pub(crate) writing: Arc<dyn Writing>,
}

impl AttachedRun {
    /// Ready when the run is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.run).poll(cx)
    }

    /// Whether the agent waits for the store, as of the last poll.
    pub(crate) fn is_writing(&self, cx: &Context<'_>) -> bool {
        self.writing.writes().is_under_way(cx)
    }
}

/// A run that is polled by the stream of its own message.
///
/// A run must not wait for a client that reads slowly. So it stays with its stream only while the stream waits for it: if
/// the run is woken while the stream has given a frame and was not asked for the next one, it becomes a background task. The
/// sweeper does the same with a run that was woken and not polled for a whole sweep.
pub(crate) struct StreamedRun {
    slot: Arc<Slot>,
    /// Given to the run.
    waker: Waker,
    /// The task of the stream, as the slot has it.
    task: Waker,
}

/// All runs that streams poll, so that the sweeper finds those which are not polled.
#[derive(Default)]
pub(crate) struct StreamedRuns(Mutex<Vec<Weak<Slot>>>);

struct Slot {
    runtime: Handle,
    /// None while it is polled, and when it is over or detached.
    run: Mutex<Option<AttachedRun>>,
    /// Whether the run was woken since it was polled last.
    is_woken: AtomicBool,
    /// Whether the last sweep found the run woken.
    is_overdue: AtomicBool,
    /// What the stream does: one of the constants below.
    reader: AtomicU8,
    /// The task of the stream.
    stream: Mutex<Waker>,
}

/// The stream is being polled.
const POLLING: u8 = 0;
/// It waits for the next frame.
const WAITING: u8 = 1;
/// It has a frame, and has not asked for the next one.
const AWAY: u8 = 2;

impl StreamedRun {
    /// Attaches a run, and polls it. None if it is over. Call it inside the runtime.
    pub(crate) fn begin(run: AttachedRun, all: &StreamedRuns) -> Option<Self> {
        let slot = Arc::new(Slot {
            runtime: Handle::current(),
            run: Mutex::new(Some(run)),
            is_woken: AtomicBool::new(true),
            is_overdue: AtomicBool::new(false),
            reader: AtomicU8::new(POLLING),
            stream: Mutex::new(Waker::noop().clone()),
        });
        let mut begun = Self { waker: slot.clone().into(), task: Waker::noop().clone(), slot };
        if begun.poll().is_ready() {
            return None;
        }
        begun.leave();
        all.add(&begun.slot);
        Some(begun)
    }

    /// Called when the stream is polled; says whether the run was woken and must be polled.
    pub(crate) fn is_woken(&self) -> bool {
        self.slot.reader.store(POLLING, SeqCst);
        self.slot.is_woken.load(SeqCst)
    }

    /// Polls the run. Ready if it is over, or polled elsewhere from now on.
    pub(crate) fn poll(&mut self) -> Poll<()> {
        self.slot.is_woken.store(false, SeqCst);
        self.slot.is_overdue.store(false, SeqCst);
        let Some(mut run) = self.slot.take() else { return Poll::Ready(()) };
        let polled = run.poll(&mut Context::from_waker(&self.waker));
        if polled.is_pending() {
            *lock(&self.slot.run) = Some(run);
        }
        polled
    }

    /// Called when the stream waits for the next frame.
    pub(crate) fn wait(&mut self, cx: &Context<'_>) {
        if !self.task.will_wake(cx.waker()) {
            self.task.clone_from(cx.waker());
            lock(&self.slot.stream).clone_from(cx.waker());
        }
        // The waker of the run stores and loads in the other order, so that one of the two sees the other.
        self.slot.reader.store(WAITING, SeqCst);
        if self.slot.is_woken.load(SeqCst) {
            cx.waker().wake_by_ref();
        }
    }

    /// Called when the stream shows a frame.
    pub(crate) fn leave(&self) {
        self.slot.reader.store(AWAY, SeqCst);
        if self.slot.is_woken.load(SeqCst) {
            self.slot.detach();
        }
    }
}

impl Drop for StreamedRun {
    fn drop(&mut self) {
        // A run that is not over continues as a background task.
        drop(self.slot.take());
    }
}

impl Slot {
    fn take(&self) -> Option<AttachedRun> {
        lock(&self.run).take()
    }

    /// Makes the run a background task. The thread that wakes a run may be one of the store's.
    fn detach(&self) {
        let run = self.take();
        let _runtime = run.is_some().then(|| self.runtime.enter());
        drop(run);
    }
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, SeqCst);
        match self.reader.load(SeqCst) {
            WAITING => {
                let stream = lock(&self.stream).clone();
                stream.wake();
            }
            AWAY => self.detach(),
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StreamedRuns {
    fn add(&self, slot: &Arc<Slot>) {
        let mut slots = lock(&self.0);
        if slots.len() == slots.capacity() {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Arc::downgrade(slot));
    }

    /// Detaches the runs that were woken before the last call and not polled since.
    pub(crate) fn detach_overdue(&self) {
        let slots: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        for slot in slots {
            let is_behind = slot.is_woken.load(SeqCst) && slot.reader.load(SeqCst) != POLLING;
            if is_behind && slot.is_overdue.swap(true, SeqCst) {
                slot.detach();
            }
        }
        lock(&self.0).retain(|slot| slot.strong_count() > 0);
    }
}

/// What makes writes: the turn of an agent.
pub(crate) trait Writing: Send + Sync {
    /// Those that are under way.
    fn writes(&self) -> &Writes;
}

/// The writes of one turn that the store has not answered yet. While an agent waits for the store alone, the task that polls
/// its run has nothing else to wait for: the store answers soon, and its answer wakes the run. So the run starts no timers, and
/// its stream sends nothing, for the moment that an ordinary answer takes.
#[derive(Default)]
pub(crate) struct Writes {
    under_way: AtomicU32,
    /// Whether the run is being polled. It looks at `under_way` after that, so it need not be woken.
    is_polling: AtomicBool,
    /// The run, while it waits for the store.
    waiting: Mutex<Option<Waker>>,
}

/// A write that is under way until this is dropped.
pub(crate) struct Write<'a>(&'a Writes);

impl Writes {
    pub(crate) fn begin(&self) -> Write<'_> {
        self.under_way.fetch_add(1, SeqCst);
        Write(self)
    }

    /// Polls the agent.
    pub(crate) fn poll<T>(&self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        self.is_polling.store(true, SeqCst);
        let polled = poll();
        self.is_polling.store(false, SeqCst);
        polled
    }

    /// Whether the store has a write of the agent. If so, the task is woken when it has none any more, also if another task
    /// of the agent made the write.
    pub(crate) fn is_under_way(&self, cx: &Context<'_>) -> bool {
        if self.under_way.load(SeqCst) == 0 {
            return false;
        }
        *lock(&self.waiting) = Some(cx.waker().clone());
        self.under_way.load(SeqCst) > 0
    }
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, SeqCst) > 1 || self.0.is_polling.load(SeqCst) {
            return;
        }
        // Taken first, so that the lock is free when the run is woken.
        let waiting = lock(&self.0.waiting).take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::Writes;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_write_of_another_task_wakes_the_run_when_it_is_over() {
        let (writes, woken) = (Writes::default(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        assert!(!writes.is_under_way(&cx));
        let (first, second) = (writes.begin(), writes.begin());
        assert!(writes.is_under_way(&cx));
        drop(first);
        assert_eq!(woken.0.load(Ordering::SeqCst), 0, "the other one is under way");
        drop(second);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert!(!writes.is_under_way(&cx));
    }

    #[test]
    fn a_write_that_ends_while_the_run_is_polled_wakes_nobody() {
        let (writes, woken) = (Writes::default(), Arc::new(Woken::default()));
        let waker = Waker::from(woken.clone());
        let cx = Context::from_waker(&waker);
        let write = writes.begin();
        assert!(writes.is_under_way(&cx));
        let polled = writes.poll(|| {
            drop(write);
            Poll::<()>::Pending
        });
        assert!(polled.is_pending() && !writes.is_under_way(&cx));
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
    }
}
