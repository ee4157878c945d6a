//! A run that is polled by the stream of its own message, which saves a task and a wake-up for every event.
//!
//! A run must not wait for a client that reads slowly. So it stays with its stream only while the stream waits for it:
//! if the run is woken while the stream has a frame that was not asked for further, it becomes a background task. The
//! sweeper does the same with a run that was woken and not polled for a whole sweep.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;

use super::AttachedRun;

/// See the module.
pub(crate) struct StreamedRun {
    slot: Arc<Slot>,
    /// Given to the run.
    waker: Waker,
}

/// All runs that streams poll, so that the sweeper finds those which are not polled.
#[derive(Default)]
pub(crate) struct StreamedRuns(Mutex<Vec<Weak<Slot>>>);

struct Slot {
    runtime: Handle,
    state: Mutex<State>,
}

struct State {
    /// None while it is polled, and when it is over or detached.
    run: Option<AttachedRun>,
    reader: Reader,
    /// Whether the run was woken since it was polled last.
    is_woken: bool,
    /// Whether the last sweep found the run woken.
    is_overdue: bool,
}

/// What the stream does.
enum Reader {
    /// It is being polled.
    Polling,
    /// It waits for the next frame.
    Waiting(Waker),
    /// It has a frame, and has not asked for the next one.
    Away,
}

impl StreamedRun {
    /// Attaches a run, and polls it. None if it is over. Call it inside the runtime.
    pub(crate) fn begin(run: AttachedRun, all: &StreamedRuns) -> Option<Self> {
        let state = State { run: Some(run), reader: Reader::Away, is_woken: true, is_overdue: false };
        let slot = Arc::new(Slot { runtime: Handle::current(), state: Mutex::new(state) });
        let begun = Self { waker: slot.clone().into(), slot };
        if begun.poll().is_ready() {
            return None;
        }
        begun.leave();
        all.add(&begun.slot);
        Some(begun)
    }

    /// Polls the run if it was woken. Ready if it is over, or polled elsewhere from now on.
    pub(crate) fn poll(&self) -> Poll<()> {
        let mut state = self.slot.lock();
        state.reader = Reader::Polling;
        if !std::mem::take(&mut state.is_woken) {
            return if state.run.is_some() { Poll::Pending } else { Poll::Ready(()) };
        }
        state.is_overdue = false;
        let Some(mut run) = state.run.take() else { return Poll::Ready(()) };
        drop(state);
        let polled = run.poll(&mut Context::from_waker(&self.waker));
        if polled.is_pending() {
            self.slot.lock().run = Some(run);
        }
        polled
    }

    /// Called when the stream waits for the next frame.
    pub(crate) fn wait(&self, cx: &Context<'_>) {
        let mut state = self.slot.lock();
        if state.is_woken {
            cx.waker().wake_by_ref();
        }
        state.reader = Reader::Waiting(cx.waker().clone());
    }

    /// Called when the stream shows a frame.
    pub(crate) fn leave(&self) {
        let mut state = self.slot.lock();
        state.reader = Reader::Away;
        let run = if state.is_woken { state.run.take() } else { None };
        drop(state);
        self.slot.detach(run);
    }
}

impl Drop for StreamedRun {
    fn drop(&mut self) {
        // A run that is not over continues as a background task.
        let run = self.slot.lock().run.take();
        drop(run);
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the run a background task. The thread that wakes a run may be one of the store's.
    fn detach(&self, run: Option<AttachedRun>) {
        let _runtime = self.runtime.enter();
        drop(run);
    }
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_woken = true;
        match &state.reader {
            Reader::Polling => {}
            Reader::Waiting(stream) => {
                let stream = stream.clone();
                drop(state);
                stream.wake();
            }
            Reader::Away => {
                let run = state.run.take();
                drop(state);
                self.detach(run);
            }
        }
    }
}

impl StreamedRuns {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, slot: &Arc<Slot>) {
        let mut slots = self.lock();
        if slots.len() == slots.capacity() {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Arc::downgrade(slot));
    }

    /// Detaches the runs that were woken before the last call and not polled since.
    pub(crate) fn detach_overdue(&self) {
        let slots: Vec<_> = self.lock().iter().filter_map(Weak::upgrade).collect();
        for slot in slots {
            let mut state = slot.lock();
            if !state.is_woken || matches!(state.reader, Reader::Polling) {
                continue;
            }
            let is_overdue = std::mem::replace(&mut state.is_overdue, true);
            let run = if is_overdue { state.run.take() } else { None };
            drop(state);
            slot.detach(run);
        }
        self.lock().retain(|slot| slot.strong_count() > 0);
    }
}
