//! The only place that spawns tasks. Every background task has a kind, and the kind decides what shutdown does with it.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::poll_when_woken::poll_when_woken;

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
            connections: TaskTracker::new(),
            runs: TaskTracker::new(),
            others: TaskTracker::new(),
        }))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    pub fn spawn(&self, kind: Kind, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.0.stopping.clone();
        let task = async move {
            let stopped = pin!(stopping.cancelled());
            tokio::select! {
                biased;
                () = poll_when_woken(stopped) => {}
                () = task => {}
            }
        };
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
        self.0.draining.is_cancelled()
    }

    pub fn begin_drain(&self) {
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
