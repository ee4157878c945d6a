//! Stopping a server in order, also one whose service was mounted in an app and is out of reach since.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use switchboard_engine::Engine;

/// Stops a server in order. Cheap to clone; take it with [`Server::handle`](crate::Server::handle) before the server is
/// mounted.
///
/// An app that mounts the server stops in two steps, because only the app knows its connections:
///
/// 1. [`drain_when`](Self::drain_when) ends open streams and waiting calls when the stop signal comes, so that the app's
///    graceful shutdown is not held up by them. Clients resume their streams later, at the event where they ended.
/// 2. [`shutdown`](Self::shutdown) gives runs the grace period, and then gives the leases of those that are left back,
///    so that the next process goes on with them at once and no attempt is counted.
///
/// [`stop_signal`](crate::stop_signal) has an example.
#[derive(Clone)]
pub struct ServerHandle {
    engine: Engine,
}

impl ServerHandle {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine }
    }

    /// Ends streams and waiting calls now, and reports the server as not ready. Running agents go on.
    pub fn drain(&self) {
        self.engine.begin_drain();
    }

    /// Waits for `stop`, then [drains](Self::drain). This is what `with_graceful_shutdown` of axum wants.
    pub fn drain_when<F>(&self, stop: F) -> impl Future<Output = ()> + Send + 'static
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let handle = self.clone();
        async move {
            stop.await;
            handle.drain();
        }
    }

    /// Drains, waits for running agents until `grace` is over, cuts off those that are left and gives their leases back.
    /// Call it last: what a run writes after this is refused.
    pub async fn shutdown(&self, grace: Duration) {
        self.engine.shutdown(grace).await;
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("runs", &self.engine.runs_alive()).finish_non_exhaustive()
    }
}
