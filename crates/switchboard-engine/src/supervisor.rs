//! The only place that spawns tasks. Every background task has a kind, and the kind decides what shutdown does with it.
//!
//! [`poll_when_woken`] is for a task that waits for several futures: `select!` polls all of its branches whenever one of
//! them is woken, and this polls a branch only after it was woken itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;
use switchboard_core::call::BoxFuture;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// What a background task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A client's connection. Shutdown waits for it, so that requests in flight are answered.
    Connection,
    /// An agent's run. Shutdown waits for it during the grace period, then drops it and releases its lease.
    Run,
    /// A webhook call. Shutdown drops it at once; it will be delivered again.
    Delivery,
    /// A maintenance loop. Shutdown drops it at once.
    Sweep,
}

/// Owns every background task of a process. Cheap to clone.
#[derive(Clone)]
pub struct Supervisor(Arc<Shared>);

struct Shared {
    /// Cancelled first: nothing new is started.
    draining: CancellationToken,
    /// Cancelled last: everything stops.
    stopping: CancellationToken,
    /// Set before `draining` and `stopping` are cancelled, because asking a token takes a lock that all tasks share.
    is_draining: AtomicBool,
    is_stopping: AtomicBool,
    connections: TaskTracker,
    runs: TaskTracker,
    others: TaskTracker,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervisor {
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            is_draining: AtomicBool::new(false),
            is_stopping: AtomicBool::new(false),
            connections: TaskTracker::new(),
            runs: TaskTracker::new(),
            others: TaskTracker::new(),
        }))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    pub fn spawn(&self, kind: Kind, task: impl Future<Output = ()> + Send + 'static) {
        let stopped = self.0.stopping.clone().cancelled_owned();
        let task = UntilStopped { task, stopped, waits: false, shared: self.0.clone() };
        match kind {
            Kind::Connection => drop(self.0.connections.spawn(task)),
            Kind::Run => drop(self.0.runs.spawn(task)),
            Kind::Delivery | Kind::Sweep => drop(self.0.others.spawn(task)),
        }
    }

    /// Work that must be finished once begun: if the caller drops the future, the work continues as a background task
    /// of the kind [`Kind::Run`].
    pub fn unbroken<T: Send + 'static>(&self, work: BoxFuture<'static, T>) -> Unbroken<T> {
        Unbroken { supervisor: self.clone(), work: Some(work), begun: false, _counted: None }
    }

    /// A run that is polled by the caller that waits for its outcome, which saves a task of its own and the wake-ups
    /// between the two. If the caller drops the future, the run continues as a background task. Shutdown counts it as a
    /// run from the beginning.
    pub(crate) fn attached(&self, run: BoxFuture<'static, ()>) -> Unbroken<()> {
        Unbroken { supervisor: self.clone(), work: Some(run), begun: true, _counted: Some(self.0.runs.token()) }
    }

    /// Cancelled as soon as the process begins to shut down.
    #[must_use]
    pub fn draining(&self) -> &CancellationToken {
        &self.0.draining
    }

    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.0.is_draining.load(Ordering::Acquire)
    }

    pub fn begin_drain(&self) {
        self.0.is_draining.store(true, Ordering::Release);
        self.0.draining.cancel();
    }

    /// Waits until all connections have ended, but not longer than `at_most`; true if they have.
    pub async fn wait_connections(&self, at_most: Duration) -> bool {
        self.0.connections.close();
        tokio::time::timeout(at_most, self.0.connections.wait()).await.is_ok()
    }

    /// Waits until all runs have ended, but not longer than `at_most`; true if they have.
    pub async fn wait_runs(&self, at_most: Duration) -> bool {
        self.0.runs.close();
        tokio::time::timeout(at_most, self.0.runs.wait()).await.is_ok()
    }

    /// Stops and drops all remaining tasks.
    pub async fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::Release);
        self.0.stopping.cancel();
        for tracker in [&self.0.connections, &self.0.runs, &self.0.others] {
            tracker.close();
            tracker.wait().await;
        }
    }

    #[must_use]
    pub fn runs_alive(&self) -> usize {
        self.0.runs.len()
    }

    #[must_use]
    pub fn connections_alive(&self) -> usize {
        self.0.connections.len()
    }
}

pin_project! {
    /// A spawned task, which ends early when everything stops.
    struct UntilStopped<F> {
        #[pin]
        task: F,
        #[pin]
        stopped: WaitForCancellationFutureOwned,
        // Whether the token has the waker of the task, which is the same at every poll.
        waits: bool,
        shared: Arc<Shared>,
    }
}

impl<F: Future<Output = ()>> Future for UntilStopped<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if (!*this.waits || this.shared.is_stopping.load(Ordering::Acquire)) && this.stopped.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        *this.waits = true;
        this.task.poll(cx)
    }
}

/// See [`Supervisor::unbroken`].
pub struct Unbroken<T: Send + 'static> {
    supervisor: Supervisor,
    work: Option<BoxFuture<'static, T>>,
    /// Work that was never polled is dropped with the future.
    begun: bool,
    _counted: Option<TaskTrackerToken>,
}

impl<T: Send + 'static> Future for Unbroken<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unbroken<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|_| self.begun) else { return };
        // Without a runtime the process is ending, and the next process resumes unfinished work.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.supervisor.spawn(Kind::Run, async move { drop(work.await) });
        }
    }
}

/// The same future, but polled once at the beginning and then only after it was woken.
pub fn poll_when_woken<F: Future + Unpin>(future: F) -> PollWhenWoken<F> {
    PollWhenWoken { future, wakers: None }
}

/// See [`poll_when_woken`].
pub struct PollWhenWoken<F> {
    future: F,
    wakers: Option<Wakers>,
}

/// The flag, and the two wakers that set it or are woken by it.
struct Wakers {
    flag: Arc<Flag>,
    /// Given to the future: sets the flag and wakes the task.
    own: Waker,
    /// Wakes the task that polls.
    task: Waker,
}

/// Whether the future was woken since it was polled last.
struct Flag {
    is_woken: AtomicBool,
    task: Mutex<Waker>,
}

impl Wakers {
    /// The flag is set from the beginning, so that the future is polled a first time.
    fn new(task: &Waker) -> Self {
        let flag = Arc::new(Flag { is_woken: AtomicBool::new(true), task: Mutex::new(task.clone()) });
        Self { own: flag.clone().into(), flag, task: task.clone() }
    }

    fn set_task(&mut self, task: &Waker) {
        if !self.task.will_wake(task) {
            self.task.clone_from(task);
            self.flag.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(task);
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        task.wake();
    }
}

impl<F: Future + Unpin> Future for PollWhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { future, wakers } = &mut *self;
        let wakers = wakers.get_or_insert_with(|| Wakers::new(cx.waker()));
        // The waker is stored first, so that a wake-up between here and the next line reaches the right task.
        wakers.set_task(cx.waker());
        if !wakers.flag.is_woken.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        // The flag is cleared before the future is polled, so that a wake-up during the poll is noticed.
        wakers.flag.is_woken.store(false, Ordering::SeqCst);
        Pin::new(future).poll(&mut Context::from_waker(&wakers.own))
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::{Pin, pin};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio_util::sync::CancellationToken;

    use super::{Kind, Supervisor, poll_when_woken};

    /// Says when it is dropped.
    struct Dropped(Arc<AtomicUsize>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[tokio::test]
    async fn what_still_waits_when_everything_stops_is_dropped() {
        let (supervisor, dropped) = (Supervisor::new(), Arc::new(AtomicUsize::new(0)));
        let kinds = [Kind::Connection, Kind::Run, Kind::Delivery, Kind::Sweep];
        for kind in kinds {
            let dropped = Dropped(dropped.clone());
            supervisor.spawn(kind, async move {
                // Polled a second time before it waits, as tasks are that have worked already.
                tokio::task::yield_now().await;
                std::future::pending::<()>().await;
                drop(dropped);
            });
        }
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        supervisor.begin_drain();
        assert!(supervisor.is_draining());
        supervisor.stop().await;
        assert_eq!(dropped.load(Ordering::SeqCst), kinds.len());
        // What is spawned after that is not begun.
        let begun = Arc::new(AtomicUsize::new(0));
        let counts = begun.clone();
        supervisor.spawn(Kind::Sweep, async move {
            counts.fetch_add(1, Ordering::SeqCst);
        });
        tokio::task::yield_now().await;
        assert_eq!(begun.load(Ordering::SeqCst), 0);
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Woken {
        fn poll<T>(self: &Arc<Self>, future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
            future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
        }

        fn times(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[test]
    fn the_future_is_polled_once_and_then_only_after_it_was_woken() {
        let (polled, token) = (AtomicUsize::new(0), CancellationToken::new());
        let mut cancelled = pin!(token.cancelled());
        let future = poll_fn(|cx| {
            polled.fetch_add(1, Ordering::SeqCst);
            cancelled.as_mut().poll(cx)
        });
        let mut beside = poll_when_woken(future);
        let task = Arc::new(Woken::default());
        for _ in 0..5 {
            assert!(task.poll(Pin::new(&mut beside)).is_pending());
        }
        assert_eq!((polled.load(Ordering::SeqCst), task.times()), (1, 0));
        token.cancel();
        assert_eq!(task.times(), 1);
        assert!(task.poll(Pin::new(&mut beside)).is_ready());
        assert_eq!(polled.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_is_ready_already_is_found_at_once() {
        let token = CancellationToken::new();
        token.cancel();
        let cancelled = pin!(token.cancelled());
        let mut beside = poll_when_woken(cancelled);
        assert!(Arc::new(Woken::default()).poll(Pin::new(&mut beside)).is_ready());
    }

    #[test]
    fn the_task_that_polled_last_is_the_one_that_is_woken() {
        let token = CancellationToken::new();
        let cancelled = pin!(token.cancelled());
        let mut beside = poll_when_woken(cancelled);
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        assert!(first.poll(Pin::new(&mut beside)).is_pending());
        assert!(second.poll(Pin::new(&mut beside)).is_pending());
        token.cancel();
        assert_eq!((first.times(), second.times()), (0, 1));
        assert!(second.poll(Pin::new(&mut beside)).is_ready());
    }
}
